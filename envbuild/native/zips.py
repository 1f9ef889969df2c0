"""Opening zip archives from strangers: what they claim is compared before anything is unpacked."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_END = b"PK\x05\x06"
_END_BYTES = 22
_MOST_COMMENT_BYTES = 1 << 16
_DIRECTORY_SIZE_AT = 12
_LOCAL_HEADER_BYTES = 30
_MOST_DIRECTORY_BYTES = 8 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FREE_BYTES = 256 << 20
_MOST_RATIO = 200


class HostileArchive(ValueError):
    """An archive that no tool makes."""


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose table is small enough, and whose members do not overlap.

    Raises:
        HostileArchive: Its table claims what cannot be.
        zipfile.BadZipFile: It is none.
    """
    _check_directory(path)
    with zipfile.ZipFile(path) as archive:
        _check_members(archive, path.stat().st_size)
        yield archive


def limit(archive_bytes: int) -> int:
    """Return how much an archive of a size may unpack to (bytes)."""
    return _FREE_BYTES + _MOST_RATIO * archive_bytes


def _check_directory(path: Path) -> None:
    """Refuse a central directory that would fill the memory; `zipfile` reads all of it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - _MOST_COMMENT_BYTES - _END_BYTES, 0))
        tail = file.read()
    at = tail.rfind(_END)
    claimed = int.from_bytes(tail[at + _DIRECTORY_SIZE_AT :][:4], "little") if at >= 0 else 0
    if claimed == 0xFFFFFFFF:  # noqa: PLR2004 - zip64: the real size stands before it
        claimed = int.from_bytes(tail[max(at - 76 + 40, 0) :][:8], "little")
    if claimed > _MOST_DIRECTORY_BYTES:
        message = f"its table of members has {claimed} bytes"
        raise HostileArchive(message)


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    end, total = 0, 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.compress_type not in _METHODS:
            message = f"{info.filename} is compressed by method {info.compress_type}"
            raise HostileArchive(message)
        if info.header_offset < end:
            message = f"{info.filename} overlaps the member before it"
            raise HostileArchive(message)
        end = info.header_offset + _LOCAL_HEADER_BYTES + len(info.orig_filename.encode())
        end += info.compress_size
        total += info.file_size
    if end > size:
        message = "a member reaches beyond the archive's end"
        raise HostileArchive(message)
    if total > limit(size):
        message = f"it unpacks to {total} bytes, {total // max(size, 1)} times its size"
        raise HostileArchive(message)
