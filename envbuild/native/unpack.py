"""Unpacking one member: its digest, and the file itself where it is an ELF file."""

import hashlib
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, BinaryIO, Protocol, cast

from envbuild.native.sparse import Sparse
from envbuild.native.tables import MAGIC

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 16 << 20
_QUEUED = 4
_MOST_KEPT_BYTES = 16 << 20


class Readable(Protocol):
    """What can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, none at the end."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Unpacked:
    """One member's content.

    Attributes:
        size: Bytes that it really has.
        sha256: Hex digest.
        elf: The file, seekable, where it is an ELF file; else None.
        data: Its bytes, where they were to be kept and are no more than 16 MiB; else None.
    """

    size: int
    sha256: str
    elf: BinaryIO | None = None
    data: bytes | None = None


class _Writable(Protocol):
    """What can be written to."""

    def write(self, piece: bytes, /) -> object:
        """Take more bytes."""
        ...


Open = Callable[[], AbstractContextManager[Readable]]
"""Opens a member once more."""


@contextmanager
def unpacked(
    entry: Readable, *, keep: bool = False, again: Open | None = None
) -> Iterator[Unpacked]:
    """Read a member to its end, once.

    ELF files lie in memory up to 16 MiB, larger ones in a temporary file, since their tables lie
    at their end. Hashing and writing are done while the next piece is decompressed.

    Args:
        entry: The member.
        keep: Whether its bytes are wanted.
        again: Opens it once more; with it, the GPU code in an ELF file is not kept.
    """
    first = entry.read(_CHUNK_BYTES)
    while 0 < len(first) < len(MAGIC) and (more := entry.read(_CHUNK_BYTES)):
        first += more
    is_elf = first.startswith(MAGIC)
    if not (is_elf or keep):
        size, digest = _copy(first, entry, None)
        yield Unpacked(size=size, sha256=digest)
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as spooled:
        file = cast("IO[bytes]", spooled)
        if again is not None and not keep:
            sparse = Sparse(file, partial(_pieces, again))
            size, digest = _copy(first, entry, sparse)
            sparse.finish()
            yield Unpacked(size=size, sha256=digest, elf=cast("BinaryIO", sparse))
            return
        size, digest = _copy(first, entry, file)
        file.seek(0)
        data = file.read() if keep and size <= _MOST_KEPT_BYTES else None
        elf = cast("BinaryIO", file) if is_elf else None
        yield Unpacked(size=size, sha256=digest, elf=elf, data=data)


def _pieces(again: Open) -> Iterator[bytes]:
    with again() as entry:
        while piece := entry.read(_CHUNK_BYTES):
            yield piece


def _copy(first: bytes, entry: Readable, file: _Writable | None) -> tuple[int, str]:
    """Hash a member and write it where it is to be kept; return its size and digest."""
    digest = hashlib.sha256(first)
    if file is not None:
        file.write(first)
    size = len(first)
    chunk = entry.read(_CHUNK_BYTES) if first else b""
    if not chunk:
        return size, digest.hexdigest()
    chunks: queue.Queue[bytes] = queue.Queue(_QUEUED)
    failed: list[OSError] = []

    def work() -> None:
        while piece := chunks.get():
            if failed:
                continue
            digest.update(piece)
            try:
                if file is not None:
                    file.write(piece)
            except OSError as error:  # no room: said by the thread that reads
                failed.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while chunk and not failed:
            size += len(chunk)
            chunks.put(chunk)
            chunk = entry.read(_CHUNK_BYTES)
    finally:
        chunks.put(b"")
        worker.join()
    if failed:
        raise failed[0]
    return size, digest.hexdigest()
