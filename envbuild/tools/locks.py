"""Locks that name their holder, also between hosts that share a folder, and that never hang.

A lock is flock(2) on a file. The kernel frees it when the last process ends that has the
descriptor, so what stands in the file never keeps anybody out on the same host. Where a folder is
shared and the mount keeps flock(2) to its own host (NFS with `local_lock` or `nolock`, nfs(5)),
the holder's record does: its host touches the file while it holds the lock, and another host
waits until the record is gone or was not touched for `EXPIRES_S`.

flock(2) is called in a thread: on a file server that does not answer, the call never returns.
"""

import contextlib
import errno
import fcntl
import json
import os
import pwd
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import StoreError
from envbuild.tools import boot
from envbuild.tools.bounded import NoAnswer
from envbuild.tools.bounded import bounded as in_time
from envbuild.tools.files import is_at, make_folder, share
from envbuild.tools.interrupts import Piece, gap

Told = Callable[[str], None]
"""Told in one line for whom is waited."""

EXPIRES_S = 180.0
_BEAT_S = 10.0
_CLOCKS_S = 600.0
_AT_ONCE_S = 0.5
_GRACE_S = 2.0
_POLL_S = 0.05
_LOOK_S = 0.5
_OPENINGS = 10
_CANNOT = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


@contextlib.contextmanager
def exclusive(
    path: Path, *, timeout_s: float, purpose: str, told: Told | None = None
) -> Iterator[int]:
    """Hold an exclusive lock and yield its descriptor, which children may inherit.

    Args:
        path: The lock's file; it is made, with its folder, where it is missing.
        timeout_s: How long to wait for it.
        purpose: The command that needs it.
        told: Is told for whom is waited, once, where it is not free at once.

    Raises:
        StoreError: It was not free in time; the message names the holder. Or its file system
            has no locks, or does not answer.
        OSError: The file cannot be made or written.
    """
    attempt = _Attempt(path, timeout_s, purpose)
    try:
        with Piece():
            descriptor = attempt.result(told)
        yield descriptor
    finally:
        attempt.end()


@contextlib.contextmanager
def folder(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Keep writers of a folder apart, where its file system can lock a folder.

    Raises:
        StoreError: It was not free in time, or its file system does not answer.
        OSError: It cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + timeout_s
        with contextlib.suppress(OSError):
            bounded(lambda: _wait_for(descriptor, path, end), timeout_s + _GRACE_S, f"{path}")
        yield
    finally:
        os.close(descriptor)


def bounded(call: Callable[[], Any], limit_s: float, what: str) -> Any:  # noqa: ANN401
    """Return what a call returns that may never do so, or raise what it raises.

    Raises:
        StoreError: It did not return within `limit_s`.
    """
    try:
        return in_time(call, limit_s)
    except NoAnswer:
        raise _no_answer(what) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Holder:
    """Who holds a lock, as its file says; what is unknown is `?` or 0."""

    user: str
    host: str
    boot: str
    pid: int
    command: str
    since: str

    def text(self) -> str:
        """Return it in words."""
        text = f"{self.user} on {self.host}, process {self.pid} ({self.command})"
        text += f", since {self.since}" if self.since != "?" else ""
        if self.boot == boot.identity() and self.pid and not Path(f"/proc/{self.pid}").exists():
            text += "; that process has ended, one that it started has the lock still"
        return text

    @property
    def elsewhere(self) -> bool:
        """Whether this is a process of another machine: neither its kernel nor its name is ours."""
        return self.boot not in {boot.identity(), "?"} and self.host != os.uname().nodename


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}"


