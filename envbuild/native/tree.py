"""Members of what binaries come in: a wheel, a conda package, a prefix, or one file."""

import bz2
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from envbuild.native import inflate, tar, zips
from envbuild.native.tables import MAGIC
from envbuild.native.unpack import Open, Readable, unpacked

_KEPT_OF_WHEEL = frozenset({"RECORD", "WHEEL", "variant.json"})
_KEPT_OF_CONDA = frozenset({"info/paths.json", "info/index.json"})
_MOST_MEMBERS = 1_000_000
_MOST_NAME_BYTES = 4096


class Unreadable(Exception):
    """What was given is no wheel, conda package, folder or ELF file, or is damaged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One regular file, or a link.

    Attributes:
        path: Relative to the tree.
        elf: The file, seekable, where it is an ELF file; else None. It is closed when the next
            member is asked for.
        sha256: Hex digest of a package's file, None for a folder's.
        size: Bytes.
        data: Content of the files in which a package describes itself, else None.
        target: What a link points to, None for a file.
        problem: What is wrong with its name or kind, or None.
    """

    path: str
    elf: BinaryIO | None = None
    sha256: str | None = None
    size: int = 0
    data: bytes | None = None
    target: str | None = None
    problem: str | None = None


def listed(root: Path, paths: Iterable[str]) -> Iterator[Member]:
    """Yield some files and links of a folder.

    Args:
        root: The folder.
        paths: Their paths in it; what is gone is left out.

    Raises:
        Unreadable: One cannot be read.
    """
    for path in paths:
        try:
            yield from _of_listed(root / path, path)
        except OSError as error:
            message = f"{root / path}: {error.strerror or error}"
            raise Unreadable(message) from error


def _of_listed(file: Path, path: str) -> Iterator[Member]:
    if file.is_symlink():
        yield Member(path=path, target=f"{file.readlink()}")
    elif file.is_file():
        with file.open("rb") as opened:
            yield Member(
                path=path, elf=opened if _is_elf(opened) else None, size=file.stat().st_size
            )


def members(path: Path) -> Iterator[Member]:
    """Yield the regular files of a wheel, a conda package or a folder, or the one file.

    Args:
        path: What to read; what it is follows from its name.

    Raises:
        Unreadable: It cannot be read as that.
    """
    try:
        if path.is_dir():
            yield from _of_folder(path)
            return
        with path.open("rb") as stream:
            yield from of_stream(stream, name=f"{path}")
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise Unreadable(message) from error


def of_stream(stream: BinaryIO, *, name: str) -> Iterator[Member]:
    """Yield the files of a wheel or a conda package, or the one file.

    Args:
        stream: The file, seekable; it stays the caller's.
        name: Its name; what it is follows from that.

    Raises:
        Unreadable: It cannot be read as that.
        OSError: The file cannot be read, or there is no room for what is unpacked.
    """
    from zstandard import ZstdError

    try:
        if name.endswith((".whl", ".zip")):
            yield from _of_zip(stream)
        elif name.endswith(".conda"):
            yield from _of_conda(stream)
        elif name.endswith(".tar.bz2"):
            with bz2.open(stream) as unpacked_stream:
                yield from _of_tar(
                    cast("IO[bytes]", unpacked_stream), zips.limit(zips.size_of(stream))
                )
        elif _is_elf(stream):
            yield Member(path=PurePosixPath(name).name, elf=stream)
        else:
            message = f"{name} is no ELF file, wheel, conda package or folder"
            raise Unreadable(message)
    except zips.HostileArchive as error:
        message = f"{name}: refused: {error}"
        raise Unreadable(message) from error
    except OSError as error:
        if error.errno is not None:
            raise
        message = f"{name}: not a whole archive: {error}"  # bzip2's own complaints are OSErrors too
        raise Unreadable(message) from error
    except (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, ZstdError, ValueError) as error:
        message = f"{name}: not a whole archive: {error}"
        raise Unreadable(message) from error


