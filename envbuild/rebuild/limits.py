"""What a build may take of this machine: disk, and how many compilers at a time."""

import os
import re
import shutil
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.rebuild import jobs
from envbuild.rebuild.sources import Fetched
from envbuild.wheel.model import Rebuild

_MEMORY_PER_JOB = jobs.GIB
_MEMORY_PER_CUDA_JOB = 4 * jobs.GIB
_LEAST_DISK = 256 << 20
_DISK_PER_SOURCE = 20
_NVCC_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "TORCH_NVCC_FLAGS")
_THREADS = re.compile(r"(?:^|\s)(?:--threads|-t)[= ]?(\d{1,4})(?:\s|$)")


def check_disk(rebuild: Rebuild, fetched: Fetched, folder: Path) -> None:
    """Refuse to begin what the disk has no room for.

    Raises:
        StoreError: There is too little.
    """
    needed = rebuild.cost.disk_bytes
    if needed is None:
        size = disk_bytes(fetched.path)
        needed = max(_LEAST_DISK, size * _DISK_PER_SOURCE)
    free = shutil.disk_usage(folder).free
    if free < needed:
        message = (
            f"{folder}: a build of {rebuild.name} takes about {needed >> 20} MiB, and "
            f"{free >> 20} MiB are free"
        )
        raise StoreError(message, hint="free some: envbuild wheel gc, or use another --store")


def disk_bytes(path: Path) -> int:
    """Return what a file or a folder takes on its disk."""
    if path.is_file():
        return path.stat().st_size
    return sum(one.lstat().st_blocks * 512 for one in path.rglob("*"))


def choose(rebuild: Rebuild, max_jobs: tuple[int, str] | None) -> tuple[int, str]:
    """Return how many compilers run at a time, and who says so.

    Args:
        rebuild: What is built.
        max_jobs: What the user said, and where, which counts before all else; or None.
    """
    if max_jobs is not None:
        return max_jobs
    room = jobs.room(len(os.sched_getaffinity(0)))
    per_job = memory_per_job(rebuild, cores=room.cores)
    count = jobs.most(room, memory_per_job=per_job, wanted=rebuild.jobs)
    if count == rebuild.jobs:
        return count, "recipe"
    return count, "cores" if count == room.cores else room.limited_by


def memory_per_job(rebuild: Rebuild, *, cores: int) -> int:
    """Return how many bytes one job takes: nvcc runs as many compilers in it as it has threads.

    Threads are those of the recipe's `NVCC_THREADS`, which builds hand to nvcc (vLLM,
    flash-attention), or of `--threads` in the variables that nvcc or PyTorch read.

    Args:
        rebuild: What is built.
        cores: What nvcc takes for 0 threads.
    """
    each = rebuild.memory_per_job_bytes
    if rebuild.toolchain.cuda is None:
        return _MEMORY_PER_JOB if each is None else each
    told = dict(rebuild.environment)
    texts = [match[1] for name in _NVCC_FLAGS for match in _THREADS.finditer(told.get(name, ""))]
    if re.fullmatch(r"\d{1,4}", own := told.get("NVCC_THREADS", "").strip()):
        texts.append(own)
    threads = max((int(text) or cores for text in texts), default=1)
    return (_MEMORY_PER_CUDA_JOB if each is None else each) * threads
