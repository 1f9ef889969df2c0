"""Which changes of a unit reach what runs already, once systemd has read its units anew."""

from collections import Counter
from typing import Final

_MANAGED: Final = frozenset(
    {  # what systemd itself acts on, from the unit as it was read last
        "Restart",
        "RestartSec",
        "RestartSteps",
        "RestartMaxDelaySec",
        "RestartPreventExitStatus",
        "SuccessExitStatus",
        "TimeoutStartSec",
        "TimeoutStopSec",
        "KillMode",
        "KillSignal",
    }
)
_CGROUP: Final = frozenset(
    {  # written into the cgroup of what runs: systemd.resource-control(5)
        "CPUWeight",
        "CPUQuota",
        "AllowedCPUs",
        "AllowedMemoryNodes",
        "MemoryAccounting",
        "MemoryHigh",
        "MemoryMax",
        "MemorySwapMax",
        "IOAccounting",
        "IOWeight",
        "IOReadBandwidthMax",
        "IOWriteBandwidthMax",
        "TasksAccounting",
        "TasksMax",
        "DeviceAllow",
        "DevicePolicy",
        "IPAddressAllow",
        "IPAddressDeny",
    }
)
_LIVE: Final = _MANAGED | _CGROUP
_WHOLE: Final = frozenset({"Unit", "Install"})


def must_restart(before: str, after: str) -> bool:
    """Tell whether what runs of a unit has to be started anew to be what the text says."""
    return _fixed(before) != _fixed(after)


def _fixed(text: str) -> Counter[tuple[str, str]]:
    """Return the lines that only a start reads; of timers and sockets all, of slices none."""
    found: Counter[tuple[str, str]] = Counter()
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and line[0] not in "#;" and section not in _WHOLE:
            name = line.partition("=")[0]
            if name not in _LIVE:
                found[section, line] += 1
    return found
