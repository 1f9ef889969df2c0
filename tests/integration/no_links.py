"""Run a program for which the kernel refuses hard links: `python no_links.py PROGRAM [WORD]…`.

As on a file system of a server that has none: link(2) and linkat(2) end with EPERM (seccomp(2)).
"""

import ctypes
import os
import platform
import struct
import sys

_CALLS = {"x86_64": (86, 265), "aarch64": (37,)}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def refuse_links() -> None:
    """Refuse them to this process, and to those that it starts.

    Raises:
        OSError: The kernel has no filters of system calls.
    """
    calls = _CALLS[platform.machine()]
    lines = [(_LOAD, 0, 0, 0)]
    lines += [(_JUMP_IF_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _EPERM)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_NO_NEW_PRIVILEGES, 1, 0), (_SECCOMP, _FILTER, program)):
        if libc.prctl(*words, 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    refuse_links()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
