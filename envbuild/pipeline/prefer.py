"""`preferred`: a lock with rebuilt wheels in the place of those that it was solved with.

What a wheel was built from, for which compiler and against what, has to be what recipe and lock
ask for now. It takes the place of a wheel, or of conda's package. A wheel is for one Python and
platform: in a lock for several, the official wheel stays for the others, told apart by markers.
"""

import itertools
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.errors import Refused
from envbuild.lock.digest import applying
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import WHEELHOUSE, PipPackage
from envbuild.pipeline import from_conda
from envbuild.rebuild import archive
from envbuild.rebuild.current import stale
from envbuild.rebuild.house import House, Kept
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.targets import target as target_of
from envbuild.solve import markers
from envbuild.solve.metadata import parse
from envbuild.solve.names import provided, wheel_name
from envbuild.solve.wheels import Wheel, usable
from envbuild.target import MACHINES, Platform


def preferred(lock: Lock, loaded: LoadedRecipe, house: House) -> Lock:
    """Return a lock that takes from a wheelhouse what was rebuilt for it.

    Raises:
        Refused: A rebuilt wheel requires what the lock does not have, or conda packages that stay
            need what it would take the place of.
    """
    kept = list(house.wheels())
    if not kept:
        return lock
    if lock.host_python is None:
        halves = tuple(_half(half, lock, loaded, kept) for half in lock.platforms)
    else:
        halves = _universal(lock, loaded, kept)
    return replace(lock, platforms=halves)


def original(lock: Lock | None) -> Lock | None:
    """Return a lock as a solver has to know it: versions that an index has."""
    if lock is None or not has_rebuilt(lock):
        return lock
    halves = []
    for half in lock.platforms:
        every = map(_as_solved, half.pip)
        pip = {(one.name, one.version): one for one in every}
        halves.append(replace(half, pip=tuple(pip.values())))
    return replace(lock, platforms=tuple(halves))


def _as_solved(one: PipPackage) -> PipPackage:
    if one.index != WHEELHOUSE:
        return one
    return replace(one, version=archive.official(one.version), index=None, marker=None, hashes=())


def has_rebuilt(lock: Lock) -> bool:
    """Say whether a lock takes something from a wheelhouse."""
    return any(one.index == WHEELHOUSE for half in lock.platforms for one in half.pip)


def _half(
    half: PlatformLock, lock: Lock, loaded: LoadedRecipe, kept: Sequence[Kept]
) -> PlatformLock:
    python = next((one.version for one in half.conda if one.name == "python"), None)
    if python is None:
        return half
    locked = {str(name): str(one.version) for name, one in provided(half.conda).items()}
    locked |= {one.name: one.version for one in half.pip}
    candidates = [*half.pip, *from_conda.candidates(half.conda, loaded.recipe.build)]
    found = _taken(candidates, locked, loaded, kept, half.platform, _minor(python))
    gone = from_conda.leaving(half.conda, loaded.recipe.build, found, lock=lock.name)
    for name in found.keys() - {wheel_name(one) for one in gone}:
        if all(one.name != name for one in half.pip):
            del found[name]
    after = locked | {name: str(one.version) for name, one in found.items()}
    for one in found.values():
        _check_requirements(one, after, markers.environment(python, half.platform), lock)
    every = [_from(one, found[one.name], one.marker) for one in candidates if one.name in found]
    every += [one for one in half.pip if one.name not in found]
    return replace(
        half,
        conda=tuple(one for one in half.conda if one not in gone),
        pip=tuple(sorted(every, key=lambda one: one.name)),
    )


def _taken(
    candidates: Sequence[PipPackage],
    locked: Mapping[str, str],
    loaded: LoadedRecipe,
    kept: Iterable[Kept],
    platform: Platform,
    minor: tuple[int, int],
) -> dict[str, Kept]:
    """Return the wheel of each candidate that has one, each built against those of the others."""
    found: dict[str, Kept] = {}
    for _ in range(len(candidates) + 1):
        now = {**locked, **{name: str(one.version) for name, one in found.items()}}
        new = {
            one.name: best
            for one in candidates
            if (best := _best(one, loaded, kept, platform, minor, now)) is not None
        }
        if new == found:
            break
        found = new
    return found


