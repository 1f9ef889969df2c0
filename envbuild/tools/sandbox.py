"""A command without a network, that sees folders at paths of our choice: Linux namespaces.

As a program, `python -I -m envbuild.tools.sandbox [--at FOLDER PATH]... [--in FOLDER] [--log FILE]
-- COMMAND...` becomes COMMAND. With `--at` it has a network namespace of its own, with nothing in
it but a loopback device that is down, and a mount namespace in which each FOLDER is at PATH. Who
is not root needs a user namespace for that, which kernels and AppArmor may refuse (see
`envbuild.tools.confinement`). A namespace of processes ends all that it started with it, whatever
ends it: ninja puts each compiler into a group of its own, which would go on after a kill.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envbuild.tools.run import Runner, base_environment, run

_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x20000, 0x10000000, 0x40000000
_NEW_PROCESSES = 0x20000000
_DIE_WITH = 1  # PR_SET_PDEATHSIG of prctl(2)
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_PROBE_S = 30


def argv(
    command: Sequence[str],
    *,
    at: Mapping[Path, Path],
    folder: Path | None = None,
    log: Path | None = None,
) -> list[str]:
    """Return the command line that runs a command in a sandbox.

    Args:
        command: The command, its program by path.
        at: Folders, and the empty folders that they are seen at; without any it sees and reaches
            what we do.
        folder: Its working directory, as it sees it.
        log: File that its output is added to instead of our pipes, so that others can watch it.
    """
    words = [sys.executable, "-I", "-m", "envbuild.tools.sandbox"]
    for source, place in at.items():
        words += ["--at", f"{source}", f"{place}"]
    words += ["--in", f"{folder}"] if folder is not None else []
    words += ["--log", f"{log}"] if log is not None else []
    return [*words, "--", *command]


def refusal(folder: Path, place: Path, *, runner: Runner = run) -> str | None:
    """Return why this host lets us make no sandbox, None where it does."""
    probe = argv(["/bin/sh", "-c", ":"], at={folder: place})
    done = runner(probe, env=base_environment(), check=False, timeout_s=_PROBE_S)
    if not done.status:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


def enter(at: Mapping[str, str]) -> None:
    """Move this process, for good, into namespaces of its own.

    Raises:
        OSError: The kernel refuses; `strerror` says what.
    """
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = _NEW_MOUNTS | _NEW_NETWORK | _NEW_PROCESSES
    if user != 0 or libc.unshare(wanted):
        _check(libc.unshare(_NEW_USER | wanted), "no namespaces are allowed")
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    private = libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    _check(private, "mounts cannot be made private")
    for folder, place in at.items():
        if Path(place).is_symlink():
            message = f"{place} is a link"
            raise OSError(0, message)
        bound = libc.mount(os.fsencode(folder), os.fsencode(place), None, _BIND | _RECURSIVE, None)
        _check(bound, f"{folder} cannot be mounted at {place}")


def divide() -> None:
    """Go on in the new namespace of processes, where nothing outlives the command.

    Three processes come of it: this one waits and ends as the second does; the second is the
    namespace's first, which dies with this one, and with it all that is in there; the third
    returns.
    """
    if first := os.fork():
        _end_as(first)
    libc = ctypes.CDLL(None)
    libc.prctl(_DIE_WITH, signal.SIGKILL, 0, 0, 0)
    libc.mount(b"proc", b"/proc", b"proc", 0, None)  # refused in containers: the outer one does
    if command := os.fork():
        _end_as(command)


def _end_as(child: int) -> None:
    """Wait for a child, and for orphans on the way, and end as it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command decides
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _check(answer: int, what: str) -> None:
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Enter the sandbox, then become the command."""
    words = sys.argv[1:]
    at: dict[str, str] = {}
    told: dict[str, str] = {}
    while words[0] != "--":
        if words[0] == "--at":
            at[words[1]] = words[2]
            words = words[3:]
        else:
            told[words[0]] = words[1]
            words = words[2:]
    command = words[1:]
    if at:
        try:
            enter(at)
            divide()
        except OSError as error:
            sys.exit(f"{error.strerror}")
    if "--log" in told:
        descriptor = os.open(told["--log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
    if "--in" in told:
        os.chdir(told["--in"])
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
