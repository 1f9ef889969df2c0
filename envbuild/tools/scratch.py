"""Folders for the time of one piece of work, which others may remove once its maker is gone."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envbuild.tools.files import is_at, remove_tree, try_lock
from envbuild.tools.interrupts import Piece

_PREFIX = "envbuild-scratch-"
_LOCK = "lock"


@contextlib.contextmanager
def scratch(parent: Path | None = None) -> Iterator[tuple[Path, int]]:
    """Yield a new folder, which is removed at the end, and the descriptor that says it is in use.

    The folder is in use until the last process that has the descriptor is gone (flock(2)), so
    children that write there inherit it.

    Args:
        parent: Where it is made; by default in the folder for temporary files.
    """
    made: list[tuple[Path, int]] = []
    try:
        with Piece():
            made.append(_make(parent))
        yield made[0]
    finally:
        with Piece():
            for folder, descriptor in made:
                try:
                    _remove(folder)
                finally:
                    os.close(descriptor)


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is held: the lock last, or another process could take it."""
    for path in list(folder.iterdir()):
        if path.name != _LOCK:
            remove_tree(path)
    (folder / _LOCK).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def sweep(parent: Path | None = None) -> None:
    """Remove the folders whose makers are gone; another user's are left alone."""
    where = Path(tempfile.gettempdir()) if parent is None else parent
    for folder in where.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            if not (folder / _LOCK).exists():
                folder.rmdir()  # nothing is made there before there is a lock
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                if try_lock(descriptor) and is_at(descriptor, folder / _LOCK):
                    _remove(folder)
            finally:
                os.close(descriptor)


def _make(parent: Path | None) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try_lock(descriptor, wait=True)
            if is_at(descriptor, folder / _LOCK):  # else it was swept before it was locked
                return folder, descriptor
            os.close(descriptor)
