"""Channels of one's own: a folder of conda archives with its index, and the store's.

::

    STORE/channels/local/linux-64/NAME-VERSION-BUILD.conda   what `channel add` took
    STORE/channels/local/linux-64/repodata.json              what `channel index` writes

The folder is a channel for whatever serves it over http; a recipe names it by a name whose
address `ENVBUILD_CHANNEL_MIRRORS` gives, so that no lock holds a path of one machine.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.channel import inspect
from envbuild.channel.added import added_pythons
from envbuild.channel.archive import digests
from envbuild.errors import InputError, StoreError
from envbuild.target import PLATFORMS
from envbuild.tools.files import make_folder, sha256_file, write_atomic
from envbuild.tools.locks import exclusive

PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """One package of a store's channels.

    Attributes:
        channel: `host` (added interpreters) or `local` (added archives).
        subdir: Platform or `noarch`.
        name: Package name.
        version: Version text.
        build: Build string.
        path: The archive.
        size: Bytes.
        source: The interpreter that it was made of, or None.
    """

    channel: str
    subdir: str
    name: str
    version: str
    build: str
    path: Path
    size: int
    source: Path | None = None


def folder_of(channels: Path) -> Path:
    """Return the folder of added archives in a store's folder of channels."""
    return channels / "local"


def add(
    paths: Sequence[Path], channels: Path, *, patience_s: float = PATIENCE_S
) -> tuple[Path, ...]:
    """Check archives, copy them into the store and index it; return where they are now.

    Nothing is copied unless every archive is good and new, or there with the same bytes.

    Raises:
        InputError: An archive is bad; every bad one is named.
        StoreError: Another archive of that name is there, or the channel is held too long.
    """
    root = folder_of(channels)
    targets = [root / index["subdir"] / path.name for path, index in _all(paths, inspect.check)]
    make_folder(root)
    with exclusive(root / "lock", timeout_s=patience_s, purpose="channel add"):
        for path, target in zip(paths, targets, strict=True):
            if target.exists() and sha256_file(target) != sha256_file(path):
                message = f"{target.name} is in the store with other content"
                raise StoreError(message, hint="give the new one another build number")
        for path, target in zip(paths, targets, strict=True):
            make_folder(target.parent)
            partial = target.with_name(f".{target.name}.partial")
            shutil.copyfile(path, partial)
            partial.chmod(0o644)
            partial.replace(target)
        index(root)
    return tuple(targets)


def index(folder: Path) -> tuple[Path, ...]:
    """Write `repodata.json` for every subdir of a channel; return the files written.

    The same archives give the same bytes: no clock, no order of a folder. `noarch` is always
    written, since engines refuse a channel without it; a platform's folder also where it is empty.

    Raises:
        InputError: An archive is bad (every one is named), or lies in another subdir than its own.
        OSError: The folder is not there or cannot be written.
    """
    folders = [path for path in folder.iterdir() if path.is_dir()]
    subdirs = {path.name for path in folders if path.name in PLATFORMS or _archives(path)}
    texts = {name: _repodata(folder / name, name) for name in sorted({*subdirs, "noarch"})}
    for name, text in texts.items():
        make_folder(folder / name)
        write_atomic(folder / name / "repodata.json", text)
    return tuple(folder / name / "repodata.json" for name in texts)


def held(channels: Path) -> tuple[Held, ...]:
    """Return what a store's channels hold: interpreters first, then archives by name.

    Raises:
        InputError: An archive in the store is damaged.
        StoreError: The list of interpreters is.
    """
    return (*_held_pythons(channels), *_held_archives(folder_of(channels)))


def _held_pythons(channels: Path) -> Iterator[Held]:
    for python in added_pythons(channels):
        if python.archive is not None and python.archive.is_file():
            yield Held(
                channel="host",
                subdir=python.platform,
                name="python",
                version=python.version,
                build=python.archive.name.removesuffix(".conda").rsplit("-", 1)[1],
                path=python.archive,
                size=python.archive.stat().st_size,
                source=python.path,
            )


def _held_archives(root: Path) -> Iterator[Held]:
    if not root.is_dir():
        return
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        for path, index in _all(_archives(folder), inspect.index_of):
            yield Held(
                channel="local",
                subdir=folder.name,
                name=index["name"],
                version=index["version"],
                build=index["build"],
                path=path,
                size=path.stat().st_size,
            )


def _archives(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.endswith(inspect.SUFFIXES) and not path.name.startswith(".")
    )


def _all(
    paths: Sequence[Path], read: Callable[[Path], dict[str, Any]]
) -> list[tuple[Path, dict[str, Any]]]:
    """Read every archive; raise once for all that are bad."""
    good: list[tuple[Path, dict[str, Any]]] = []
    bad: list[InputError] = []
    for path in paths:
        try:
            good.append((path, read(path)))
        except InputError as error:
            bad.append(error)
    if len(bad) == 1:
        raise bad[0]
    if bad:
        message = f"{len(bad)} archives cannot be taken"
        raise InputError(message, problems=[error.message for error in bad])
    return good


def _repodata(folder: Path, subdir: str) -> str:
    kinds: dict[str, dict[str, Any]] = {"packages": {}, "packages.conda": {}}
    for path, index in _all(_archives(folder), inspect.index_of):
        if index["subdir"] != subdir:
            message = f"{path}: it belongs to {index['subdir']}"
            raise InputError(message, source=str(path))
        written = digests(path)
        kind = "packages.conda" if path.name.endswith(".conda") else "packages"
        kinds[kind][path.name] = {
            **index,
            "md5": written.md5,
            "sha256": written.sha256,
            "size": written.size,
        }
    repodata = {"info": {"subdir": subdir}, **kinds, "removed": [], "repodata_version": 1}
    return json.dumps(repodata, indent=1, sort_keys=True) + "\n"