def _of_folder(root: Path) -> Iterator[Member]:
    """Yield a folder's files and links; a file with several names there is yielded once."""
    seen: set[tuple[int, int]] = set()
    for below, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = f"{below}/{name}"
            status = os.lstat(path)
            relative = os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                yield Member(path=relative, target=f"{Path(path).readlink()}")
                continue
            identity = (status.st_dev, status.st_ino)
            if not stat.S_ISREG(status.st_mode) or identity in seen:
                continue
            seen.add(identity) if status.st_nlink > 1 else None
            with Path(path).open("rb") as file:
                yield Member(
                    path=relative, elf=file if _is_elf(file) else None, size=status.st_size
                )


def _of_zip(stream: BinaryIO) -> Iterator[Member]:
    with zips.opened(stream) as archive:
        seen: set[str] = set()
        for info in archive.infolist():
            if info.filename.endswith("/"):
                continue
            problem = "twice in the archive" if info.filename in seen else None
            seen.add(info.filename)
            if stat.S_ISLNK(info.external_attr >> 16):
                problem = "a symbolic link, which a wheel cannot hold"
            kept = PurePosixPath(info.filename)
            keep = kept.name in _KEPT_OF_WHEEL and kept.parent.name.endswith(".dist-info")
            again = partial(inflate.opened, archive, stream, info)
            with again() as entry:
                yield from _member(info.filename, entry, keep=keep, problem=problem, again=again)


def _member(
    path: str,
    entry: Readable,
    *,
    keep: bool,
    problem: str | None = None,
    again: Open | None = None,
) -> Iterator[Member]:
    with unpacked(entry, keep=keep, again=again) as content:
        yield Member(
            path=path,
            elf=content.elf,
            sha256=content.sha256,
            size=content.size,
            data=content.data,
            problem=_name_problem(path) or problem,
        )


def _name_problem(path: str) -> str | None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        return "a name that leads out of the package"
    if not path or "\0" in path or "\\" in path or len(path) > _MOST_NAME_BYTES:
        return "a name that no file can have"
    return None


def _of_conda(stream: BinaryIO) -> Iterator[Member]:
    from zstandard import ZstdDecompressor

    with zips.opened(stream) as archive:
        parts = [name for name in archive.namelist() if name.endswith(".tar.zst")]
        found = [name for name in parts if name.startswith("pkg-")]
        if len(found) != 1:
            message = f"a conda package holds one pkg-*.tar.zst, this one {len(found)}"
            raise ValueError(message)
        limit = zips.limit(zips.size_of(stream))
        for name in (*(part for part in parts if part.startswith("info-")), found[0]):
            with (
                archive.open(name) as entry,
                ZstdDecompressor().stream_reader(entry, read_across_frames=True) as content,
            ):
                yield from _of_tar(cast("IO[bytes]", content), limit)


def _of_tar(stream: IO[bytes], limit: int) -> Iterator[Member]:
    """Yield the files and links of a conda package's tar stream, its `info/` left out."""
    total = 0
    for count, member in enumerate(tar.members(stream)):
        total += member.size
        if total > limit or count > _MOST_MEMBERS:
            message = f"it unpacks to more than {limit} bytes or {_MOST_MEMBERS} files"
            raise zips.HostileArchive(message)
        problem = _name_problem(member.path)
        if member.kind == "link":
            yield Member(path=member.path, target=member.target, problem=problem)
        elif member.kind == "other":
            yield Member(path=member.path, problem="neither a file nor a link")
        elif member.kind == "file":
            keep = member.path in _KEPT_OF_CONDA
            if not keep and member.path.startswith("info/"):
                continue
            yield from _member(member.path, member.content, keep=keep)


def _is_elf(file: BinaryIO) -> bool:
    start = file.read(len(MAGIC))
    file.seek(0)
    return start == MAGIC
