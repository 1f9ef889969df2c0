"""Starting programs: how they end, what they see, how long we wait."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from envbuild.errors import ToolFailed, ToolMissing, ToolTimedOut
from envbuild.tools.endable import Endable
from envbuild.tools.run import Started, base_environment, run

ENV = base_environment()


def test_a_program_gets_its_input_and_exactly_its_environment() -> None:
    program = "import os, sys; print(sys.stdin.read(), sorted(os.environ), oct(os.umask(0)))"
    done = run(
        ["/usr/bin/env", "-u", "LC_CTYPE", sys.executable, "-c", program], env=ENV, stdin="in"
    )
    assert done.stdout == "in ['HOME', 'LANG', 'PATH', 'TZ'] 0o22\n"


def test_the_end_of_a_program_is_seen_at_once() -> None:
    began = time.monotonic()
    for _ in range(10):
        run(["sleep", "0.03"], env=ENV, timeout_s=60)
    assert time.monotonic() - began < 2


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"trap 'touch {mark}; exit' INT; sleep 30 & wait"
    with pytest.raises(ToolTimedOut, match=r"did not end within 0\.3 s") as info:
        run(["/bin/sh", "-c", script], env=ENV, timeout_s=0.3)
    assert mark.exists()
    assert "$ /bin/sh -c" in info.value.details


def test_failures_tell_status_output_and_command(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log"
    with pytest.raises(ToolFailed, match="exit status 3") as info:
        run(["/bin/sh", "-c", "echo oops >&2; exit 3"], env=ENV, log=log, timeout_s=10)
    assert info.value.status == 3
    assert info.value.details.startswith("oops\n$ /bin/sh")
    assert "oops" in log.read_text()
    with pytest.raises(ToolFailed, match="SIGTERM"):
        run(["/bin/sh", "-c", "kill $$"], env=ENV, timeout_s=10)
    with pytest.raises(ToolMissing, match="no such program"):
        run([tmp_path / "none"], env=ENV)


def test_descriptors_are_passed_on_only_if_asked() -> None:
    read, write = os.pipe()
    argv = [sys.executable, "-c", f"import os; os.write({write}, b'kept')"]
    try:
        run(argv, env=ENV, keep=[write], timeout_s=10)
        assert os.read(read, 100) == b"kept"
        with pytest.raises(ToolFailed):
            run(argv, env=ENV, timeout_s=10)
    finally:
        os.close(read)
        os.close(write)


def test_a_started_program_gets_its_input_later() -> None:
    argv, env = ["cat"], base_environment()
    with closing(Started(argv, env=env)) as started:
        completed = started(argv, env=env, stdin="ü" * 200_000)
    assert completed.stdout == "ü" * 200_000


def test_a_started_program_is_used_once_and_only_for_what_it_is() -> None:
    env = base_environment()
    with closing(Started(["cat"], env=env)) as started:
        assert started(["echo", "another"], env=env).stdout == "another\n"
        assert started(["cat"], env=env, stdin="first").stdout == "first"
        assert started(["cat"], env=env, stdin="second").stdout == "second"


def test_a_started_program_that_nobody_asks_is_ended() -> None:
    started = Started(["cat"], env=base_environment())
    started.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(started.pid, os.WNOHANG)


def test_a_started_program_that_does_not_read_its_input() -> None:
    argv, env = ["sh", "-c", "exit 3"], base_environment()
    with closing(Started(argv, env=env)) as started, pytest.raises(ToolFailed):
        started(argv, env=env, stdin="x" * 1_000_000)


def test_a_program_that_cannot_be_started_ahead() -> None:
    with pytest.raises(ToolMissing):
        Started(["/no/such/program"], env=base_environment())


def _alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _wait_until_gone(pids: list[int]) -> None:
    end = time.monotonic() + 20
    while any(map(_alive, pids)):
        assert time.monotonic() < end, "a process outlives the one that started it"
        time.sleep(0.02)


def _started_by(script: str, mark: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a Python that runs a shell script through `run`; return it and the pids in `mark`."""
    program = (
        "from envbuild.tools.run import base_environment, run\n"
        f"run(['/bin/sh', '-c', {script!r}], env=base_environment())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    end = time.monotonic() + 20
    while not mark.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    return process, [int(word) for word in mark.read_text().split()]


def test_children_and_their_children_die_with_us(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    script = f"sleep 600 & echo $$ $! >{mark}.new; mv {mark}.new {mark}; wait"
    process, pids = _started_by(script, mark)
    assert all(map(_alive, pids))
    process.kill()
    process.wait()
    _wait_until_gone(pids)


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    run(["/bin/sh", "-c", f"sleep 600 & echo $! >{mark}"], env=ENV)
    _wait_until_gone([int(mark.read_text())])


def test_a_program_that_another_thread_ends() -> None:
    runner = Endable()
    threading.Timer(0.3, runner.end).start()
    with pytest.raises(ToolFailed, match="SIGKILL"):
        runner(["sleep", "600"], env=ENV)
    with pytest.raises(ToolFailed, match="no longer needed"):
        runner(["true"], env=ENV)


Thaw = Callable[[], object]


@pytest.fixture
def frozen(tmp_path: Path, program: Callable[[str], str]) -> Iterator[tuple[Path, Thaw]]:
    """Return a folder where whatever writes waits in the kernel, and what ends that."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to freeze a file system")
    image, folder = tmp_path / "image", tmp_path / "frozen"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    freeze, umount = program("fsfreeze"), program("umount")
    for words in (f"{program('mkfs.ext4')} -q", f"{program('mount')} -o loop"):
        argv = [*words.split(), str(image), *([str(folder)] if "loop" in words else [])]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot be mounted here: {done.stderr.strip()}")

    def thaw() -> None:
        subprocess.run([freeze, "--unfreeze", folder], capture_output=True, check=False)

    try:
        subprocess.run([freeze, "--freeze", folder], check=True)
        yield folder, thaw
    finally:
        thaw()
        subprocess.run([umount, "-l", folder], check=True)


def test_what_hangs_in_the_kernel_is_left_behind(frozen: tuple[Path, Thaw]) -> None:
    folder, thaw = frozen
    started = Started(["/bin/sh", "-c", f"exec touch {folder}/file"], env=ENV)
    with pytest.raises(ToolTimedOut, match="did not end within"):
        started.finish("", timeout_s=0.5, leave_after_s=0.2)
    state = Path(f"/proc/{started.pid}/stat").read_text().rpartition(")")[2].split()[0]
    thaw()
    os.waitpid(started.pid, 0)
    assert state == "D"  # proc(5): waiting where no signal reaches it
