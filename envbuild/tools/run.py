"""Starting programs: explicit environment, time limit, orderly end, and a log."""

import contextlib
import ctypes
import logging
import os
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from envbuild.errors import ToolFailed, ToolMissing, ToolTimedOut

_TAIL_BYTES = 4000
_GRACE_S = 5.0
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """How a program ended.

    Attributes:
        argv: The command.
        status: Exit status; negative is the signal that ended it.
        stdout: Its standard output.
        stderr: Its standard error.
    """

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


class Runner(Protocol):
    """How functions that start programs are given that ability; `run` is the real one."""

    def __call__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str],
        stdin: str | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
        log: Path | None = None,
        check: bool = True,
        keep: Sequence[int] = (),
    ) -> Completed:
        """Run a program to its end."""


def base_environment(path: str = "/usr/local/bin:/usr/bin:/bin") -> dict[str, str]:
    """Return the environment that every child starts from: no user setting can change a result.

    `HOME` is a file, so that no child can make a folder there, not even root's (uv does).
    """
    return {"PATH": path, "HOME": "/dev/null", "LANG": "C.UTF-8", "TZ": "UTC"}


def command_text(argv: Sequence[str | os.PathLike[str]]) -> str:
    """Return a command as it can be pasted into a shell."""
    return shlex.join(os.fspath(word) for word in argv)


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str],
    stdin: str | None = None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
    log: Path | None = None,
    check: bool = True,
    keep: Sequence[int] = (),
) -> Completed:
    """Run a program to its end and return what it printed.

    The child gets exactly `env`, umask 022, a process group of its own, and dies with us. On a
    time limit or an interrupt the group is interrupted, then terminated, then killed.

    Args:
        argv: The command; never a shell.
        env: The whole environment of the child.
        stdin: Text for its standard input; without it the input is empty.
        cwd: Its working directory.
        timeout_s: Seconds until it is ended.
        log: File that receives command and output, whatever happens.
        check: Whether a status other than 0 raises.
        keep: File descriptors that the child inherits (the store's lock).

    Raises:
        ToolMissing: There is no such program.
        ToolFailed: It ended with another status than 0 and `check` is set.
        ToolTimedOut: It did not end in `timeout_s`.
    """
    words = tuple(os.fspath(word) for word in argv)
    _LOG.info("$ %s", command_text(words))
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out:
        source.write((stdin or "").encode())
        source.seek(0)
        with tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    words,
                    stdin=source,
                    stdout=out,
                    stderr=err,
                    env=dict(env),
                    cwd=cwd,
                    umask=0o022,
                    process_group=0,
                    pass_fds=tuple(keep),
                    preexec_fn=_die_with_parent,  # noqa: PLW1509
                )
            except FileNotFoundError as error:
                message = f"{words[0]}: no such program"
                raise ToolMissing(message, argv=words) from error
            timed_out = _wait(process, timeout_s)
            completed = Completed(
                argv=words, status=process.returncode, stdout=_text(out), stderr=_text(err)
            )
    if log is not None:
        _write_log(log, completed)
    if timed_out:
        message = f"{Path(words[0]).name} did not end within {timeout_s:g} s"
        raise ToolTimedOut(message, argv=words, log=log, details=_tail(completed))
    if check and completed.status:
        message = f"{Path(words[0]).name} failed with {_status_text(completed.status)}"
        raise ToolFailed(
            message, argv=words, status=completed.status, log=log, details=_tail(completed)
        )
    return completed


def _die_with_parent() -> None:
    """Ask the kernel to kill this child when its parent dies (prctl(2), PR_SET_PDEATHSIG)."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _wait(process: "subprocess.Popen[bytes]", timeout_s: float | None) -> bool:
    """Wait for the end; return whether the time limit ended it."""
    try:
        _wait_for_end(process, timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return True
    except BaseException:
        _end(process)
        raise
    return False


def _wait_for_end(process: "subprocess.Popen[bytes]", timeout_s: float | None) -> None:
    """Wait without the sleeps of up to 50 ms that Popen.wait has with a time limit."""
    if timeout_s is not None:
        with contextlib.suppress(OSError):  # an old kernel: Popen.wait then does it alone
            descriptor = os.pidfd_open(process.pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                ended.poll(timeout_s * 1000)
                timeout_s = 0 if process.poll() is None else None
            finally:
                os.close(descriptor)
    process.wait(timeout_s)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _tail(completed: Completed) -> str:
    text = (completed.stderr.strip() or completed.stdout.strip())[-_TAIL_BYTES:]
    return f"{text}\n$ {command_text(completed.argv)}".strip()


def _status_text(status: int) -> str:
    return f"exit status {status}" if status > 0 else signal.Signals(-status).name


def _write_log(log: Path, completed: Completed) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {command_text(completed.argv)}\n{completed.stdout}{completed.stderr}")
        file.write(f"[{_status_text(completed.status) if completed.status else 'ok'}]\n")
