"""Hashing wheels while others still arrive: what uv has unpacked waits for nobody."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from envbuild.tools import hashing

_POLL_S = 0.1
_NICE = 10
_LARGE_BYTES = 32 << 20
_SETTLED_NS = 500_000_000

Known = tuple[int, int, int]
"""Inode, bytes, and time of the last change (nanoseconds): a hard link has all three."""


class Arrivals:
    """Hashes new folders of a cache as they appear, until it is left.

    Large files are taken before their folder is whole, once nothing was written to them for half a
    second: a file that grows afterwards has other numbers, so its old digest is never looked up.
    It takes only processor time that nobody else wants. What it does not come to is hashed later
    with the rest, so nothing depends on it.

    Attributes:
        contents: SHA-256 hex of the files hashed so far.
    """

    def __init__(self, folder: Path, unfinished: Callable[[], Iterable[Path]] = tuple) -> None:
        """Take note of what is there already.

        Args:
            folder: The folder below which a whole folder appears at once (by rename).
            unfinished: Gives the folders that are being written, and will appear there.
        """
        self.contents: dict[Known, str] = {}
        self._folder = folder
        self._unfinished = unfinished
        self._seen = set(self._names())
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop after the file that is being read."""
        self._left.set()
        self._thread.join()

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in self._folder.iterdir()]
        except FileNotFoundError:
            return []

    def _work(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while not self._left.wait(_POLL_S):
            for name in self._names():
                if name not in self._seen:
                    self._seen.add(name)
                    self._hash(looks(f"{self._folder}/{name}"))
            for folder in self._unfinished():
                self._hash({path: look for path, look in looks(folder).items() if _settled(look)})

    def _hash(self, files: Mapping[str, os.stat_result]) -> None:
        new = ((path, look.st_size) for path, look in files.items() if not self._knows(look))
        for job in hashing.jobs(new):
            if self._left.is_set():
                return
            for path, answer in hashing.hash_job(job):
                if isinstance(answer, str):
                    self.contents[known(files[path])] = answer

    def _knows(self, look: os.stat_result) -> bool:
        return known(look) in self.contents


def looks(folder: str | Path) -> dict[str, os.stat_result]:
    """Return the status of each file below a folder; what goes away is nobody's."""
    found: dict[str, os.stat_result] = {}
    for below, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found[f"{below}/{name}"] = os.lstat(f"{below}/{name}")
    return found


def known(look: os.stat_result) -> Known:
    """Return what a file is known by."""
    return look.st_ino, look.st_size, look.st_mtime_ns


def _settled(look: os.stat_result) -> bool:
    return look.st_size >= _LARGE_BYTES and time.time_ns() - look.st_mtime_ns > _SETTLED_NS
