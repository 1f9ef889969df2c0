from pathlib import Path

import pytest

from envbuild.rebuild import jobs
from envbuild.rebuild.jobs import GIB, Room


def _room(cores: int, gib: float) -> Room:
    return Room(cores=cores, memory_bytes=int(gib * GIB), limited_by="x")


@pytest.mark.parametrize(
    ("cores", "gib", "per_job", "wanted", "expected"),
    [
        (16, 4, GIB, None, 2),  # a cgroup of 4 GiB: 2 GiB stay free
        (16, 64, 4 * GIB, None, 13),  # 15 % stay free
        (2, 64, GIB, None, 2),
        (16, 1, GIB, None, 1),  # never none
        (16, 64, GIB, 3, 3),
        (2, 64, GIB, 8, 2),
    ],
)
def test_how_many_fit(
    cores: int, gib: float, per_job: int, wanted: int | None, expected: int
) -> None:
    assert jobs.most(_room(cores, gib), memory_per_job=per_job, wanted=wanted) == expected


def test_after_memory_did_not_do_there_are_fewer() -> None:
    assert [jobs.fewer(count) for count in (16, 3, 2, 1)] == [8, 1, 1, 1]


def _write(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_the_smallest_limit_of_all_cgroups_above_counts(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "proc/meminfo": "MemTotal: 99 kB\nMemAvailable:   67108864 kB\n",
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/job/memory.max": "max\n",
            "sys/fs/cgroup/user/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/user/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/user/memory.stat": f"anon 5\nfile {2 * GIB}\n",
        },
    )
    found = jobs.room(16, root=tmp_path)
    assert (found.cores, found.memory_bytes) == (16, 3 * GIB)
    assert found.limited_by == f"{tmp_path}/sys/fs/cgroup/user"


def test_version_1_of_cgroups_says_no_limit_with_a_large_number(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory/job"
    _write(
        tmp_path,
        {
            "proc/meminfo": "MemAvailable: 1024 kB\n",
            "proc/self/cgroup": "3:cpu:/x\n2:memory:/job\n",
            f"{folder}/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert jobs.room(4, root=tmp_path).limited_by == "MemAvailable"
    _write(
        tmp_path,
        {f"{folder}/memory.limit_in_bytes": "1000\n", f"{folder}/memory.usage_in_bytes": "400\n"},
    )
    assert jobs.room(4, root=tmp_path).memory_bytes == 600
