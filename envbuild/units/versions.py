"""Which directives a systemd lacks, and what is lost without them.

From the man pages' "Added in version" (systemd.service(5), .exec(5), .resource-control(5),
.unit(5)) and, for older ones, the NEWS file of the version. A directive that is not here is as
old as `model.OLDEST`.
"""

import functools
import re
from typing import Final

SINCE: Final[dict[str, tuple[int, str]]] = {
    "AllowedCPUs": (244, "it may run on every CPU"),
    "AllowedMemoryNodes": (244, "it may take memory from every node"),
    "CoredumpReceive": (255, ""),
    "DisableControllers": (240, ""),
    "ExecCondition": (243, "it is not looked whether this host can run it"),
    "ExitType": (250, "its end is that of the main process"),
    "ImportCredential": (254, ""),
    "LoadCredential": (247, "it has no secrets, and will say so when it reads them"),
    "LoadCredentialEncrypted": (250, "it has no secrets, and will say so when it reads them"),
    "ManagedOOMMemoryPressure": (247, "systemd-oomd leaves it alone"),
    "ManagedOOMPreference": (248, "systemd-oomd takes it like any other"),
    "ManagedOOMSwap": (247, "systemd-oomd leaves it alone"),
    "MemoryPressureWatch": (254, "it is not told of memory pressure"),
    "MemoryZSwapMax": (253, "compressed swap has no limit of its own"),
    "NFTSet": (255, ""),
    "OOMPolicy": (243, "it goes on without a process that the kernel killed for memory"),
    "OpenFile": (253, ""),
    "PrivateIPC": (248, ""),
    "ProcSubset": (247, ""),
    "ProtectClock": (245, "the clocks are not protected from it"),
    "ProtectHostname": (242, "the host's name is not protected from it"),
    "ProtectKernelLogs": (244, "it may read the kernel's log"),
    "ProtectProc": (247, "it sees other users' processes"),
    "RestartMaxDelaySec": (254, "the delay between restarts does not grow"),
    "RestartMode": (254, ""),
    "RestartSteps": (254, "the delay between restarts does not grow"),
    "RestrictFileSystems": (250, ""),
    "RestrictNetworkInterfaces": (250, ""),
    "RestrictSUIDSGID": (242, "it may make setuid files"),
    "SetCredential": (247, ""),
    "SocketBindAllow": (249, ""),
    "SocketBindDeny": (249, ""),
    "StartupAllowedCPUs": (252, ""),
    "SurviveFinalKillSignal": (255, ""),
    "TimeoutStartFailureMode": (246, ""),
    "TimeoutStopFailureMode": (246, ""),
    "Upholds": (249, ""),
}


@functools.cache
def missing(version: int) -> frozenset[str]:
    """Return the directives that a version lacks."""
    return frozenset(name for name, (since, _) in SINCE.items() if since > version)


def fitted(text: str, lacks: frozenset[str]) -> str:
    """Return a unit without the directives that are lacked, each replaced by a comment."""
    return _lines_of(lacks).sub(_fitted, text) if lacks else text


@functools.cache
def _lines_of(lacks: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"\n({'|'.join(sorted(lacks))})=[^\n]*")


def _fitted(line: re.Match[str]) -> str:
    since, lost = SINCE[line[1]]
    return f"\n# {line[1]}= needs systemd {since}{': ' if lost else ''}{lost}"
