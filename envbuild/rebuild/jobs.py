"""How many compilers may run at a time: from cores, available memory and what one takes.

`MAX_JOBS = max(1, min(cores, (available - reserve) // memory per job))`. Available memory is the
smaller of the machine's and what the limits of our cgroups leave; the reserve is the larger of
15 % and 2 GiB. A build that was killed for want of memory is tried again with half as many.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

GIB = 1 << 30
_LEAST_RESERVE = 2 * GIB
_RESERVE_PERCENT = 15
_NO_LIMIT = 1 << 60
"""What cgroup v1 shows where nothing limits, is above this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What this machine has for compilers.

    Attributes:
        cores: Cores that we may run on.
        memory_bytes: Memory that can be had now.
        limited_by: Which limit that is: `MemAvailable`, or the folder of a cgroup.
    """

    cores: int
    memory_bytes: int
    limited_by: str


def most(room: Room, *, memory_per_job: int, wanted: int | None = None) -> int:
    """Return how many jobs fit, at most as many as are wanted.

    Args:
        room: What there is.
        memory_per_job: Bytes that one job takes.
        wanted: The recipe's own bound, or None.
    """
    reserve = max(room.memory_bytes * _RESERVE_PERCENT // 100, _LEAST_RESERVE)
    fitting = (room.memory_bytes - reserve) // max(memory_per_job, 1)
    return max(1, min(room.cores, fitting, wanted or room.cores))


def fewer(jobs: int) -> int:
    """Return how many jobs to try with after memory did not do for so many."""
    return max(1, jobs // 2)


def room(cores: int, *, root: Path = Path("/")) -> Room:
    """Return what this machine has.

    Args:
        cores: Cores that we may run on.
        root: Where `/proc` and `/sys` are.
    """
    found = [(_available(root), "MemAvailable")]
    found += [(left, f"{folder}") for folder, left in _cgroups(root)]
    memory, by = min(found)
    return Room(cores=cores, memory_bytes=max(memory, 0), limited_by=by)


def _available(root: Path) -> int:
    """Return `MemAvailable` of proc(5)."""
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return GIB


def _cgroups(root: Path) -> list[tuple[Path, int]]:
    """Return what the limits of our cgroups and those above leave, of version 2 and of 1."""
    found: list[tuple[Path, int]] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            tree, limit, used = root / "sys/fs/cgroup", "memory.max", "memory.current"
            cache = "file"
        elif "memory" in controllers.split(","):
            tree = root / "sys/fs/cgroup/memory"
            limit, used, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "cache"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        for above in (own, *own.parents):
            folder = tree / above
            most_bytes = _text(folder / limit)
            if most_bytes.isdecimal() and int(most_bytes) < _NO_LIMIT:
                taken = int(_text(folder / used) or 0) - _reclaimable(folder, cache)
                found.append((folder, int(most_bytes) - max(taken, 0)))
    return found


def _reclaimable(folder: Path, name: str) -> int:
    """Return the page cache of a cgroup, which the kernel gives back first."""
    rows = (line.split() for line in _text(folder / "memory.stat").splitlines())
    return next((int(row[1]) for row in rows if row[:1] == [name]), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
