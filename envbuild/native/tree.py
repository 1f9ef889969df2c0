"""Members of what binaries come in: a wheel, a conda package, a prefix, or one file.

Compressed members are unpacked into a temporary file, one at a time, since an ELF file's tables lie
at its end.
"""

import bz2
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from envbuild.native.elf import MAGIC

_IN_MEMORY_BYTES = 64 << 20


class Unreadable(Exception):
    """What was given is no wheel, conda package, folder or ELF file, or is damaged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One regular file.

    Attributes:
        path: Relative to the tree.
        elf: The file, seekable, where it is an ELF file; else None. It is closed when the next
            member is asked for.
    """

    path: str
    elf: BinaryIO | None


def members(path: Path) -> Iterator[Member]:
    """Yield the regular files of a wheel, a conda package or a folder, or the one file.

    Args:
        path: What to read; what it is follows from its name.

    Raises:
        Unreadable: It cannot be read as that.
    """
    from zstandard import ZstdError

    try:
        if path.is_dir():
            yield from _of_folder(path)
        elif path.suffix in (".whl", ".zip"):
            yield from _of_zip(path)
        elif path.suffix == ".conda":
            yield from _of_conda(path)
        elif path.name.endswith(".tar.bz2"):
            with path.open("rb") as raw, bz2.open(raw) as stream:
                yield from _of_tar(cast("IO[bytes]", stream))
        else:
            yield from _of_file(path)
    except (OSError, EOFError, RuntimeError, NotImplementedError) as error:
        message = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise Unreadable(message) from error
    except (zipfile.BadZipFile, tarfile.TarError, ZstdError) as error:
        message = f"{path}: not a whole archive: {error}"
        raise Unreadable(message) from error


def _of_file(path: Path) -> Iterator[Member]:
    with path.open("rb") as file:
        if not _is_elf(file):
            message = f"{path} is no ELF file, wheel, conda package or folder"
            raise Unreadable(message)
        yield Member(path=path.name, elf=file)


def _of_folder(root: Path) -> Iterator[Member]:
    """Yield a folder's files; a file with several names there is yielded once."""
    seen: set[tuple[int, int]] = set()
    for below, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = f"{below}/{name}"
            status = os.lstat(path)
            identity = (status.st_dev, status.st_ino)
            if not stat.S_ISREG(status.st_mode) or identity in seen:
                continue
            seen.add(identity) if status.st_nlink > 1 else None
            with Path(path).open("rb") as file:
                found = file if _is_elf(file) else None
                yield Member(path=os.path.relpath(path, root), elf=found)


def _of_zip(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            with archive.open(info) as entry, _unpacked(entry) as file:
                yield Member(path=info.filename, elf=file)


def _of_conda(path: Path) -> Iterator[Member]:
    from zstandard import ZstdDecompressor

    with zipfile.ZipFile(path) as archive:
        parts = [name for name in archive.namelist() if name.endswith(".tar.zst")]
        found = [name for name in parts if name.startswith("pkg-")]
        if len(found) != 1:
            message = f"{path} must hold one pkg-*.tar.zst, and holds {len(found)}"
            raise Unreadable(message)
        with (
            archive.open(found[0]) as entry,
            ZstdDecompressor().stream_reader(entry, read_across_frames=True) as stream,
        ):
            yield from _of_tar(cast("IO[bytes]", stream))


def _of_tar(stream: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None and not member.name.startswith("info/"):
                with _unpacked(content) as file:
                    yield Member(path=member.name, elf=file)


@contextmanager
def _unpacked(entry: IO[bytes]) -> Iterator[BinaryIO | None]:
    """Yield an ELF file in a place where it can be read in any order, None for other files."""
    start = entry.read(len(MAGIC))
    if start != MAGIC:
        yield None
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
        file.write(start)
        shutil.copyfileobj(entry, file, 1 << 20)
        file.seek(0)
        yield cast("BinaryIO", file)


def _is_elf(file: io.BufferedReader) -> bool:
    start = file.read(len(MAGIC))
    file.seek(0)
    return start == MAGIC