def _holder(text: str) -> _Holder | None:
    """Return what a lock's file says, None where it is empty or damaged."""
    try:
        data = json.loads(text)
        return _Holder(
            user=str(data["user"]),
            host=str(data["host"]),
            boot=str(data["boot"]),
            pid=int(data["pid"]),
            command=str(data["command"]),
            since=str(data["since"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


class _Attempt:
    """Taking one lock, in a thread that then keeps its record fresh."""

    def __init__(self, path: Path, timeout_s: float, purpose: str) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._purpose = purpose
        self._taken = threading.Event()
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._given_up = False
        self._descriptor = -1
        self._said = ""
        self._error: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def result(self, told: Told | None) -> int:
        """Wait for the lock and return its descriptor."""
        if not self._taken.wait(min(_AT_ONCE_S, self._timeout_s + _GRACE_S)):
            if told is not None:
                told(f"waiting: {self._said or f'{self._path} does not answer yet'}")
            with gap():
                self._taken.wait(max(0.0, self._deadline - time.monotonic()) + _GRACE_S)
        with self._guard:
            self._given_up = self._descriptor < 0
        if self._error is not None:
            raise self._error
        if self._given_up:
            raise _no_answer(str(self._path), self._said)
        return self._descriptor

    def end(self) -> None:
        """Take the record back and give the lock away."""
        self._ended.set()
        with self._guard:
            self._given_up = True
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)

    def _run(self) -> None:
        try:
            descriptor = self._take()
            with self._guard:
                if self._given_up:
                    os.close(descriptor)
                    return
                self._descriptor = descriptor
        except BaseException as error:  # noqa: BLE001
            self._error = error
            return
        finally:
            self._taken.set()
        while not self._ended.wait(_BEAT_S):
            with contextlib.suppress(OSError):  # it was removed with what it locked
                os.utime(self._path)

    def _take(self) -> int:
        while True:
            descriptor = _opened(self._path)
            try:
                _wait_for(descriptor, self._path, self._deadline, self._say)
                if is_at(descriptor, self._path):
                    self._wait_for_others(descriptor)
                    _write(descriptor, self._purpose)
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # whoever held it removed the file: its lock keeps nobody out

    def _say(self, text: str) -> None:
        self._said = text

    def _wait_for_others(self, descriptor: int) -> None:
        """Wait while the record is that of another host which touches it."""
        seen, fresh_until = 0, 0.0
        while (holder := _holder(_content(descriptor))) is not None and holder.elsewhere:
            stamp = os.stat(self._path).st_mtime_ns  # noqa: PTH116 - by path: NFS asks the server
            if stamp != seen:
                old = time.time() - stamp / 1e9 > EXPIRES_S + _CLOCKS_S
                seen, fresh_until = stamp, time.monotonic() + (0.0 if old else EXPIRES_S)
            if time.monotonic() >= fresh_until:
                return
            self._say(f"{self._path} is held by {holder.text()}")
            if time.monotonic() >= self._deadline:
                raise _held(self._said)
            time.sleep(_LOOK_S)


def _wait_for(descriptor: int, path: Path, deadline: float, say: Told = lambda _: None) -> None:
    """Take flock(2), trying until the deadline."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = None if path.is_dir() else _holder(_content(descriptor))
            said = f"{path} is held by {holder.text() if holder else 'another process'}"
            say(said)
            if time.monotonic() >= deadline:
                raise _held(said) from None
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in _CANNOT or path.is_dir():
                raise
            message = f"{path}: its file system has no locks ({error.strerror})"
            raise StoreError(message, hint="mount it with locks, or use another --store") from error
        else:
            return


def _held(said: str) -> StoreError:
    return StoreError(said, hint="wait for it to end, then try again; --lock-timeout waits longer")


def _no_answer(what: str, said: str = "") -> StoreError:
    message = f"locking {what} does not return: its file system does not answer"
    hint = "is the file server there, and its lock daemon (rpc.statd)? try again then"
    return StoreError(message, hint=hint, details=said)


def _opened(path: Path) -> int:
    """Open a lock's file, made with its folder; both may be removed meanwhile, by its holder."""
    for attempt in range(_OPENINGS):
        make_folder(path.parent)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            if attempt == _OPENINGS - 1:
                raise
        else:
            with contextlib.suppress(FileNotFoundError):
                share(descriptor, path)
            return descriptor
    raise AssertionError


def _content(descriptor: int) -> str:
    return os.pread(descriptor, 2000, 0).decode(errors="replace")


def _write(descriptor: int, purpose: str) -> None:
    record = {
        "user": _user(),
        "host": os.uname().nodename,
        "boot": boot.identity(),
        "pid": os.getpid(),
        "command": purpose,
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{json.dumps(record)}\n".encode(), 0)
