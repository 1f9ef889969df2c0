"""What a folder's file system can do, found by trying in the folder itself."""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.tools.scratch import scratch

_FICLONE = 0x40049409  # ioctl_ficlone(2)
_PROGRAM = b"#!/bin/sh\nexit 0\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Abilities:
    """What could be done in a folder.

    Attributes:
        free_bytes: Room for this user.
        hard_links: Whether a file may have two names.
        reflinks: Whether files may share their blocks.
        tells_case: Whether `a` and `A` are two names.
        executes: Whether programs may be run from there.
        locks: Whether flock(2) keeps a second one out.
    """

    free_bytes: int
    hard_links: bool
    reflinks: bool
    tells_case: bool
    executes: bool
    locks: bool


def abilities(folder: Path) -> Abilities:
    """Try what can be done in a folder; nothing of it stays.

    Args:
        folder: A folder that is there.

    Raises:
        OSError: Nothing can be written there.
    """
    with scratch(folder) as (mine, _):
        place = mine / "trying"
        place.mkdir()
        program = place / "program"
        program.write_bytes(_PROGRAM)
        program.chmod(0o755)
        return Abilities(
            free_bytes=shutil.disk_usage(folder).free,
            hard_links=can_link(program, place / "link"),
            reflinks=can_clone(program, place / "clone"),
            tells_case=tells_case(program),
            executes=may_execute(program),
            locks=_can_lock(place / "lock"),
        )


def nearest(path: Path) -> Path:
    """Return a path, or the nearest folder above it that is there."""
    while not path.is_dir():
        path = path.parent
    return path


def can_link(program: Path, to: Path) -> bool:
    """Tell whether a file can have another name, by giving it one."""
    try:
        to.hardlink_to(program)
    except OSError:
        return False
    return True


def can_clone(program: Path, to: Path) -> bool:
    """Tell whether a copy of a file can share its blocks, by making one."""
    with program.open("rb") as source, to.open("wb") as target:
        try:
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        except OSError:
            return False
    return True


def may_execute(path: Path) -> bool:
    """Tell by the mount's flag, and by access(2), which knows it too.

    Args:
        path: A program, or a folder for what would lie there.
    """
    return not os.statvfs(path).f_flag & os.ST_NOEXEC and os.access(path, os.X_OK)


def tells_case(path: Path) -> bool:
    """Tell whether a name that is there, in the other case, is another name."""
    return not path.with_name(path.name.swapcase()).exists()


def one_file(first: str, second: str, owners: str, place: Path) -> StoreError:
    """Return the error for two paths that differ in case alone where that is no difference.

    Args:
        first: The one path.
        second: The other.
        owners: The packages that they are of.
        place: A folder on the disk.
    """
    mount = next(folder for folder in (place, *place.parents) if folder.is_mount())
    message = (
        f"{first} and {second} of {owners} are one file on the disk at {mount}, "
        "which does not tell upper from lower case"
    )
    return StoreError(message, hint="use a --store on another disk")


def _can_lock(path: Path) -> bool:
    with _opened(path) as first, _opened(path) as second:
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.EWOULDBLOCK
    return False


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
