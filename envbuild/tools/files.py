"""Files, whole or not at all: atomic writes, link swaps, removal."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.tools.bounded import NoAnswer, bounded
from envbuild.tools.interrupts import Piece

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the quota is used up."""

GROUP_FOLDER = stat.S_ISGID | stat.S_IWGRP
PLAIN_FILE = 0o644
GROUP_FILE = 0o664
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}")
_ANSWER_S = 2.0
_AT_FDCWD = -100
_EXCHANGE = 2


def no_room(folder: Path, name: str, error: OSError) -> StoreError:
    """Return the error for a file that a folder has no room for.

    Args:
        folder: The folder.
        name: What was to be written.
        error: One of `NO_ROOM`.
    """
    quota = ", the disk quota is used up" if error.errno == errno.EDQUOT else ""
    message = f"{folder}: no room for {name}{quota}"
    return StoreError(message, hint="free some: envbuild gc, or use another --store")


def write_atomic(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a text file so that a reader sees the old or the new one, never half of it.

    Raises:
        OSError: It cannot be written; the old file is untouched.
    """
    with Piece():
        temporary, descriptor = _new_beside(path, mode)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                os.fchmod(file.fileno(), mode)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def _new_beside(path: Path, mode: int) -> tuple[Path, int]:
    """Return a new file beside another one, and its descriptor, which holds a lock on it."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, mode)
        try_lock(descriptor, wait=True)
        if is_at(descriptor, temporary):  # else it passed for abandoned before it was locked
            return temporary, descriptor
        os.close(descriptor)


def try_lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file (flock(2)) until it is closed, and return whether that could be done.

    It cannot where another process has it, or where its file system has no locks or does not
    answer.

    Args:
        descriptor: The file's.
        wait: Whether to wait a little for another process.
    """
    operation = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    with contextlib.suppress(OSError, NoAnswer):
        bounded(lambda: fcntl.flock(descriptor, operation), _ANSWER_S)
        return True
    return False


def remove_abandoned(folder: Path, *, of: str | None = None) -> None:
    """Remove what killed processes left of atomic writes; what is still written stays.

    Args:
        folder: Where to look.
        of: The name of the file that was to be written; any by default.
    """
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if of in (None, temporary_of(path.name)) and temporary_of(path.name):
                _remove_unlocked(path)


def temporary_of(name: str) -> str | None:
    """Return the name of what a temporary file or link was to become, None for any other name."""
    found = _TEMPORARY.fullmatch(name)
    return found[1] if found else None


def _remove_unlocked(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if try_lock(descriptor) and is_at(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder last over a power cut (fsync(2) on the folder)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_link(link: Path, to: str) -> None:
    """Point a symbolic link elsewhere in one step; `to` is written as it is given.

    Of a process that is killed meanwhile, a link stays for which `temporary_of` gives the name.
    """
    temporary = link.with_name(f".{link.name}.{secrets.token_hex(4)}")
    with Piece():
        temporary.symlink_to(to)
        try:
            temporary.replace(link)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(link.parent)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders of one parent in one step (renameat2(2), RENAME_EXCHANGE).

    Returns:
        False where the file system cannot: nothing was changed then.

    Raises:
        OSError: They cannot be renamed.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE)
    if done != 0:
        number = ctypes.get_errno()
        if number in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
            return False
        raise OSError(number, os.strerror(number), f"{one}")
    sync_folder(one.parent)
    return True


def is_shared(folder: Path) -> bool:
    """Tell whether the folders below one are for its group: set-group-ID, and group-writable."""
    return folder.stat().st_mode & GROUP_FOLDER == GROUP_FOLDER


def share(file: int | Path, path: Path) -> None:
    """Give a file of this user the mode of its place: whatever the umask, and for its group there.

    Args:
        file: Its descriptor, or its path where closing one would end the locks of SQLite.
        path: Its path.
    """
    status = os.stat(file)  # noqa: PTH116 - a descriptor, or a path
    if status.st_uid == os.geteuid():
        mode = GROUP_FILE if is_shared(path.parent) else PLAIN_FILE
        if stat.S_IMODE(status.st_mode) != mode:
            with contextlib.suppress(PermissionError):  # a disk without modes
                os.chmod(file, mode)  # noqa: PTH101


def make_folder(path: Path, *, mode: int = 0o755, inherits: bool = True) -> None:
    """Make a folder and its parents with that mode, whatever the umask.

    Args:
        path: The folder.
        mode: Its permissions.
        inherits: Whether a folder in a shared one is shared as well.
    """
    missing: list[Path] = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError), Piece():
            folder.mkdir()
            folder.chmod(mode | (GROUP_FOLDER if inherits and is_shared(folder.parent) else 0))


def is_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all it holds, also where its folders are read-only."""
    if not path.is_symlink() and path.is_dir():
        for folder, _, _ in os.walk(path):
            mode = Path(folder).stat().st_mode
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                Path(folder).chmod(mode | stat.S_IRWXU)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
