"""Running a command under ptrace(2): which calls change files, and a signal before one of them.

Run as a program (`run` does so): it stops the command and all that it starts at each call that
changes a file below a folder, counts them, and before the one asked for sends a signal: to the
command alone, or to it and everything that it started (as systemd and a container's end do).
Then it waits for the end of them all; who does not end is an orphan.
"""

import contextlib
import ctypes
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

How = Literal["parent", "group"]

_LIMIT_S = 120
_ORPHAN_S = 10.0
_POLL_S = 0.002
_NO_FILTER = 126
_KEPT: list[object] = []
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long
_CONT, _SEIZE, _SYSCALL_INFO = 7, 0x4206, 0x420E
_EVENT_SECCOMP, _EVENT_STOP = 7, 128
_FORK, _VFORK, _CLONE, _EXEC, _SECCOMP, _EXITKILL = (1 << n for n in (1, 2, 3, 4, 7, 20))
_OPTIONS = _FORK | _VFORK | _CLONE | _EXEC | _SECCOMP | _EXITKILL
_WALL = 0x40000000
_SET_NO_NEW_PRIVS, _SET_SUBREAPER, _SET_SECCOMP, _FILTER = 38, 36, 22, 2
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ARGUMENTS, _WORD = 16, 8
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CLONE_FILE = 0x40049409
_CWD = -100


@dataclass(frozen=True, kw_only=True, slots=True)
class _Syscall:
    """A call that changes files.

    Attributes:
        name: Its name.
        numbers: Its number on x86_64 and aarch64, -1 for none.
        descriptors: Which arguments are descriptors of what is changed.
        paths: Which are paths of it: the argument before is the folder's descriptor, if `at`.
        at: Whether paths are relative to descriptors.
        bits: Argument and bits of which one must be set.
        equal: Argument and the value that it must have.
    """

    name: str
    numbers: tuple[int, int]
    descriptors: tuple[int, ...] = ()
    paths: tuple[int, ...] = ()
    at: bool = False
    bits: tuple[int, int] | None = None
    equal: tuple[int, int] | None = None


def _on_file(name: str, *numbers: int) -> _Syscall:
    return _Syscall(name=name, numbers=(numbers[0], numbers[1]), descriptors=(0,))


def _on_path(name: str, *numbers: int, paths: tuple[int, ...] = (0,)) -> _Syscall:
    return _Syscall(name=name, numbers=(numbers[0], numbers[1]), paths=paths)


def _on_path_at(name: str, *numbers: int, paths: tuple[int, ...] = (1,)) -> _Syscall:
    return _Syscall(name=name, numbers=(numbers[0], numbers[1]), paths=paths, at=True)


