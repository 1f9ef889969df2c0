"""`envbuild inspect` of PyTorch 2.4.0's wheel (797 MB) against decompressing it once."""

import os
import sys
from pathlib import Path

from harness import Failed, Pair, Side
from inspect_against import fetched

WHEEL = {
    "file": "torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl",
    "sha256": "e743adadd8c8152bb8373543964551a7cb7cc20ba898dc8f9c0cdbe47c283de0",
}
DECOMPRESS = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for info in archive.infolist():
        with archive.open(info) as member:
            while member.read(1 << 20):
                pass
"""
MOST_BYTES = 200 << 20


def pairs(folder: Path) -> list[Pair]:
    """Return the pair; the wheel is fetched into the folder where it is missing."""
    wheel = str(fetched(WHEEL, folder))
    ours = (sys.executable, "-m", "envbuild", "inspect", wheel, "--json")
    theirs = (sys.executable, "-c", DECOMPRESS, wheel)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    return [
        Pair(
            name="inspect of a wheel of 797 MB",
            ours=Side(name="envbuild inspect", argv=[ours], env=env),
            theirs=Side(name="zipfile, each member read once", argv=[theirs], env=env),
            bound=1.5,
        )
    ]


def peak_bytes(side: Side) -> int:
    """Return the most resident memory of a side's process (bytes), which starts no other."""
    child = os.posix_spawn(side.argv[0][0], list(side.argv[0]), dict(side.env), file_actions=_QUIET)
    _, status, used = os.wait4(child, 0)
    if status:
        message = f"{' '.join(side.argv[0])}: {os.waitstatus_to_exitcode(status)}"
        raise Failed(message)
    return used.ru_maxrss << 10


_QUIET = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
