"""The wheels that uv's answer names, and which of them a target can use."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envbuild.errors import FetchError, NoSolution
from envbuild.target import MACHINES, Platform, Target

_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_OLDEST = {"linux-64": 5, "linux-aarch64": 17}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """One wheel of a release.

    Attributes:
        filename: Its name.
        url: Where the index has it, possibly with a login; never written into a lock.
        sha256: Hex digest, or None where the index gives none.
        size: Bytes, or None where the index does not say.
        uploaded: Upload time (UTC), or None where the index does not say.
    """

    filename: str
    url: str
    sha256: str | None
    size: int | None
    uploaded: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One distribution of uv's answer.

    Attributes:
        name: Normalized name.
        version: Version text.
        marker: When it is needed, in a universal answer.
        wheels: All wheels that uv names.
    """

    name: str
    version: str
    marker: str | None
    wheels: tuple[Wheel, ...]


def releases(pylock: str) -> tuple[Release, ...]:
    """Return what a `pylock.toml` of uv's holds.

    Raises:
        FetchError: A distribution comes from an address or a folder instead of an index.
    """
    return tuple(_release(row) for row in tomllib.loads(pylock).get("packages", ()))


def _release(row: Mapping[str, Any]) -> Release:
    name = str(row["name"])
    if "version" not in row or any(key in row for key in ("archive", "vcs", "directory")):
        message = f"{name} comes from an address of its own, not from an index"
        raise FetchError(message, hint="name a version of it, and an index that has it")
    return Release(
        name=name,
        version=str(row["version"]),
        marker=row.get("marker"),
        wheels=tuple(_wheel(wheel) for wheel in row.get("wheels", ())),
    )


def _wheel(row: Mapping[str, Any]) -> Wheel:
    url = str(row.get("url") or row.get("path"))
    uploaded = row.get("upload-time")
    return Wheel(
        filename=str(row.get("name") or unquote(urlsplit(url).path.rpartition("/")[2])),
        url=url,
        sha256=row.get("hashes", {}).get("sha256"),
        size=row.get("size"),
        uploaded=uploaded.astimezone(UTC) if uploaded is not None else None,
    )


def usable(wheels: Iterable[Wheel], target: Target, python: tuple[int, int]) -> tuple[Wheel, ...]:
    """Return the wheels whose tags fit a platform, its glibc and a CPython (major, minor)."""
    tags = _tags(target.platform, target.glibc, python)
    return tuple(wheel for wheel in wheels if not tags.isdisjoint(_tags_of(wheel.filename)))


@cache
def _tags_of(filename: str) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return frozenset()


@cache
def _tags(platform: str, glibc: str, python: tuple[int, int]) -> frozenset[Tag]:
    platforms = platform_tags(platform, glibc)
    own = cpython_tags(python, platforms=platforms)
    pure = compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
    return frozenset((*own, *pure))


def platform_tags(platform: str, glibc: str) -> tuple[str, ...]:
    """Return the platform tags that a glibc (`2.28`) can use, newest first."""
    machine = MACHINES["linux-64"] if platform == "linux-64" else MACHINES["linux-aarch64"]
    major, _, rest = glibc.partition(".")
    newest = int(rest.partition(".")[0] or 0) if major == "2" else 0
    found: list[str] = []
    for minor in range(newest, _OLDEST[platform] - 1, -1):
        found.append(f"manylinux_2_{minor}_{machine}")
        if legacy := _LEGACY.get((2, minor)):
            found.append(f"{legacy}_{machine}")
    return (*found, f"linux_{machine}")


def without(release: Release, python: str, platform: Platform) -> str:
    """Return the sentence that a release has no wheel for a Python (`3.13`) and platform."""
    return f"{release.name} {release.version} has no wheel for Python {python} on {platform}"


def refuse(missing: Sequence[str]) -> None:
    """Refuse what lacks wheels, if anything does.

    Raises:
        NoSolution: `missing` has a sentence.
    """
    if missing:
        message = missing[0] if len(missing) == 1 else "wheels are missing for what is wanted"
        raise NoSolution(
            message,
            hint="take another version, or narrow `python` and `target` of the recipe",
            details="\n".join(missing if len(missing) > 1 else ()),
        )