_SYSCALLS = (
    _Syscall(name="openat", numbers=(257, 56), paths=(1,), at=True, bits=(2, _WRITES)),
    _Syscall(name="open", numbers=(2, -1), paths=(0,), bits=(1, _WRITES)),
    _Syscall(name="ioctl FICLONE", numbers=(16, 29), descriptors=(0,), equal=(1, _CLONE_FILE)),
    _on_path("creat", 85, -1),
    _on_file("write", 1, 64),
    _on_file("pwrite64", 18, 68),
    _on_file("writev", 20, 66),
    _on_file("pwritev", 296, 70),
    _on_file("pwritev2", 328, 287),
    _on_file("sendfile", 40, 71),
    _Syscall(name="copy_file_range", numbers=(326, 285), descriptors=(2,)),
    _on_path("truncate", 76, 45),
    _on_file("ftruncate", 77, 46),
    _on_file("fallocate", 285, 47),
    _on_file("fsync", 74, 82),
    _on_file("fdatasync", 75, 83),
    _on_path("rename", 82, -1, paths=(0, 1)),
    _on_path_at("renameat", 264, 38, paths=(1, 3)),
    _on_path_at("renameat2", 316, 276, paths=(1, 3)),
    _on_path("link", 86, -1, paths=(0, 1)),
    _on_path_at("linkat", 265, 37, paths=(1, 3)),
    _on_path("symlink", 88, -1, paths=(1,)),
    _on_path_at("symlinkat", 266, 36, paths=(2,)),
    _on_path("unlink", 87, -1),
    _on_path_at("unlinkat", 263, 35),
    _on_path("mkdir", 83, -1),
    _on_path_at("mkdirat", 258, 34),
    _on_path_at("mknodat", 259, 33),
    _on_path("rmdir", 84, -1),
    _on_path("chmod", 90, -1),
    _on_file("fchmod", 91, 52),
    _on_path_at("fchmodat", 268, 53),
    _on_path_at("fchmodat2", 452, 452),
    _on_path("chown", 92, -1),
    _on_file("fchown", 93, 55),
    _on_path_at("fchownat", 260, 54),
    _on_path("setxattr", 188, 5),
    _on_path_at("utimensat", 280, 88),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call that changes a file.

    Attributes:
        by_parent: Whether the command itself makes it, not what it started.
        name: The call's name.
        path: The file, below the folder that is watched.
    """

    by_parent: bool
    name: str
    path: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.name} {self.path} by {'the command' if self.by_parent else 'a child'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traced:
    """What a command did under the tracer.

    Attributes:
        status: How it ended; negative is the signal.
        calls: The calls that changed files, in their order, those of its children too.
        signalled_at: The call before which the signal was sent, None where it did not come to it.
        orphans: What did not end after it: command lines.
        out: What it printed.
        err: What it said.
    """

    status: int
    calls: tuple[Call, ...]
    signalled_at: Call | None
    orphans: tuple[str, ...]
    out: str
    err: str


def missing() -> str | None:
    """Return why nothing can be traced here, None where it can."""
    if platform.machine() not in {"x86_64", "aarch64"}:
        return f"no numbers of system calls for {platform.machine()}"
    try:
        done = run(["/bin/true"], root=Path("/nowhere"), env={})
    except RuntimeError as error:
        return f"ptrace is refused: {error}"
    return None if done.status == 0 else f"ptrace does not work: /bin/true ended with {done.status}"


def run(
    argv: Sequence[str],
    *,
    root: Path,
    env: Mapping[str, str],
    at: int | None = None,
    how: How = "parent",
    number: signal.Signals = signal.SIGKILL,
    path: str = "",
) -> Traced:
    """Run a command and watch what changes files below a folder.

    Args:
        argv: The command.
        root: The folder, which is its working directory too if it is there.
        env: The whole environment.
        at: The number, from 0, of the call before which the signal is sent; None for never.
        how: To whom.
        number: The signal.
        path: Count for `at` only calls whose path holds this.

    Raises:
        RuntimeError: It could not be traced.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", prefix="traced-") as report:
        place = [report.name, f"{root}", how, f"{-1 if at is None else at}", f"{number:d}", path]
        done = subprocess.run(
            [sys.executable, "-I", __file__, *place, *argv],
            env=dict(env),
            cwd=root if root.is_dir() else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = json.load(report)
    calls = tuple(Call(**call) for call in found["calls"])
    return Traced(
        status=found["status"],
        calls=calls,
        signalled_at=None if found["at"] is None else calls[found["at"]],
        orphans=tuple(found["orphans"]),
        out=done.stdout,
        err=done.stderr,
    )


class _Tracer:
    """One command, its processes, and what they did."""

    def __init__(self, root: str, how: str, at: int, number: int, path: str) -> None:
        self._roots = (root, os.path.realpath(root))
        self._how = how
        self._at = at
        self._number = number
        self._path = path
        self._signalled: int | None = None
        self._command = -1
        self._status: int | None = None
        self._killed = False
        self._calls: list[Call] = []
        self._processes: dict[int, int] = {}
        self._held: list[int] = []
        self._by_number = dict(_numbered())

    def follow(self, argv: Sequence[str]) -> dict[str, Any]:
        """Run a command to the end of all that it starts, and return the report."""
        _LIBC.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        self._command = _start(argv, self._by_number)
        self._processes[self._command] = self._command
        end: float | None = None
        while end is None or time.monotonic() < end:
            try:
                thread, status = os.waitpid(-1, _WALL | (os.WNOHANG if end else 0))
            except ChildProcessError:
                break
            if thread:
                self._handle(thread, status)
            else:
                time.sleep(_POLL_S)
            if end is None and self._status is not None:
                end = time.monotonic() + _ORPHAN_S
        return {
            "status": self._status,
            "at": self._signalled,
            "calls": [asdict(call) for call in self._calls],
            "orphans": [_command_line(process) for process in self._left()],
        }

    def _left(self) -> list[int]:
        return sorted(set(self._processes.values()))

    def _handle(self, thread: int, status: int) -> None:
        if not os.WIFSTOPPED(status):
            self._processes.pop(thread, None)
            if thread == self._command:
                self._status = os.waitstatus_to_exitcode(status)
                for held in self._held:
                    _go_on(held)
            return
        event, number = status >> 16, os.WSTOPSIG(status)
        if event == _EVENT_SECCOMP and not self._goes_on(thread):
            self._held.append(thread)  # until the command is gone
            return
        self._process_of(thread)
        _go_on(thread, 0 if event else number)

    def _goes_on(self, thread: int) -> bool:
        """Look at a call before it is made, and signal if this is the one; a kill comes first."""
        if self._killed:
            return self._how == "group" or self._status is not None
        process = self._process_of(thread)
        call = self._call(thread, process)
        if call is None:
            return True
        self._calls.append(call)
        if self._signalled is not None or self._path not in call.path:
            return True
        self._at -= 1
        if self._at != -1:
            return True
        self._signalled = len(self._calls) - 1
        self._killed = self._number == signal.SIGKILL
        # To its first thread, which the kernel takes too, but not where a tracer has stopped it.
        _LIBC.tgkill(self._command, self._command, self._number)
        if self._how == "group":
            for other in self._left():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other, self._number)
        return not self._killed

    def _process_of(self, thread: int) -> int:
        if thread not in self._processes:
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{thread}/status").read_text(encoding="utf-8")
                self._processes[thread] = int(text.partition("Tgid:")[2].split()[0])
        return self._processes.get(thread, thread)

    def _call(self, thread: int, process: int) -> Call | None:
        """Return a call that is about to be made, None if it changes nothing that is watched."""
        info = ctypes.create_string_buffer(88)
        if _LIBC.ptrace(_SYSCALL_INFO, thread, len(info), ctypes.addressof(info)) < 0:
            return None  # it was killed meanwhile
        number, *arguments = struct.unpack_from("=7Q", info.raw, 24)
        found = self._by_number[number]
        for path in _paths(thread, found, arguments):
            for root in self._roots:
                if path.startswith(f"{root}/"):
                    below = path.removeprefix(f"{root}/")
                    return Call(by_parent=process == self._command, name=found.name, path=below)
        return None


def _numbered() -> Iterator[tuple[int, _Syscall]]:
    column = 0 if platform.machine() == "x86_64" else 1
    for one in _SYSCALLS:
        if one.numbers[column] >= 0:
            yield one.numbers[column], one


def _start(argv: Sequence[str], watched: Mapping[int, _Syscall]) -> int:
    """Start a command in a session of its own, stopped at nothing but what is watched."""
    source, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        os.read(source, 1)
        os.setsid()
        for ignored in (signal.SIGHUP, signal.SIGINT):  # by nohup and by a shell's `&`
            signal.signal(ignored, signal.SIG_DFL)
        _watch(watched)
        os.execv(argv[0], list(argv))  # noqa: S606
    os.close(source)
    if _LIBC.ptrace(_SEIZE, pid, None, _OPTIONS) < 0:
        os.kill(pid, signal.SIGKILL)
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.write(end, b".")
    os.close(end)
    return pid


def _watch(watched: Mapping[int, _Syscall]) -> None:
    """Let the kernel stop this process, and what it starts, at these calls (seccomp(2))."""
    code = b"".join(_filter(watched))
    program = struct.pack("HxxxxxxP", len(code) // 8, _address(code))
    _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(program), 0, 0) < 0:
        os._exit(_NO_FILTER)


def _filter(watched: Mapping[int, _Syscall]) -> Iterator[bytes]:
    """Yield the instructions of a filter: the number, then perhaps one argument's low half."""

    def step(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, true, false, value)

    yield step(_LOAD, 0)
    for number, one in watched.items():
        condition = one.bits or one.equal
        if condition is None:
            yield step(_EQUAL, number, 0, 1)
            yield step(_RETURN, _TRACE)
            continue
        argument, value = condition
        yield step(_EQUAL, number, 0, 4)
        yield step(_LOAD, _ARGUMENTS + _WORD * argument)
        yield step(_ANY_BIT if one.bits else _EQUAL, value, 0, 1)
        yield step(_RETURN, _TRACE)
        yield step(_RETURN, _ALLOW)
    yield step(_RETURN, _ALLOW)


def _address(data: bytes) -> int:
    buffer = ctypes.create_string_buffer(data, len(data))
    _KEPT.append(buffer)
    return ctypes.addressof(buffer)


def _go_on(thread: int, number: int = 0) -> None:
    _LIBC.ptrace(_CONT, thread, None, number)  # fails where it was killed meanwhile


def _paths(thread: int, one: _Syscall, arguments: Sequence[int]) -> Iterator[str]:
    """Yield the absolute paths that a call names; a path of a file that has none is empty."""
    for argument in one.descriptors:
        yield _opened(thread, arguments[argument])
    for argument in one.paths:
        path = _text(thread, arguments[argument])
        if not path.startswith("/"):
            descriptor = arguments[argument - 1] & 0xFFFFFFFF if one.at else _CWD
            folder = _opened(thread, descriptor)
            path = f"{folder}/{path}" if path else folder
        yield os.path.normpath(path)


def _opened(thread: int, descriptor: int) -> str:
    where = "cwd" if descriptor in {_CWD, _CWD & 0xFFFFFFFF} else f"fd/{descriptor}"
    try:
        return str(Path(f"/proc/{thread}/{where}").readlink())
    except OSError:
        return ""


def _text(thread: int, address: int) -> str:
    """Return the string at an address of a process."""
    if not address:
        return ""
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        room = 4096 - address % 4096
        data = memory.read(room)
        if b"\0" not in data:
            data += memory.read(4096)
    return os.fsdecode(data.partition(b"\0")[0])


def _command_line(process: int) -> str:
    try:
        data = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return f"{process}"
    return f"{process} {data.replace(bytes(1), b' ').decode(errors='replace')}".strip()


def _main(report: str, root: str, how: str, at: str, number: str, path: str, *argv: str) -> None:
    found = _Tracer(root, how, int(at), int(number), path).follow(argv)
    Path(report).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
