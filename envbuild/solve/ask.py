"""Asking uv: each package from its own index, and a refusal in the recipe's own words."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from packaging.utils import canonicalize_name

from envbuild.access import Access
from envbuild.errors import NoSolution
from envbuild.recipe import cutoff as cutoffs
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.requirements import PipNeed
from envbuild.solve import standins
from envbuild.solve.wheels import Release, releases
from envbuild.tools.addresses import without_login
from envbuild.tools.uv import Answer
from envbuild.tools.uv_failure import Undated
from envbuild.tools.uv_question import Question, Source, index_address, instant

_ELSEWHERE = "sys_platform == 'win32'"

Ask = Callable[[Question], Answer]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """uv's answer, with every release from the index it belongs to.

    Attributes:
        releases: The distributions.
        homes: The index that each came from, by name.
        rooted: Names that were asked for only to bind them to their index.
        yanked: Name, version and reason of every yanked release.
        undated: Names of files that were left out because their index gives no upload time.
    """

    releases: tuple[Release, ...]
    homes: Mapping[str, Source]
    rooted: frozenset[str]
    yanked: tuple[tuple[str, str, str], ...]
    undated: tuple[str, ...]


def sources(
    loaded: LoadedRecipe, *, cutoff: datetime, access: Access, without: Sequence[str] = ()
) -> tuple[Source, ...]:
    """Return the default index and the recipe's, each with its cutoff.

    An age counts back from the lock's own cutoff, and no index goes past that.

    Args:
        loaded: The recipe.
        cutoff: The lock's cutoff (UTC).
        access: Addresses and logins of this machine.
        without: Normalized names that conda brings, so no index does.
    """
    found = [Source(name=None, url=access.default_index)]
    for index in loaded.recipe.indexes:
        own = None
        if index.cutoff is not None and index.cutoff != cutoffs.NONE:
            own = min(cutoffs.resolve(index.cutoff, now=cutoff), cutoff)
        found.append(
            Source(
                name=index.name,
                url=index_address(index.name, index.url, access),
                packages=frozenset(map(canonicalize_name, index.packages)) - {*without},
                cutoff="none" if index.cutoff == cutoffs.NONE else own,
            )
        )
    return tuple(found)


def source_of(name: str, address: str | None, known: Sequence[Source]) -> Source:
    """Return the index that a distribution came from.

    Args:
        name: Its normalized name.
        address: What uv says of it; None where there is no index but the default one.
        known: The indexes, the default one first. Two of them may have one address: then it is
            the one that the name is listed for.
    """
    default, *named = known
    for source in sorted(named, key=lambda source: name not in source.packages):
        if source.url is None or address is None or _bare(source.url) != _bare(address):
            continue
        if name in source.packages or _bare(default.url or "") != _bare(address):
            return source
    return default


@contextmanager
def explained(
    loaded: LoadedRecipe, needs: Sequence[PipNeed], *, where: str, cutoff: datetime
) -> Iterator[None]:
    """Put the recipe's own lines beside the reason of a refusal inside.

    Args:
        loaded: The recipe.
        needs: Its requirements.
        where: Python and platforms that are solved for.
        cutoff: The lock's cutoff (UTC).

    Raises:
        NoSolution: One was raised inside.
    """
    try:
        yield
    except NoSolution as error:
        reason = standins.plain_words(error.details)
        told = f"{error.message}\n{reason}"
        named = [need for need in needs if re.search(rf"\b{re.escape(need.name)}\b", told)]
        lines = [
            *([reason, ""] if reason else []),
            "the recipe asks for:",
            *(f"  {loaded.where(*need.path)}: {need.text}" for need in named or needs),
            f"for {where}",
            f"uploaded before {instant(cutoff)}",
        ]
        message = f"{loaded.recipe.name}: {error.message}"
        raise NoSolution(
            message,
            hint=error.hint or "change what the recipe asks for, or move the cutoff",
            details="\n".join(lines),
        ) from error


def ask(question: Question, *, solve: Ask) -> Answered:
    """Solve, and solve again until every package listed for an index comes from it.

    uv binds only what is asked for directly to an index. What came from another one is therefore
    asked for as well, without a version; in a universal answer for another system only.

    Args:
        question: What is asked.
        solve: Asks uv.

    Raises:
        NoSolution: It cannot be solved, with uv's reason.
    """
    marker = _ELSEWHERE if question.universal else ""
    owner = {name: source for source in question.sources for name in source.packages}
    rooted: frozenset[str] = frozenset()
    while True:
        try:
            answer = solve(replace(question, rooted=dict.fromkeys(sorted(rooted), marker)))
        except Undated as error:
            raise _undated(error, question.sources) from error
        except NoSolution:
            everything = frozenset(owner)
            if everything <= rooted:
                raise
            rooted = everything
            continue
        found = releases(answer.pylock)
        homes = {
            name: source_of(name, answer.indexes.get((name, version)), question.sources)
            for name, version in ((release.name, release.version) for release in found)
        }
        strays = frozenset(
            name for name, home in homes.items() if name in owner and home is not owner[name]
        )
        if strays <= rooted:
            _check_homes(strays, owner)
            return Answered(
                releases=found,
                homes=homes,
                rooted=rooted,
                yanked=answer.yanked,
                undated=answer.undated,
            )
        rooted |= strays


def _check_homes(strays: frozenset[str], owner: dict[str, Source]) -> None:
    """Refuse an answer in which something still comes from an index that is not its own."""
    for name in sorted(strays):
        message = f"{name} does not come from {owner[name].label}, for which the recipe lists it"
        raise NoSolution(message, hint="see whether that index has it for this platform")


def _undated(error: Undated, known: Sequence[Source]) -> NoSolution:
    names = {canonicalize_name(file.partition("-")[0]) for file in error.files}
    source = next((one for one in known if names & one.packages), known[0])
    message = f"{source.label} gives no upload times, so no cutoff can be applied to it"
    if source.name is None:
        hint = (
            "use a mirror that gives upload times, or list the packages under `indexes` "
            "with `cutoff: none`"
        )
    else:
        hint = f"give index {source.name} `cutoff: none` in the recipe"
    return NoSolution(message, hint=hint, details=error.details)


def _bare(url: str) -> str:
    return without_login(url).rstrip("/")
