"""Starting programs: explicit environment, time limit, orderly end, and a log."""

import contextlib
import ctypes
import functools
import logging
import os
import select
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from envbuild.errors import ToolFailed, ToolMissing, ToolTimedOut
from envbuild.tools import groups
from envbuild.tools.files import share

_TAIL_BYTES = 4000
_GRACE_S = 5.0
_POLL_S = 0.05
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


class Watch(Protocol):
    """Looks at a running program from time to time, and may say that it is to be ended."""

    interval_s: float

    def look(self, pid: int) -> str | None:
        """Return why the process is to be ended, None to let it go on."""


class Stalled(ToolTimedOut):
    """A program was ended because what watched it said so; that is the message."""


class Runner(Protocol):
    """How functions that start programs are given that ability; `run` is the real one."""

    def __call__(  # noqa: PLR0913 - what a start depends on
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
        watch: Watch | None = None,
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


def run(  # noqa: PLR0913 - what a start depends on
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str],
    stdin: str | None = None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
    log: Path | None = None,
    check: bool = True,
    keep: Sequence[int] = (),
    watch: Watch | None = None,
) -> Completed:
    """Run a program to its end and return what it printed.

    The child gets exactly `env`, umask 022, a process group of its own, and dies with us, as does
    what it starts in that group. On a time limit or an interrupt the group is interrupted, then
    terminated, then killed; at its end, what it left running is killed.

    Args:
        argv: The command; never a shell.
        env: The whole environment of the child.
        stdin: Text for its standard input; without it the input is empty.
        cwd: Its working directory.
        timeout_s: Seconds until it is ended.
        log: File that receives command and output, whatever happens.
        check: Whether a status other than 0 raises.
        keep: File descriptors that the child inherits (the store's lock).
        watch: What looks at it meanwhile, or None.

    Raises:
        Stalled: What watches it had it ended.
        ToolMissing: There is no such program.
        ToolFailed: It ended with another status than 0 and `check` is set.
        ToolTimedOut: It did not end in `timeout_s`.
    """
    started = Started(argv, env=env, cwd=cwd, keep=keep)
    return started.finish(stdin or "", timeout_s=timeout_s, log=log, check=check, watch=watch)


