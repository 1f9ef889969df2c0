"""Environment markers: those of a target, and those of a universal answer in canonical form."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envbuild.target import MACHINES, Platform

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_MINORS = range(100)
_OPERATORS = ("<", ">", "=", "!", "~")
_FLOORS = (">=", "~=", "==", ">")


def environment(python: str, platform: Platform) -> dict[str, str]:
    """Return the marker environment of CPython `python` (full version) on a platform.

    What only a running machine knows (`platform_release`, `platform_version`) is empty.
    """
    release = Version(python)
    return {
        "implementation_name": "cpython",
        "implementation_version": python,
        "os_name": "posix",
        "platform_machine": MACHINES[platform],
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": python,
        "python_version": f"{release.major}.{release.minor}",
        "sys_platform": "linux",
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Pythons:
    """A range of Pythons.

    Attributes:
        lowest: The lowest version of it, as uv gets it (`3.11`, `3.11.4`).
        minors: Every (major, minor) of it, ascending.
        specifier: The range.
    """

    lowest: str
    minors: tuple[tuple[int, int], ...]
    specifier: SpecifierSet


def pythons(text: str) -> Pythons | None:
    """Return a range of Pythons (`>=3.11,<3.15`), None if no CPython 3 is in it or it has no floor.

    Raises:
        packaging.specifiers.InvalidSpecifier: It is no range.
    """
    specifier = SpecifierSet(text if text[:1] in _OPERATORS else f"=={text}.*" if text else "")
    floors = [
        Version(one.version.removesuffix(".*")) for one in specifier if one.operator in _FLOORS
    ]
    if not floors:
        return None
    floor = max(floors)
    minors = tuple(
        (3, minor)
        for minor in _MINORS
        if (3, minor) >= floor.release[:2] and _within(specifier, floor, minor)
    )
    lowest = f"{floor.major}.{floor.minor}" + (f".{floor.micro}" if floor.micro else "")
    return Pythons(lowest=lowest, minors=minors, specifier=specifier) if minors else None


def _within(specifier: SpecifierSet, floor: Version, minor: int) -> bool:
    """Return whether any release of a minor version is in the range (ends are at most x.y.99)."""
    tried = (f"3.{minor}.0", f"3.{minor}.99", str(floor))
    return any(specifier.contains(one) for one in tried if Version(one).release[:2] == (3, minor))


def points(markers: Iterable[str], range_: Pythons) -> tuple[Version, ...]:
    """Return versions such that no marker changes between one and the next; the lowest first."""
    found = {Version(range_.lowest)}
    found |= {Version(f"{major}.{minor}") for major, minor in range_.minors}
    for marker in markers:
        for single, double in _QUOTED.findall(marker):
            for text in _VERSION.findall(single or double):
                version = Version(text)
                found |= {version, Version(f"{version.major}.{version.minor + 1}")}
                found.add(Version(f"{version.major}.{version.minor}.{version.micro + 1}"))
    lowest = Version(range_.lowest)
    minors = set(range_.minors)
    return tuple(sorted(one for one in found if one >= lowest and one.release[:2] in minors))


def full(version: Version) -> str:
    """Return a version with three numbers."""
    return f"{version.major}.{version.minor}.{version.micro}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """Where a line of a universal answer counts.

    Attributes:
        marker: Its marker in canonical form, None if it counts everywhere.
        pairs: Every Python and platform where it counts.
    """

    marker: str | None
    pairs: tuple[tuple[Version, Platform], ...]


def reach(
    markers: Sequence[str | None], versions: Sequence[Version], platforms: Sequence[Platform]
) -> Reach:
    """Return where a line counts that has any of these markers.

    Only the Pythons and platforms of the recipe are looked at, so what speaks of Windows or of
    another machine is gone. Equal truths give equal texts, however uv wrote them.
    """
    parsed = [Marker(marker) if marker else None for marker in markers]
    truth = {
        platform: tuple(
            any(
                marker is None or marker.evaluate(environment(full(version), platform))
                for marker in parsed
            )
            for version in versions
        )
        for platform in platforms
    }
    pairs = tuple(
        (version, platform)
        for platform in platforms
        for version, true in zip(versions, truth[platform], strict=True)
        if true
    )
    return Reach(marker=_text(truth, versions), pairs=pairs)


def _text(truth: dict[Platform, tuple[bool, ...]], versions: Sequence[Version]) -> str | None:
    """Return a marker with this truth: per group of equal machines an `or` of version ranges."""
    groups: dict[tuple[bool, ...], list[Platform]] = {}
    for platform, row in truth.items():
        groups.setdefault(row, []).append(platform)
    alternatives: list[str] = []
    for row, platforms in groups.items():
        ranges = list(_ranges(row, versions))
        if not ranges:
            continue
        machines = sorted(MACHINES[platform] for platform in platforms)
        machine = " or ".join(f"platform_machine == '{one}'" for one in machines)
        if len(groups) == 1:
            alternatives += ranges
        elif "" in ranges:
            alternatives.append(machine)
        else:
            left = f"({machine})" if len(machines) > 1 else machine
            alternatives += [f"{left} and {one}" for one in ranges]
    return " or ".join(sorted(one for one in alternatives if one)) or None


def _ranges(row: Sequence[bool], versions: Sequence[Version]) -> Iterator[str]:
    """Yield the runs of true as version ranges; the empty text is the whole range."""
    start: int | None = None
    for at, true in enumerate([*row, False]):
        if true and start is None:
            start = at
        elif not true and start is not None:
            ends = []
            if start > 0:
                ends.append(f"python_full_version >= '{_short(versions[start])}'")
            if at < len(versions):
                ends.append(f"python_full_version < '{_short(versions[at])}'")
            yield " and ".join(ends)
            start = None


def _short(version: Version) -> str:
    return full(version).removesuffix(".0")
