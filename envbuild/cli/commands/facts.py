"""`envbuild facts`: what is known of drivers, CUDA, cards and frameworks, with sources."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from envbuild.cli import options, output, progress
from envbuild.cli.context import Here
from envbuild.errors import FactsError, UsageProblem

if TYPE_CHECKING:
    from envbuild.compat.derive.builds import Derived
    from envbuild.compat.derive.index import Index
    from envbuild.compat.derive.verify import Verified
    from envbuild.compat.model import Facts
from envbuild.compat.row import Row

_COMMON = ("sources", "read", "confidence", "note", "site")
_LONG = ("wheel", "sha256", "mig", "pci_ids", "all_codes")
_WIDTH = 76


@options.group(
    "facts",
    examples="""
    envbuild facts list pytorch 2.4.0
    envbuild facts show "gpu h100"
    envbuild facts verify pytorch 2.9.1 --libraries
    envbuild facts derive pytorch==2.9.1
    ENVBUILD_FACTS=./facts envbuild facts list driver
    """,
)
def command() -> None:
    """Show what is known of drivers, CUDA, cards and frameworks, with sources; read it anew.

    A site's own rows stand in the folder that ENVBUILD_FACTS names, in files named as ours.
    """


@command.command(
    "list",
    examples="""
    envbuild facts list
    envbuild facts list pytorch cu124
    envbuild facts list --confidence low --json
    """,
)
@click.argument("words", metavar="[WORD]…", nargs=-1)
@click.option(
    "--confidence",
    type=click.Choice(["high", "medium", "low"]),
    help="Only rows that are this sure.",
)
@options.json_option
@click.pass_obj
def listed(
    here: Here,
    words: tuple[str, ...],
    confidence: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """List facts, all of them or those that have every WORD in their name; 1 if none has."""
    rows = [
        row
        for row in here.facts.rows()
        if _fits(row.name, words) and confidence in (None, row.confidence)
    ]
    if as_json:
        output.print_json({"facts": [_json(row) for row in rows]})
    elif rows:
        lines = ((row.name, _summary(row), row.confidence, row.read) for row in rows)
        output.result(output.table(("FACT", "WHAT", "CONFIDENCE", "READ"), lines))
    else:
        output.say(here, f"{_none(words)}; {_near(here.facts, words)}" if words else "no fact")
    if not rows:
        click.get_current_context().exit(1)


@command.command("show", examples='envbuild facts show "pytorch 2.4.0 cu124"')
@click.argument("words", metavar="NAME…", nargs=-1, required=True)
@options.json_option
@click.pass_obj
def show(here: Here, words: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Show a fact with where it was read, when, and how sure it is."""
    row = _found(here.facts, " ".join(words))
    if as_json:
        output.print_json(_json(row))
        return
    lines = [row.name, *(f"  {key}: {_text(value)}" for key, value in _values(row))]
    lines += [f"  note: {row.note}"] if row.note else []
    lines += [f"  source: {text}" for text in row.sources]
    lines.append(f"  read: {row.read}, confidence {row.confidence}")
    lines += [f"  from: {row.site}"] if row.site else []
    output.result("\n".join(lines))


@command.command(
    "verify",
    examples="""
    envbuild facts verify
    envbuild facts verify pytorch 2.9.1 --libraries
    envbuild facts verify jax --json
    """,
)
@click.argument("words", metavar="[WORD]…", nargs=-1)
@click.option(
    "--libraries",
    is_flag=True,
    help="Also read the libraries in the wheels, in parts: GPU code, compiler, ABI, glibc; about "
    "10 MB and a few seconds a build. Without it METADATA and file names are read.",
)
@options.json_option
@click.pass_obj
def verify(here: Here, words: tuple[str, ...], *, libraries: bool, as_json: bool) -> int:
    """Read facts anew from PyPI and show where they differ: all, or those with every WORD.

    Builds of PyTorch and JAX that PyPI has are read from METADATA and files of their wheels.
    Everything else is from documents, which are named. Exit code 1 if a row differs.
    """
    from envbuild.compat.derive.verify import verify

    rows = [row for row in here.facts.rows() if _fits(row.name, words)]
    if not rows:
        raise UsageProblem(_none(words), hint=_near(here.facts, words))
    with progress.shown(here) as shown:
        found = verify(rows, lambda: _index(here), read_libraries=libraries, told=shown.step)
    if as_json:
        output.print_json(_verified_json(found))
    else:
        output.result(_verified_text(found, quiet=here.quiet))
    return 1 if any(one.verdict == "differs" for one in found) else 0


