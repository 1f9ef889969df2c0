"""Files behind http, read in parts."""

import io
from collections.abc import Callable
from dataclasses import dataclass

from envbuild.errors import FetchError

_AHEAD_BYTES = 64 << 10
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Bytes of a file.

    Attributes:
        data: The bytes.
        start: Where in the file they begin.
        total: Bytes of the whole file, None where the server does not say.
        mark: What the server calls this content (ETag); empty where it does not.
    """

    data: bytes
    start: int
    total: int | None
    mark: str


class PartedFile(io.RawIOBase):
    """A file behind http, read in parts: its end once, then what is asked for, and a bit ahead."""

    def __init__(self, read: Callable[[int, int], Part], size: int, name: str) -> None:
        """Keep how to read; nothing is fetched yet.

        Args:
            read: Returns the bytes from a start to before a stop.
            size: Bytes of the whole file.
            name: What messages call it.
        """
        super().__init__()
        self._read = read
        self._size = size
        self._name = name
        self._at = 0
        self._tail: Part | None = None
        self._window: Part | None = None
        self._mark = ""
        self.fetched_bytes = 0

    def seekable(self) -> bool:
        """Say yes: parts are read anywhere."""
        return True

    def readable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Return the place, in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place, in bytes."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; fewer only at the end.

        Raises:
            FetchError: They cannot be had, are more than 16 MiB at once, or are of another file
                than the bytes before.
        """
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if self._at >= stop:
            return b""
        data = self._held(self._at, stop)
        self._at += len(data)
        return data

    def _held(self, start: int, stop: int) -> bytes:
        for part in (self._tail, self._window):
            if part is not None and part.start <= start and stop <= part.start + len(part.data):
                return part.data[start - part.start : stop - part.start]
        if stop - start > _MOST_BYTES:
            message = f"{self._name}: no zip file that can be read: its list of files is too long"
            raise FetchError(message, hint="see what the index serves under that name")
        tail = max(self._size - _AHEAD_BYTES, 0)
        if start >= tail:
            self._tail = self._fetched(tail, self._size)
        else:
            self._window = self._fetched(start, min(max(stop, start + _AHEAD_BYTES), self._size))
        return self._held(start, stop)

    def _fetched(self, start: int, stop: int) -> Part:
        part = self._read(start, stop)
        self.fetched_bytes += len(part.data)
        if part.total not in (None, self._size) or (self._mark and part.mark != self._mark):
            message = f"{self._name}: the server has another file now than the index lists"
            if part.total not in (None, self._size):
                message += f": {part.total} bytes, not {self._size}"
            raise FetchError(message, hint="try again; if it stays, ask who keeps the index")
        self._mark = part.mark
        return part
