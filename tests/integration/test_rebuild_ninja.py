"""A build by CMake and ninja, as of PyTorch: progress, jobs, kills, memory. `nox -s rebuilds`."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.rebuilding import needs_gcc, project

from envbuild.rebuild.house import House
from envbuild.store.layout import Store

_MEMORY = Path("/sys/fs/cgroup/memory")
_LIMITS = ("memory.limit_in_bytes",) if _MEMORY.is_dir() else ("memory.max", "memory.swap.max")
_ROOT = _MEMORY if _MEMORY.is_dir() else Path("/sys/fs/cgroup")

pytestmark = [
    needs_gcc,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("ENVBUILD_TEST_REBUILDS") != "all",
        reason="ENVBUILD_TEST_REBUILDS is not `all`",
    ),
    pytest.mark.skipif(
        not all(map(shutil.which, ("cmake", "ninja"))), reason="cmake and ninja are not here"
    ),
]

_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(torch CXX)
file(GLOB parts ${CMAKE_SOURCE_DIR}/part*.cpp)
add_library(torch SHARED ${parts})
"""
_BUILDS = """\
print("MAX_JOBS is", os.environ["MAX_JOBS"], flush=True)
    subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], check=True)
    subprocess.run(["cmake", "--build", "build"], check=True)
"""
_RUNS = """\
import os, sys
from pathlib import Path
from integration.rebuilding import Builder, wanted

class Steps:
    def step(self, text):
        print(text, flush=True)
        limit(text)

    def amount(self, what, done, total):
        pass

def limit(text):
    if "building with 2 jobs" in text:
        for name in LIMITS:
            Path(GROUP, name).write_text(str(450 << 20))

GROUP, LIMITS, JOBS = sys.argv[3], sys.argv[4:], int(sys.argv[2])
if GROUP:
    Path(GROUP, "cgroup.procs").write_text("0")
os.sched_getaffinity = lambda _: {0, 1}
builder = Builder(root=Path(sys.argv[1], "store"), steps=Steps())
wish = {"max_jobs": (JOBS, "--jobs")} if JOBS else {}
builder.build(wanted(Path(sys.argv[1], "torch"), memory_per_job_bytes=1), **wish)
"""


def _start(root: Path, *, jobs: int = 0, group: Path | None = None) -> subprocess.Popen[str]:
    words = [f"{root}", f"{jobs}", f"{group or ''}", *(_LIMITS if group else ())]
    return subprocess.Popen(
        [sys.executable, "-c", _RUNS, *words],
        env={**os.environ, "PYTHONPATH": f"{Path(__file__).parents[1]}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _sources(root: Path, parts: dict[str, str]) -> None:
    folder = project(root / "torch", before=_BUILDS)
    (folder / "CMakeLists.txt").write_text(_CMAKE)
    for name, text in parts.items():
        (folder / f"part{name}.cpp").write_text(text)


def _log(root: Path) -> str:
    found = (root / "store").glob("cache/rebuild/builds/*/build.log")
    return "".join(path.read_text() for path in found)


def _running(folder: Path) -> bool:
    """Say whether a program of a folder runs."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{folder}/" in path.read_text(errors="replace"):
                return True
    return False


def test_a_build_goes_on_after_a_kill_with_what_ninja_had_done(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    parts = {f"{number}": f"int part{number} = {number};\n" for number in range(6)}
    _sources(tmp_path, parts)
    # the compiler waits at one file, as it would at a large one
    waiting = tmp_path / "bin"
    waiting.mkdir()
    for name in ("gcc-12", "g++-12"):
        (waiting / name).write_text(
            f'#!/bin/sh\ncase "$*" in *part5.cpp*)\n'
            f"while ! [ -e {gate} ]; do sleep 0.05; done ;; esac\n"
            f'exec {shutil.which(name)} "$@"\n'
        )
        (waiting / name).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{waiting}:{os.environ['PATH']}")
        first = _start(tmp_path, jobs=2)
        while "[5/7]" not in _log(tmp_path):
            assert first.poll() is None
            time.sleep(0.05)
        time.sleep(1.5)  # progress looks once in a second
        first.send_signal(signal.SIGKILL)
        said, _ = first.communicate()
        assert re.search(r"demo 1\.0: 5 of 7", said)
        while _running(waiting):  # nothing goes on without us
            time.sleep(0.05)
        gate.touch()
        second = _start(tmp_path, jobs=2)
        said, _ = second.communicate()
        assert second.returncode == 0, said
    (kept,) = House(Store(root=tmp_path / "store").wheelhouse).wheels()
    log = House(Store(root=tmp_path / "store").wheelhouse).log(kept.path).read_text()
    compiled = re.findall(r"Building CXX object \S*part(\d)\.cpp\.o", log)
    assert sorted(compiled) == ["0", "1", "2", "3", "4", "5"]
    assert log.count("MAX_JOBS is 2") == 2
    assert (kept.statement.internal["maxJobs"], kept.statement.internal["maxJobsBy"]) == (
        2,
        "--jobs",
    )


@pytest.fixture
def group() -> Iterator[Path]:
    if os.geteuid() or not (_ROOT / "cgroup.procs").exists():
        pytest.skip("a control group of memory needs root and its controller")
    made = _ROOT / f"envbuild-test-{os.getpid()}"
    made.mkdir()
    try:
        if not (made / _LIMITS[0]).exists():
            pytest.skip("the memory controller is not here")
        yield made
    finally:
        deadline = time.monotonic() + 10
        while (made / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        made.rmdir()


def test_a_compiler_that_the_kernel_kills_for_memory_is_tried_with_fewer(
    tmp_path: Path, group: Path
) -> None:
    _sources(tmp_path, {name: f'const char part{name}[] =\n#include "{name}.h"\n' for name in "ab"})
    for name in "ab":  # a compiler takes some 300 MiB for each
        (tmp_path / f"torch/{name}.h").write_text(f'"{name * (60 << 20)}";\n')
    run = _start(tmp_path, group=group)
    said, _ = run.communicate()
    assert run.returncode == 0, said
    assert "too little memory for 2 jobs; going on with 1" in said
    (kept,) = House(Store(root=tmp_path / "store").wheelhouse).wheels()
    assert (kept.statement.internal["maxJobs"], kept.statement.internal["maxJobsBy"]) == (
        1,
        "memory that did not do for more",
    )