@command.command(
    "derive",
    examples="""
    envbuild facts derive pytorch==2.9.1
    envbuild facts derive jax==0.9.0 > facts/jax.toml
    envbuild facts derive pytorch==2.9.0 pytorch==2.9.1 --json
    """,
)
@click.argument("releases", metavar="FRAMEWORK==VERSION…", nargs=-1, required=True)
@options.json_option
@click.pass_obj
def derive(here: Here, releases: tuple[str, ...], *, as_json: bool) -> None:
    """Print the rows of a release of PyTorch or JAX, read from its wheels on PyPI.

    Of each wheel a few parts are fetched, about 10 MB. What is printed is a whole file of facts:
    it can be used as it is, in the folder that ENVBUILD_FACTS names, or pasted into another.
    """
    from envbuild.compat.derive.rows import columns, toml

    wanted = [_release(text) for text in releases]
    if len({framework for framework, _ in wanted}) > 1:
        message = "a file of facts holds the builds of one framework"
        raise UsageProblem(message, hint="call it once for each")
    with progress.shown(here) as shown:
        index = _index(here)
        rows: list[Derived] = []
        for framework, version in wanted:
            shown.step(f"reading {framework} {version}")
            rows += _derived(index, framework, version)
    day = here.now().date().isoformat()
    if as_json:
        output.print_json({"builds": [{**columns(row, day), **_read(row)} for row in rows]})
    else:
        output.result(toml(rows, day=day).rstrip())


def _index(here: Here) -> "Index":
    from envbuild.compat.derive import index

    return index.default(here.access)


def _release(text: str) -> tuple[str, str]:
    """Return framework and version of `pytorch==2.9.1`.

    Raises:
        UsageProblem: It is not that.
    """
    from packaging.version import InvalidVersion, Version

    from envbuild.compat.derive.builds import PROJECTS

    framework, _, version = (part.strip() for part in text.partition("=="))
    if framework not in PROJECTS:
        near = (
            "pytorch"
            if framework == "torch"
            else next(iter(get_close_matches(framework, PROJECTS)), "")
        )
        hint = f"did you mean {near}?" if near else f"the frameworks are {', '.join(PROJECTS)}"
        message = f"{text!r} is not FRAMEWORK==VERSION of a framework that is known"
        raise UsageProblem(message, hint=hint)
    try:
        return framework, f"{Version(version)}"
    except InvalidVersion as error:
        message = f"{text!r} is not FRAMEWORK==VERSION"
        raise UsageProblem(message, hint=f"write {framework}==2.9.1") from error


def _derived(index: "Index", framework: str, version: str) -> "tuple[Derived, ...]":
    """Return the rows of a release.

    Raises:
        FactsError: The index has no such release, or no build of it that could be read.
    """
    from packaging.version import Version

    from envbuild.compat.derive.builds import PROJECTS
    from envbuild.compat.derive.builds import derive as read

    known = index.versions(PROJECTS[framework])
    named = next((f"{one}" for one in known if one == Version(version)), None)
    if named is not None:
        if rows := read(index, framework, named, read_libraries=True):
            return rows
        message = f"PyPI has no build for CUDA on Linux of {framework} {version}"
        raise FactsError(message, source=version)
    near = get_close_matches(version, [f"{one}" for one in sorted(known, reverse=True)], n=1)
    hint = f"the nearest is {near[0]}, the newest {max(known)}" if near else None
    message = f"PyPI has no {framework} {version}"
    raise FactsError(message, source=version, hint=hint)


