"""A command that may write only below given folders and reach nobody: Landlock, Linux 5.13 on.

As a program, `python -I -m envbuild.tools.confine FOLDER... -- COMMAND...` becomes COMMAND. What
the running kernel knows of Landlock is used: older ones do not keep it from the network (6.7).
Owner, mode and times of files elsewhere are not covered, see landlock(7).
"""

import ctypes
import os
import struct
import sys
from collections.abc import Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
"""LANDLOCK_ACCESS_FS_REMOVE_DIR to LANDLOCK_ACCESS_FS_MAKE_SYM."""

_TCP = 0b11
"""Binding and connecting."""

_SCOPED = 0b11
"""Abstract sockets and signals."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")


def version() -> int:
    """Return the version of Landlock that this kernel has, 0 for none."""
    found = int(_libc().syscall(_CREATE, None, 0, _VERSION_FLAG))
    return max(found, 0)


def argv(command: Sequence[str], *, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs a command confined to folders."""
    return (sys.executable, "-I", "-m", "envbuild.tools.confine", *folders, "--", *command)


def confine(folders: Sequence[str]) -> None:
    """Let this process, for good, write only below folders.

    Raises:
        OSError: The kernel has no Landlock, or a folder is not there.
    """
    known = version()
    file = _WRITE_FILE | (_TRUNCATE if known >= 3 else 0)  # noqa: PLR2004 - Linux 6.2
    everything = file | _CHANGE_FOLDER | (_REFER if known >= 2 else 0)  # noqa: PLR2004 - 5.19
    network = _TCP if known >= 4 else 0  # noqa: PLR2004 - Linux 6.7
    others = _SCOPED if known >= 6 else 0  # noqa: PLR2004 - Linux 6.12
    rules = struct.pack("=QQQ", everything, network, others)  # struct landlock_ruleset_attr
    descriptor = _call(_CREATE, rules, len(rules), 0)
    for folder in folders:
        _allow(descriptor, folder, everything)
    for device in filter(os.path.exists, _DEVICES):
        _allow(descriptor, device, file)
    if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _failed()
    _call(_RESTRICT, descriptor, 0)
    os.close(descriptor)


def _allow(descriptor: int, path: str, access: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, parent)  # struct landlock_path_beneath_attr
        _call(_ADD, descriptor, _PATH_BENEATH, rule, 0)
    finally:
        os.close(parent)


def _call(number: int, *arguments: object) -> int:
    answer = int(_libc().syscall(number, *arguments))
    if answer < 0:
        raise _failed()
    return answer


def _failed() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Confine this process, then become the command."""
    at = sys.argv.index("--")
    confine(sys.argv[1:at])
    command = sys.argv[at + 1 :]
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