class Started:
    """A program that runs already and waits for its input.

    It is a `Runner` too: called with the command and environment that it was started with, it
    gives that program its input; any other command, and every call after the first, is run anew.
    So what a program does before it reads (starting, importing) costs no waiting.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        """Start it; arguments as those of `run`.

        Raises:
            ToolMissing: There is no such program.
        """
        self._argv = tuple(os.fspath(word) for word in argv)
        self._env = dict(env)
        self._waiting = True
        self._leave_after_s: float | None = None
        self._reaped = False
        self._guard = threading.Lock()
        groups.ready()
        _LOG.info("$ %s", command_text(self._argv))
        with contextlib.ExitStack() as files:
            self._out = files.enter_context(tempfile.TemporaryFile())
            self._err = files.enter_context(tempfile.TemporaryFile())
            source, self._in = os.pipe2(os.O_CLOEXEC)
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=source,
                    stdout=self._out,
                    stderr=self._err,
                    env=self._env,
                    cwd=cwd,
                    umask=0o022,
                    process_group=0,
                    pass_fds=tuple(keep),
                    preexec_fn=functools.partial(_die_with, os.getpid()),  # noqa: PLW1509
                )
            except BaseException as error:
                os.close(self._in)
                if isinstance(error, FileNotFoundError):
                    message = f"{self._argv[0]}: no such program"
                    raise ToolMissing(message, argv=self._argv) from error
                raise
            finally:
                os.close(source)
            self._files = files.pop_all()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def finish(
        self,
        stdin: str,
        *,
        timeout_s: float | None = None,
        log: Path | None = None,
        check: bool = True,
        watch: Watch | None = None,
        leave_after_s: float | None = None,
    ) -> Completed:
        """Give it its input, wait for its end, and return what it printed; errors as of `run`.

        With `leave_after_s`, a program that is to be ended has so long after each signal, and is
        left behind when it has not ended then: no signal reaches what hangs in the kernel.
        """
        self._waiting = False
        self._leave_after_s = leave_after_s
        with self._files:
            feeding = threading.Thread(target=self._feed, args=(stdin.encode(),))
            feeding.start()
            reason = self._wait(timeout_s, watch)
            feeding.join()
            completed = Completed(
                argv=self._argv,
                status=self._process.returncode,
                stdout=_text(self._out),
                stderr=_text(self._err),
            )
        return _judged(completed, reason, log=log, check=check)

    def __call__(  # noqa: PLR0913 - what a start depends on
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
        watch: Watch | None = None,
    ) -> Completed:
        """Finish this program where it is the one asked for, else run the other."""
        same = tuple(os.fspath(word) for word in argv) == self._argv and dict(env) == self._env
        if same and self._waiting and cwd is None and not keep:
            return self.finish(stdin or "", timeout_s=timeout_s, log=log, check=check, watch=watch)
        return run(
            argv,
            env=env,
            stdin=stdin,
            cwd=cwd,
            timeout_s=timeout_s,
            log=log,
            check=check,
            keep=keep,
            watch=watch,
        )

    def close(self) -> None:
        """End it where nothing was asked of it."""
        if self._waiting:
            self._waiting = False
            os.close(self._in)
            self._reap()
            self._files.close()

    def end(self) -> None:
        """Kill it and its group, from any thread; who waits for it sees how it ended."""
        with self._guard:
            self._signal(signal.SIGKILL)

    def _wait(self, timeout_s: float | None, watch: Watch | None) -> ToolTimedOut | None:
        """Wait for the end; where a limit or the watch ended it, return the error for that."""
        try:
            reason = self._reason_to_end(timeout_s, watch)
            if reason is not None:
                self._end_in_order()
        except BaseException:
            self._end_in_order()
            raise
        finally:
            self._reap()
        return reason

    def _reason_to_end(self, timeout_s: float | None, watch: Watch | None) -> ToolTimedOut | None:
        start = time.monotonic()
        while True:
            left_s = None if timeout_s is None else start + timeout_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                name = Path(self._argv[0]).name
                return ToolTimedOut(f"{name} did not end within {timeout_s:g} s")
            next_s = left_s if watch is None else min(watch.interval_s, left_s or watch.interval_s)
            if _has_ended(self.pid, next_s):
                return None
            if watch is not None and (reason := watch.look(self.pid)) is not None:
                return Stalled(reason)

    def _end_in_order(self) -> None:
        grace_s = _GRACE_S if self._leave_after_s is None else self._leave_after_s
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if _has_ended(self.pid, grace_s):
                return

    def _reap(self) -> None:
        """End what is left of its group, and take its status; its number is free only then."""
        with self._guard:
            self._signal(signal.SIGKILL)
            groups.leave(self.pid)
            if _has_ended(self.pid, self._leave_after_s):
                self._process.wait()
            else:
                self._process.returncode = -signal.SIGKILL
            self._reaped = True

    def _signal(self, number: signal.Signals) -> None:
        if not self._reaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _feed(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._in, "wb") as pipe:
            pipe.write(data)


def _judged(
    completed: Completed, ended: ToolTimedOut | None, *, log: Path | None, check: bool
) -> Completed:
    """Write the log and return what was printed, or raise what the end means."""
    argv = completed.argv
    if log is not None:
        _write_log(log, completed)
    if ended is not None:
        ended.argv, ended.log, ended.details = argv, log, _tail(completed)
        raise ended
    if check and completed.status:
        message = f"{Path(argv[0]).name} failed with {_status_text(completed.status)}"
        raise ToolFailed(
            message, argv=argv, status=completed.status, log=log, details=_tail(completed)
        )
    return completed


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this child when its parent dies (prctl(2), PR_SET_PDEATHSIG).

    The kernel means the thread that started it; here that is always the one that waits for it.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    groups.enter()
    if os.getppid() != parent:  # it died before
        os.kill(os.getpid(), signal.SIGKILL)


def _has_ended(pid: int, timeout_s: float | None) -> bool:
    """Wait for a child's end without taking its status; return whether it came in time."""
    if timeout_s is None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return True
    with contextlib.suppress(OSError):  # an old kernel has no such descriptors
        descriptor = os.pidfd_open(pid)
        try:
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            return bool(ended.poll(timeout_s * 1000))
        finally:
            os.close(descriptor)
    deadline = time.monotonic() + timeout_s
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


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
        share(file.fileno(), log)
        file.write(f"$ {command_text(completed.argv)}\n{completed.stdout}{completed.stderr}")
        file.write(f"[{_status_text(completed.status) if completed.status else 'ok'}]\n")
