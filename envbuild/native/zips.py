"""Opening zip archives from strangers: what they claim is compared before anything is unpacked."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

_LOCAL_HEADER_BYTES = 30
_MOST_READ_BYTES = 8 << 20
_ENCRYPTED = 1  # of a member's flags
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FREE_BYTES = 256 << 20
_MOST_RATIO = 200


class HostileArchive(ValueError):
    """An archive that no tool makes."""


class _Bounded:
    """A file of which nobody reads more than 8 MiB at once.

    `zipfile` reads the whole table of members, of whatever size the archive says that it has.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek = stream.seek
        self.tell = stream.tell
        self.seekable = stream.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_READ_BYTES:
            message = f"its table of members has {size} bytes"
            raise HostileArchive(message)
        return self._stream.read(size)


@contextmanager
def opened(stream: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose table is small enough, and whose members do not overlap.

    Args:
        stream: The archive, seekable; it stays the caller's.

    Raises:
        HostileArchive: Its table claims what cannot be.
        zipfile.BadZipFile: It is none.
    """
    with zipfile.ZipFile(cast("IO[bytes]", _Bounded(stream))) as archive:
        _check_members(archive, size_of(stream))
        yield archive


def size_of(stream: BinaryIO) -> int:
    """Return how long a file is (bytes), and leave it where it is."""
    at = stream.tell()
    size = stream.seek(0, 2)
    stream.seek(at)
    return size


def limit(archive_bytes: int) -> int:
    """Return how much an archive of a size may unpack to (bytes)."""
    return _FREE_BYTES + _MOST_RATIO * archive_bytes


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    end, total = 0, 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.compress_type not in _METHODS:
            message = f"{info.filename} is compressed by method {info.compress_type}"
            raise HostileArchive(message)
        if info.flag_bits & _ENCRYPTED:
            message = f"{info.filename} is encrypted"
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
