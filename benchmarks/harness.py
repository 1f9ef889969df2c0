"""Measuring pairs: ours against the bare engines, in one run, in turn.

Times are medians of wall-clock seconds of whole processes. Memory is the peak of a control
group that holds the whole process tree (`memory.peak`, cgroup v2; `memory.max_usage_in_bytes`,
cgroup v1), which needs root.
"""

import contextlib
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Step = Callable[[], None]


class Failed(Exception):
    """A measured command ended with another status than it should."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side of a pair.

    Attributes:
        name: What it is, for the table.
        argv: The commands that are timed, one after the other.
        env: Their whole environment.
        before: Work that is not timed (removing what the last run made).
    """

    name: str
    argv: Sequence[Sequence[str]]
    env: Mapping[str, str]
    before: Step = field(default=lambda: None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A measurement with its bound: ours must not exceed `bound` times theirs."""

    name: str
    ours: Side
    theirs: Side
    bound: float
    repeat: int = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Medians in seconds, and whether the ratio holds."""

    name: str
    ours_s: float
    theirs_s: float
    bound: float
    theirs_name: str

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours_s / self.theirs_s

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its bound."""
        return self.ratio <= self.bound


def run_commands(argvs: Sequence[Sequence[str]], env: Mapping[str, str]) -> float:
    """Run commands one after the other and return the seconds they took together."""
    start = time.perf_counter()
    for argv in argvs:
        done = subprocess.run(argv, env=dict(env), capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"{' '.join(argv)[:300]}: {done.returncode}\n{done.stderr[-2000:]}"
            raise Failed(message)
    return time.perf_counter() - start


def measure(pair: Pair) -> Result:
    """Run both sides in turn, once unmeasured and then `repeat` times."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for round_number in range(pair.repeat + 1):
        # Who goes first changes with the round, so that neither always finds a warmer machine.
        order = [("ours", pair.ours), ("theirs", pair.theirs)]
        for key, side in order if round_number % 2 else reversed(order):
            side.before()
            seconds = run_commands(side.argv, side.env)
            if round_number:
                times[key].append(seconds)
    return Result(
        name=pair.name,
        ours_s=statistics.median(times["ours"]),
        theirs_s=statistics.median(times["theirs"]),
        bound=pair.bound,
        theirs_name=pair.theirs.name,
    )


def peak_memory(side: Side) -> int:
    """Return the peak of a control group that holds the side's process trees, in bytes."""
    with _control_group() as (group, peak_file):
        side.before()
        for argv in side.argv:
            done = subprocess.run(
                ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *argv],
                env=dict(side.env),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                message = f"{' '.join(argv)[:300]}: {done.returncode}\n{done.stderr[-2000:]}"
                raise Failed(message)
        return int((group / peak_file).read_text())


@contextlib.contextmanager
def _control_group() -> Iterator[tuple[Path, str]]:
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root, peak_file = (
        (first, "memory.max_usage_in_bytes") if first.is_dir() else (second, "memory.peak")
    )
    group = root / f"envbuild-benchmark-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group, peak_file
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def removed(path: Path) -> Step:
    """Return a step that removes a folder."""

    def step() -> None:
        shutil.rmtree(path, ignore_errors=True)

    return step
