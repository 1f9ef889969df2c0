"""Process groups that end with this process, whatever ends it.

The kernel kills a child whose parent dies (prctl(2), PR_SET_PDEATHSIG), but not what that child
started. So a shell waits at a pipe of which only this process has the other end: when that closes,
the shell kills the groups that are still in its list.
"""

import contextlib
import os
import signal
import threading

_KEEPER = """\
groups=
while read -r what group; do
  case $what in
    +) groups="$groups $group " ;;
    -) groups="${groups%%" $group "*}${groups#*" $group "}" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""
_guard = threading.Lock()
_ends: list[int] = []


def ready() -> None:
    """Start the shell where it does not run yet; without a shell, groups are not kept."""
    with _guard:
        if _ends:
            return
        # We keep both ends, so that writing into the pipe can never raise SIGPIPE.
        source, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(source, True)
        _ends[:] = [end, source]
        with contextlib.suppress(OSError):
            os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _KEEPER],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, source, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE],
            )


def enter() -> None:
    """Put this process's group into the list: called in a child, before it becomes a program."""
    _say(f"+ {os.getpid()}\n")


def leave(group: int) -> None:
    """Take a group off the list: called before its number can mean another one."""
    _say(f"- {group}\n")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_ends[0], line.encode())
