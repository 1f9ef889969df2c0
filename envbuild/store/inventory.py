"""What a store holds, told to a person: environments, generations, packages, sizes."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from envbuild.errors import StoreError
from envbuild.store import manifest as manifests
from envbuild.store import moved, needs, present
from envbuild.store.collect import is_pinned
from envbuild.store.layout import Generation, Place, Store
from envbuild.store.manifest import InstalledPackage, Interpreter, Manifest

_BLOCK_BYTES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """One environment in a line.

    Attributes:
        name: Its name.
        current: ID of the current generation, None if there is none.
        generations: Number of complete generations.
        size: Bytes of the current generation's files; None where it cannot be read.
        platform: conda subdir, empty where unknown.
        python: Version of its Python, empty where it has none or it is unknown.
        created: When the current generation was made, RFC 3339, empty where unknown.
        problem: What is wrong with it, empty if nothing.
    """

    name: str
    current: str | None
    generations: int
    size: int | None = None
    platform: str = ""
    python: str = ""
    created: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One generation in a line.

    Attributes:
        identifier: Its ID.
        current: Whether it is the current one.
        pinned: Whether collection keeps it.
        created: When it was made, RFC 3339; empty where its manifest is damaged.
        size: Bytes of its files.
    """

    identifier: str
    current: bool
    pinned: bool
    created: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Details:
    """What one generation is.

    Attributes:
        generation: Its paths.
        current: Whether it is the current one.
        manifest: What it was made from and what it holds.
        python: Version of its Python, empty if it has none.
        channels: Addresses that its conda half came from, sorted; `host` for this machine's Python.
        indexes: Names of the indexes that its PyPI half came from; empty text is the default one.
        own_size: Bytes on the disk that only this generation uses.
        needs: What a host must have, as `target.Needs`; None if `needs.json` cannot be read.
        reproducible: Sentences that say how far another machine gets the same.
    """

    generation: Generation
    current: bool
    manifest: Manifest
    python: str
    channels: tuple[str, ...]
    indexes: tuple[str, ...]
    own_size: int
    needs: dict[str, Any] | None
    reproducible: tuple[str, ...]


def summaries(store: Store) -> tuple[Summary, ...]:
    """Return every environment of a store, by name; a damaged one says so."""
    return tuple(_summary(store.place(name)) for name in present.names(store))


def listed(place: Place) -> tuple[Listed, ...]:
    """Return an environment's complete generations, the oldest first.

    Raises:
        StoreError: `current` is damaged.
    """
    here = present.current(place)
    return tuple(_listed(generation, here) for generation in present.generations(place))


def packages(generation: Generation) -> tuple[InstalledPackage, ...]:
    """Return the packages of a generation, conda's first.

    Raises:
        StoreError: Its manifest is missing or damaged.
    """
    return manifests.read(generation).packages


def details(generation: Generation) -> Details:
    """Return what a generation is.

    Raises:
        StoreError: Its manifest is missing or damaged, or `current` is.
    """
    manifest = manifests.read(generation)
    conda = [package for package in manifest.packages if package.kind == "conda"]
    pypi = [package for package in manifest.packages if package.kind == "pypi"]
    return Details(
        generation=generation,
        current=present.current(generation.place) == generation,
        manifest=manifest,
        python=python_version(manifest),
        channels=("host",) if manifest.interpreter else _channels(conda),
        indexes=tuple(sorted({package.source for package in pypi})),
        own_size=disk_bytes([generation]),
        needs=_needs(generation),
        reproducible=tuple(_reproducible(manifest, conda)),
    )


def python_version(manifest: Manifest) -> str:
    """Return the version of a generation's Python, empty if it has none."""
    if manifest.interpreter is not None:
        return manifest.interpreter.version
    found = (package.version for package in manifest.packages if package.name == "python")
    return next(found, "")


def disk_bytes(generations: Iterable[Generation]) -> int:
    """Return the bytes of the disk that only these generations use: what their removal frees.

    A file whose content is also linked from a cache or from another generation counts nothing.
    """
    links: dict[tuple[int, int], int] = {}
    total = 0
    for generation in generations:
        for status in _statuses(os.fspath(generation.prefix)):
            key = (status.st_dev, status.st_ino)
            links[key] = links.get(key, 0) + 1
            if stat.S_ISDIR(status.st_mode) or links[key] == status.st_nlink:
                total += status.st_blocks * _BLOCK_BYTES
    return total


def _statuses(folder: str) -> Iterator[os.stat_result]:
    """Yield the status of everything below a folder; links are not followed.

    What is removed meanwhile counts nothing.
    """
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                yield entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    yield from _statuses(entry.path)


def _summary(place: Place) -> Summary:
    count = 0
    here: Generation | None = None
    try:
        count = len(present.generations(place))
        here = present.current(place)
        if here is None:
            return Summary(name=place.name, current=None, generations=count)
        manifest = manifests.read(here)
    except (StoreError, OSError) as error:
        identifier = here.identifier if here else None
        problem = error.message if isinstance(error, StoreError) else str(error)
        return Summary(name=place.name, current=identifier, generations=count, problem=problem)
    said = moved.text(here, manifest.prefix)
    return Summary(
        name=place.name,
        current=here.identifier,
        generations=count,
        size=manifest.file_bytes,
        platform=manifest.platform,
        python=python_version(manifest),
        created=manifest.created,
        problem=f"{said}: {moved.remedy(here)}" if said else "",
    )


def _listed(generation: Generation, here: Generation | None) -> Listed:
    created, size = "", 0
    try:
        manifest = manifests.read(generation)
    except StoreError:
        pass
    else:
        created, size = manifest.created, manifest.file_bytes
    return Listed(
        identifier=generation.identifier,
        current=generation == here,
        pinned=is_pinned(generation),
        created=created,
        size=size,
    )


def _channels(conda: Iterable[InstalledPackage]) -> tuple[str, ...]:
    return tuple(sorted({package.source.rsplit("/", 2)[0] for package in conda}))


def _needs(generation: Generation) -> dict[str, Any] | None:
    try:
        return asdict(needs.read(generation))
    except StoreError:
        return None


def _reproducible(manifest: Manifest, conda: list[InstalledPackage]) -> Iterator[str]:
    if manifest.interpreter is not None:
        yield from _host_python(manifest.interpreter)
        yield "Each wheel of the PyPI half is checked against the lock."
        return
    weak = [package.name for package in conda if package.weak]
    yield f"Every {manifest.platform} machine gets the same archives, checked against the lock."
    if weak:
        yield f"The lock knows these by md5 and size only: {', '.join(weak)}."


def _host_python(interpreter: Interpreter) -> Iterator[str]:
    yield (
        f"The interpreter is this machine's: {interpreter.path}, Python {interpreter.version}, "
        f"digest {interpreter.digest}."
    )
    yield "Another machine gets the same from the same files of the interpreter, else another ID."
    if interpreter.libraries:
        yield (
            "These libraries are the machine's own and in no digest: "
            f"{', '.join(interpreter.libraries)}."
        )