def _universal(lock: Lock, loaded: LoadedRecipe, kept: Sequence[Kept]) -> tuple[PlatformLock, ...]:
    """Return the halves of a universal lock, all with the same packages."""
    range_ = markers.pythons(loaded.recipe.python or "")
    platforms = [half.platform for half in lock.platforms]
    if range_ is None or not platforms:
        return lock.platforms
    pip: list[PipPackage] = []
    every = lock.platforms[0].pip
    halves: list[tuple[Platform, tuple[int, int], tuple[PipPackage, ...], dict[str, Kept]]] = []
    for platform, minor in itertools.product(platforms, range_.minors):
        here = applying(every, platform, python=_first_of(minor))
        locked = {each.name: each.version for each in here}
        halves.append((platform, minor, here, _taken(here, locked, loaded, kept, platform, minor)))
    for one in every:
        left, found = one.marker, list[PipPackage]()
        reached = 0
        for platform, minor, here, taken in halves:
            if one not in here:
                continue
            reached += 1
            best = taken.get(one.name)
            if best is None:
                continue
            locked = {each.name: each.version for each in here}
            locked |= {name: str(each.version) for name, each in taken.items()}
            around = markers.environment(_first_of(minor), platform)
            _check_requirements(best, locked, around, lock)
            own = _marker(platform, minor, several=len(platforms) > 1)
            found.append(_from(one, best, _and(one.marker, own)))
            left = _and(left, _but(own))
        pip += found
        if reached > len(found) or not found:
            pip.append(replace(one, marker=left))
    ordered = tuple(sorted(pip, key=lambda one: (one.name, one.marker or "")))
    return tuple(replace(half, pip=ordered) for half in lock.platforms)


def _first_of(minor: tuple[int, int]) -> str:
    """Return the first release of a Python."""
    return f"{minor[0]}.{minor[1]}.0"


def _marker(platform: Platform, minor: tuple[int, int], *, several: bool) -> str:
    text = f'python_version == "{minor[0]}.{minor[1]}"'
    return f'{text} and platform_machine == "{MACHINES[platform]}"' if several else text


def _but(marker: str) -> str:
    """Return the opposite of one of our markers."""
    parts = marker.replace(" == ", " != ").split(" and ")
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def _and(one: str | None, other: str) -> str:
    if one is None:
        return other
    return (
        f"({one}) and {other}"
        if " or " in one and not one.startswith("(")
        else f"{one} and {other}"
    )


def _from(one: PipPackage, kept: Kept, marker: str | None) -> PipPackage:
    return replace(
        one, version=str(kept.version), hashes=(kept.sha256,), index=WHEELHOUSE, marker=marker
    )


def _best(
    one: PipPackage,
    loaded: LoadedRecipe,
    kept: Iterable[Kept],
    platform: Platform,
    minor: tuple[int, int],
    locked: Mapping[str, str],
) -> Kept | None:
    """Return the newest wheel that can stand for a package there, None if there is none."""
    target = target_of(loaded.recipe, platform)
    found = [
        each
        for each in kept
        if each.name == one.name
        and Version(archive.official(str(each.version))) == Version(one.version)
        and usable([_wheel(each)], target, minor)
        and _is_asked_for(each, loaded)
        and stale(each, locked) is None
    ]
    return max(found, key=lambda each: each.statement.started, default=None)


def _wheel(kept: Kept) -> Wheel:
    return Wheel(
        filename=kept.path.name,
        url=kept.path.as_uri(),
        sha256=kept.sha256,
        size=None,
        uploaded=None,
    )


def _is_asked_for(kept: Kept, loaded: LoadedRecipe) -> bool:
    """Say whether a wheel was built with what the recipe asks for now."""
    build, told = loaded.recipe.build, kept.statement.parameters
    if build.wish is not None and told["compiler"] != build.wish.own:
        return False
    if build.cuda_archs and told["cuda"] and set(told["cudaArchs"]) != {*build.cuda_archs}:
        return False
    return build.cxx_abi is None or told["cxxAbi"] == build.cxx_abi


def _check_requirements(
    kept: Kept, locked: Mapping[str, str], where: Mapping[str, str], lock: Lock
) -> None:
    """Refuse a wheel that requires what the lock does not have.

    Raises:
        Refused: It does.
    """
    unmet = [line for line in _requirements(kept) if not _is_met(line, locked, where)]
    if unmet:
        message = (
            f"{kept.path.name} requires {', '.join(unmet)}, which the lock of {lock.name} lacks"
        )
        hint = "name that under `pypi` of the recipe, or rebuild another version"
        raise Refused(message, hint=hint)


def _requirements(kept: Kept) -> Iterator[str]:
    with zipfile.ZipFile(kept.path) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode(errors="replace")
    yield from parse(text).requires


def _is_met(line: str, locked: Mapping[str, str], where: Mapping[str, str]) -> bool:
    need = Requirement(line)
    if need.marker is not None and not need.marker.evaluate({**where, "extra": ""}):
        return True
    version = locked.get(canonicalize_name(need.name))
    return version is not None and need.specifier.contains(version, prereleases=True)


def _minor(python: str) -> tuple[int, int]:
    numbers = [int(part) for part in python.split(".")[:2]]
    return numbers[0], numbers[1]
