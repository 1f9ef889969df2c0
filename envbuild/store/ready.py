"""Wait until a service answers; a copy lies in each generation and is run by its Python.

`ready.py port PORT` waits for a TCP port of this machine, `ready.py command PROGRAM ARGUMENT…`
until a command succeeds. It waits for ever: systemd ends it (`TimeoutStartSec=`). Where the main
process is gone (`MAINPID`, systemd.exec(5)) it ends with 1: systemd itself would wait for the time
limit. It imports nothing of envbuild and runs on every Python 3.
"""

import os
import socket
import sys
import time

_EVERY_S = 0.1
_ANSWER_S = 1.0


def is_open(port: int) -> bool:
    """Tell whether something listens on a port of this machine, with IPv4 or IPv6."""
    for host in ("127.0.0.1", "::1"):
        try:
            with socket.create_connection((host, port), timeout=_ANSWER_S):
                return True
        except OSError:
            pass
    return False


def succeeds(argv: "list[str]") -> bool:
    """Run a command and tell whether it ended with 0."""
    child = os.posix_spawn(argv[0], argv, os.environ)
    return os.waitpid(child, 0)[1] == 0


def is_there(pid: int) -> bool:
    """Tell whether a process is there; /proc may hide it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(words: "list[str]") -> None:
    """Wait for what the words say."""
    kind, first, *rest = words
    service = os.environ.get("MAINPID", "")
    while not service or is_there(int(service)):
        if kind == "port" and is_open(int(first)):
            return
        if kind == "command" and succeeds([first, *rest]):
            return
        time.sleep(_EVERY_S)
    sys.exit("the service ended before it was ready")


if __name__ == "__main__":
    main(sys.argv[1:])
