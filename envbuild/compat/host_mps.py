"""What speaks against a host's CUDA Multi-Process Service (MPS)."""

from collections.abc import Iterator
from typing import Final

from envbuild.findings import Finding, Severity
from envbuild.host.machine import Host
from envbuild.host.readings import known

_PLACE: Final = "/tmp/nvidia-mps"  # noqa: S108 - looked at, never written
_SOCKET: Final = f"{_PLACE}/control"


def judge(host: Host) -> Iterator[Finding]:
    """Yield what is at the default place, and servers that nobody controls."""
    mps = host.machine.mps
    listens, controls, servers = known(mps.listens), known(mps.controls), known(mps.servers)
    if listens:
        yield Finding(
            code="mps-foreign",
            severity=Severity.WARNING,
            where=_SOCKET,
            what="an MPS daemon listens at the place that CUDA looks at by default",
            why="every CUDA program without CUDA_MPS_PIPE_DIRECTORY attaches to it, and waits where"
            " another user's server runs (nvidia-cuda-mps-control(1); NVIDIA, Multi-Process"
            " Service)",
            hint="where it is not meant: echo quit | nvidia-cuda-mps-control, as its user",
        )
    elif mps.socket and listens is False:
        yield Finding(
            code="mps-left",
            severity=Severity.NOTE,
            where=_SOCKET,
            what="this socket was left by an MPS daemon that no longer runs",
            why="CUDA programs try it first, and go on without MPS (nvidia-cuda-mps-control(1))",
            hint=f"when no daemon is to come back there: rm -r {_PLACE}",
        )
    if servers and controls == ():
        numbers = " ".join(map(str, servers))
        yield Finding(
            code="mps-alone",
            severity=Severity.WARNING,
            where=f"process {', '.join(map(str, servers))}",
            what="an nvidia-cuda-mps-server runs without its control daemon",
            why="the daemon alone starts and ends servers: this one stays on its cards,"
            " and no new program can join it (nvidia-cuda-mps-control(1))",
            hint=f"end its programs, then kill {numbers}; then start the daemon's unit anew",
        )
