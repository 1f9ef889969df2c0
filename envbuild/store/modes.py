"""The modes of a generation's files and folders, whatever umask or archive they came from."""

import os
import stat
from pathlib import Path

from envbuild.store.installed import Seen

PROGRAM = 0o755
PLAIN = 0o644


def final_mode(mode: int) -> int:
    """Return the permission bits that a file of a generation gets, whatever it came with."""
    return PROGRAM if mode & 0o111 else PLAIN


def set_modes(prefix: Path, seen: Seen) -> None:
    """Give every file and folder its final mode; a hard link passes it on to the cache.

    Raises:
        OSError: A mode cannot be set.
    """
    root = os.fspath(prefix)
    for path, mode in seen.folders.items():
        if mode != PROGRAM:
            os.chmod(f"{root}/{path}", PROGRAM)  # noqa: PTH101
    for path, status in seen.files.items():
        mode = status.st_mode
        if mode & 0o7777 not in {PLAIN, PROGRAM} and not stat.S_ISLNK(mode):
            os.chmod(f"{root}/{path}", final_mode(mode))  # noqa: PTH101
