"""The conda half: what the recipe asks for, solved once per platform."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.errors import NoSolution, RecipeError
from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import CondaPackage
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.model import Triangle
from envbuild.recipe.specs import CondaNeed, conda_needs
from envbuild.recipe.targets import target
from envbuild.solve.agreement import check as check_agreement
from envbuild.target import Platform
from envbuild.tools import rattler as engine
from envbuild.tools.run import Runner, run

_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaHalf:
    """The conda half of every platform.

    Attributes:
        platforms: Records per platform, sorted by name, in the order asked for.
        findings: `no-upload-time`, `weak-hash`, `triangle-disagrees`.
    """

    platforms: dict[Platform, tuple[CondaPackage, ...]]
    findings: Findings


def half(
    loaded: LoadedRecipe,
    platforms: Sequence[Platform],
    *,
    cutoff: datetime,
    prefer: Mapping[Platform, tuple[CondaPackage, ...]],
    access: Access,
    cache: Path,
    runner: Runner = run,
) -> CondaHalf:
    """Solve the conda half, all platforms in one worker process.

    Args:
        loaded: The recipe; the caller has seen to it that it is not on the host's Python.
        platforms: Platforms to solve for.
        cutoff: A record counts if its upload time is strictly before this instant.
        prefer: Records per platform to keep where nothing speaks against it.
        access: How channels are reached.
        cache: The store's cache folder.
        runner: How the engine's worker is started.

    Raises:
        NoSolution: It cannot be done; `details` has the solver's reason and the recipe's specs.
        FetchError: A channel cannot be read.
        RecipeError: A spec or a channel of the recipe is none.
        ToolFailed: The engine broke.
    """
    needs = conda_needs(loaded.recipe)
    _check_channels(loaded, needs)
    constraints = triangle_constraints(loaded.recipe.triangle)
    requests = [
        engine.SolveRequest(
            target=target(loaded.recipe, platform),
            channels=loaded.recipe.channels,
            specs=tuple(need.text for need in needs),
            constraints=constraints,
            cutoff=cutoff,
            prefer=prefer.get(platform, ()),
        )
        for platform in platforms
    ]
    try:
        answers = engine.solve(requests, access=access, cache=cache, runner=runner)
    except NoSolution as error:
        message = f"{loaded.recipe.name}: {error.message}"
        raise NoSolution(
            message,
            hint=error.hint,
            details=f"{error.details}\n{_asked(loaded, needs, constraints, cutoff)}",
        ) from error
    solved = dict(zip(platforms, (answer.packages for answer in answers), strict=True))
    findings: list[Finding] = []
    for platform, answer in zip(platforms, answers, strict=True):
        findings += _undated(platform, answer.undated)
        findings += _weak(platform, answer.packages)
        findings += check_agreement(loaded.recipe, platform, answer.packages)
    return CondaHalf(platforms=solved, findings=tuple(findings))


def triangle_constraints(triangle: Triangle) -> tuple[str, ...]:
    """Return what the triangle says about packages that the solver may take by itself.

    `cuda-version` knows no patch level, so `12.4.1` constrains it to `12.4.*`.
    """
    constraints: list[str] = []
    if triangle.cuda is not None:
        constraints.append(f"cuda-version {_version_spec(triangle.cuda, parts=2)}")
    if triangle.cudnn is not None:
        spec = _version_spec(triangle.cudnn, parts=4)
        constraints += [f"cudnn {spec}", f"libcudnn {spec}"]
    return tuple(constraints)


def _version_spec(text: str, *, parts: int) -> str:
    return ".".join(text.split(".")[:parts]) + ".*"


def _check_channels(loaded: LoadedRecipe, needs: Sequence[CondaNeed]) -> None:
    """Refuse a spec that names a channel the recipe does not list.

    Raises:
        RecipeError: One or several do; every one is named.
    """
    known = {channel.rstrip("/") for channel in loaded.recipe.channels}
    problems = [
        f"{loaded.where(*need.path)}: channel {need.channel} is not among `channels`"
        for need in needs
        if need.channel is not None and need.channel.rstrip("/") not in known
    ]
    if problems:
        message = (
            f"{loaded.recipe.name}: a conda spec names a channel that the recipe does not list"
        )
        raise RecipeError(
            message,
            source=loaded.recipe.name,
            problems=problems,
            hint="add the channel to the recipe's `channels`",
        )


def _asked(
    loaded: LoadedRecipe,
    needs: Sequence[CondaNeed],
    constraints: Sequence[str],
    cutoff: datetime,
) -> str:
    """Return what the recipe asks for, each with its place."""
    rows = [f"  {loaded.where(*need.path)}: {_as_written(need)}" for need in needs]
    if constraints:
        rows.append(f"  {loaded.where('triangle')}: if installed: {', '.join(constraints)}")
    channels = ", ".join(loaded.recipe.channels)
    return "\n".join(
        [
            "the recipe asks for:",
            *rows,
            f"from {channels} (in this order, the first that has a name counts)",
            f"uploaded before {cutoff:%Y-%m-%dT%H:%M:%SZ}",
        ]
    )


def _as_written(need: CondaNeed) -> str:
    """Return the spec as the recipe has it; of `python: "3.12"`, what that means."""
    return need.text if need.path == ("python",) else need.written


def _undated(platform: Platform, urls: Sequence[str]) -> Findings:
    """Say which records were left out because nobody knows when they were uploaded."""
    by_channel: dict[str, list[str]] = {}
    for url in urls:
        channel, _, name = url.rsplit("/", 2)
        by_channel.setdefault(channel, []).append(name)
    return tuple(
        Finding(
            code="no-upload-time",
            severity=Severity.WARNING,
            where=f"{platform}: {channel}",
            what=f"{len(names)} records without an upload time were left out: {_some(names)}",
            why="the cutoff cannot be applied to them; an index with dates gives another lock",
            hint="lock against an index that keeps upload times",
        )
        for channel, names in by_channel.items()
    )


def _weak(platform: Platform, packages: Sequence[CondaPackage]) -> Findings:
    weak = [package.name for package in packages if package.sha256 is None]
    if not weak:
        return ()
    return (
        Finding(
            code="weak-hash",
            severity=Severity.WARNING,
            where=platform,
            what=f"{len(weak)} conda records have only an md5 digest: {_some(weak)}",
            why="their channel publishes no SHA-256; md5 and size are kept, and the SHA-256 of"
            " the first download in the store's ledger",
        ),
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
