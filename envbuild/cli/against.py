"""Why a set of driver, CUDA, framework and Python does not work, as lines for a person.

`--json` has every build with every reason; here what is equal stands once.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from envbuild.compat.consistency import numbers
from envbuild.compat.model import FrameworkBuild
from envbuild.compat.sentences import place, span
from envbuild.compat.triangle import Judged

_SHOWN = 3
_SOURCES = 2


def lines(meant: Sequence[Judged], near: Sequence[Judged], first: Judged | None) -> list[str]:
    """Return why nothing works, and what does.

    A single release is told in full; of several, what speaks against them is told by ranges of
    releases, below what works.

    Args:
        meant: The builds that were asked for, each with its reasons.
        near: The nearest sets that work.
        first: The first build with code for the cards.
    """
    releases = {(each.build.framework, each.build.version) for each in meant}
    if len(releases) > 1:
        return ["does not work", *_near(near), *_by_range(meant)]
    told = ["does not work:", *_in_full(meant)]
    if first is not None and all(each.parts == {"gpu"} for each in meant):
        told.append(f"the first with code for it: {place(first.build)}")
    return [*told, *_near(near)]


def pythons(build: FrameworkBuild) -> str:
    """Return the Pythons of a build that are not free-threaded, as a range."""
    usual = [python for python in build.pythons if not python.endswith("t")]
    return span(usual) if usual else "-"


def _near(near: Sequence[Judged]) -> Iterator[str]:
    yield "nearest that work:" if near else "nothing that is known runs on these cards"
    for each in near:
        changes = ", ".join(_change(each, reason.part) for reason in each.reasons)
        yield f"  {place(each.build)} (with {changes})"


def _in_full(meant: Sequence[Judged]) -> Iterator[str]:
    if not meant:
        yield "  no build of these versions is known"
    against: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in meant:
        own: dict[tuple[str, ...], list[str]] = {}
        for reason in each.reasons:
            own.setdefault(reason.sources, []).append(reason.what)
        for sources, whats in own.items():
            against.setdefault(("; ".join(whats), sources), []).append(each.build.name)
    for (what, sources), names in against.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"  {', '.join(names[:_SHOWN])}{more}: {what}"
        yield from (f"    source: {source}" for source in sources)


def _by_range(meant: Sequence[Judged]) -> Iterator[str]:
    """Yield each reason once, with the releases that it holds for and where most of it was read."""
    for framework, builds in groupby(meant, key=lambda each: each.build.framework):
        judged = list(builds)
        yield f"against {framework} {_releases(judged)}:"
        reasons: dict[str, list[Judged]] = {}
        sources: dict[str, dict[str, int]] = {}
        for each in judged:
            for reason in each.reasons:
                short = reason.what.partition(": ")[0]
                reasons.setdefault(short, []).append(each)
                read = sources.setdefault(short, {})
                for source in reason.sources:
                    read[source] = read.get(source, 0) + 1
        for short, those in sorted(reasons.items(), key=lambda one: -len(one[1])):
            yield f"  {_releases(those)}: {short}"
            most = sorted(sources[short], key=lambda one: -sources[short][one])
            yield from (f"    source: {source}" for source in most[:_SOURCES])
            if len(most) > _SOURCES:
                yield f"    and {len(most) - _SOURCES} more: --json has all, build by build"


def _releases(judged: Sequence[Judged]) -> str:
    versions = sorted({each.build.version for each in judged}, key=numbers)
    between = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    return f"{between} ({len(judged)} build{'s' * (len(judged) != 1)})"


def _change(each: Judged, part: str) -> str:
    """Return what would have to be another one."""
    build = each.build
    return {
        "driver": f"driver {each.drivers}" if each.last else f"driver {each.driver} or newer",
        "cuda": f"CUDA {build.cuda or build.cuda_major}",
        "cudnn": f"cuDNN {build.cudnn or 'that is unknown'}",
        "framework": f"{build.framework} {build.version}",
        "python": f"Python {pythons(build)}",
    }.get(part, part)