def _read(row: "Derived") -> dict[str, object]:
    uploaded = None if row.uploaded is None else output.time_text(row.uploaded)
    sources = [*row.sources.values()]
    return {"uploaded": uploaded, "fetched_bytes": row.fetched_bytes, "sources": sources}


def _verified_text(found: "Sequence[Verified]", *, quiet: bool) -> str:
    """Return what differs, then what comes from documents, then the counts."""
    lines = [
        f"{one.row.name}: {each.column}: "
        f"the table has {_text(each.table)}, found {_text(each.found)}"
        for one in found
        for each in one.differences
    ]
    unread = [one for one in found if one.unread]
    if unread and not quiet:
        columns = sorted({column for one in unread for column in one.unread})
        lines.append(f"not read of {len(unread)} rows without --libraries: {', '.join(columns)}")
    documents: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        if one.documented:
            what = "" if one.verdict == "not derivable" else f" ({', '.join(one.documented)})"
            documents.setdefault(one.row.sources, []).append(one.row.name + what)
    if documents and not quiet:
        lines.append("from documents:")
        for sources, names in documents.items():
            lines += [f"  {'; '.join(sources)}", *(f"    {name}" for name in names)]
    verdicts = [one.verdict for one in found]
    able = len(verdicts) - verdicts.count("not derivable")
    told = f"{verdicts.count('same')} of {able} rows that PyPI has files for are as they were read"
    lines.append(f"{told}; {verdicts.count('not derivable')} come from documents")
    return "\n".join(lines)


def _verified_json(found: "Sequence[Verified]") -> dict[str, object]:
    return {
        "facts": [
            {
                "name": one.row.name,
                "verdict": one.verdict,
                "differences": [asdict(each) for each in one.differences],
                "checked": list(one.checked),
                "unread": list(one.unread),
                "documented": list(one.documented),
                "sources": list(one.row.sources),
            }
            for one in found
        ]
    }


def _fits(name: str, words: Sequence[str]) -> bool:
    return all(word.lower() in name.lower() for word in words)


def _none(words: Sequence[str]) -> str:
    return f"no fact has {' and '.join(map(repr, words))} in its name"


def _near(facts: "Facts", words: Sequence[str]) -> str:
    """Return what to type instead of the words of no fact."""
    wanted = " ".join(words)
    names = [row.name for row in facts.rows()]
    found = get_close_matches(wanted, names, n=1, cutoff=0.4)
    return f"did you mean {found[0]!r}?" if found else "see: envbuild facts list"


def _found(facts: "Facts", wanted: str) -> "Row":
    """Return the row of a name, or the only one whose name has it.

    Raises:
        UsageProblem: There is none, or more than one.
    """
    rows = {row.name: row for row in facts.rows()}
    if wanted in rows:
        return rows[wanted]
    fitting = [name for name in rows if _fits(name, wanted.split())]
    if len(fitting) == 1:
        return rows[fitting[0]]
    if fitting:
        message = f"{len(fitting)} facts have {wanted!r} in their names"
        hint = f"one of them is {fitting[0]!r}; all: envbuild facts list {wanted}"
        raise UsageProblem(message, hint=hint)
    message = f"there is no fact {wanted!r}"
    raise UsageProblem(message, hint=_near(facts, wanted.split()))


def _values(row: "Row") -> Iterator[tuple[str, object]]:
    """Yield what the row says, without what every row has and what it does not know."""
    for each in fields(row):
        value = getattr(row, each.name)
        if each.name not in _COMMON and value not in (None, (), {}, ""):
            yield each.name, value


def _summary(row: "Row") -> str:
    """Return the values that the name does not hold, short."""
    shown = [
        f"{key} {_text(value)}"
        for key, value in _values(row)
        if f"{value}" not in row.name.split() and key not in _LONG
    ]
    text = "; ".join(shown)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _text(value: object) -> str:
    if value is None or value == ():
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    return f"{value}"


def _json(row: "Row") -> dict[str, object]:
    return {"name": row.name, **asdict(row)}
