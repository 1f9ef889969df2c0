"""An ELF file that is kept for reading, the GPU code in it left out.

GPU code is most of a CUDA library, and nobody reads it: the headers in a fat binary say what its
entries are. They are found by their marks while the file passes by, since the table that says where
they lie comes at its end. Where something that was left out is asked for after all, what looked
like a fat binary was something else: then the file is read once more, and whole.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import IO

from envbuild.native import fatbin

Again = Callable[[], Iterable[bytes]]
"""Reads a member once more."""


class Sparse:
    """A file without the GPU code in it: written once, in order, then read anywhere.

    It has of a file what readers of ELF files use: `seek` and `read`.
    """

    def __init__(self, file: IO[bytes], again: Again) -> None:
        """Begin.

        Args:
            file: Receives what is kept, one piece behind the other; it stays the caller's.
            again: Reads the same bytes once more.
        """
        self._file = file
        self._again = again
        self._passed = 0  # bytes of the file that were kept or left out
        self._rest = b""  # bytes that are looked at when more have come
        self._take = self._leave = 0  # how many are kept next, and left out after those
        self._container_end = 0
        self._stored = 0
        self._starts, self._places = array("q"), array("q")  # of runs: in the file, in `_file`
        self._at = 0

    def write(self, piece: bytes) -> None:
        """Take the next bytes of the file."""
        data = self._rest + piece
        view = memoryview(data)
        at = 0
        while at < len(data):
            if not self._take and not self._leave:
                self._look(data, at)
            if self._take:
                step = min(self._take, len(data) - at)
                self._keep(view[at : at + step])
                self._take -= step
            elif self._leave:
                step = min(self._leave, len(data) - at)
                self._passed += step
                self._leave -= step
            else:
                break
            at += step
        self._rest = data[at:]

    def finish(self) -> None:
        """Take what is left after the last bytes."""
        self._keep(self._rest)
        self._rest = b""

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, from the start or (2) from the end; return it."""
        self._at = offset + (self._passed if whence else 0)
        return self._at

    def read(self, size: int) -> bytes:
        """Return up to so many bytes."""
        size = min(size, self._passed - self._at)
        if size <= 0:
            return b""
        run = bisect_right(self._starts, self._at) - 1
        place = self._places[run] + self._at - self._starts[run]
        run_end = self._places[run + 1] if run + 1 < len(self._places) else self._stored
        if place + size > run_end:
            self._read_again()
            place = self._at
        self._file.seek(place)
        self._at += size
        return self._file.read(size)

    def _look(self, data: bytes, at: int) -> None:
        """Decide what is done with the next bytes; nothing where more have to be seen first."""
        inside = self._container_end - self._passed
        if inside > 0:
            self._look_at_entry(data[at : at + fatbin.HEAD_BYTES], inside)
            return
        found = data.find(fatbin.MAGIC, at)
        if found < 0:
            self._take = max(0, len(data) - at - len(fatbin.MAGIC) + 1)
        elif found > at:
            self._take = found - at
        elif len(data) - at >= fatbin.CONTAINER_BYTES:
            self._take = fatbin.CONTAINER_BYTES
            self._container_end = self._passed + fatbin.container_bytes(data[at:])

    def _look_at_entry(self, head: bytes, inside: int) -> None:
        if len(head) < min(fatbin.HEAD_BYTES, inside):
            return
        sizes = fatbin.entry_sizes(head, inside)
        if sizes is None:  # no fat binary, or its end
            self._take, self._container_end = len(head), 0
        else:
            self._take, self._leave = sizes

    def _keep(self, data: bytes | memoryview) -> None:
        if not data:
            return
        end = self._starts[-1] + self._stored - self._places[-1] if self._starts else -1
        if end != self._passed:
            self._starts.append(self._passed)
            self._places.append(self._stored)
        self._file.write(data)
        self._passed += len(data)
        self._stored += len(data)

    def _read_again(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._starts, self._places = array("q", (0,)), array("q", (0,))
        self._stored = sum(map(self._file.write, self._again()))
