"""What speaks against the rest of a host: its log, its bus, its loader, its cgroups."""

from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from envbuild.compat.host_words import cards, on_bus, places
from envbuild.compat.model import Facts
from envbuild.findings import Finding, Severity
from envbuild.host.machine import Event, Host, LoaderPlace
from envbuild.host.readings import NoPermission, Reading, Unsupported, known

_ACS = {"ReqRedir", "CmpltRedir", "UpstreamFwd"}
_NCCL = "NVIDIA, NCCL User Guide, Troubleshooting: PCI Access Control Services"
_ASPM = "linux, Documentation/admin-guide/kernel-parameters: pcie_aspm"
_NUMA = "linux, Documentation/ABI/testing/sysfs-bus-pci: numa_node, -1 where it is not known"
_LOADER = "ld.so(8)"
_CGROUP = (
    "MemoryHigh, MemorySwapMax, AllowedCPUs, AllowedMemoryNodes, IPAddressAllow and IPAddressDeny"
    " of services do nothing there: systemd.resource-control(5)"
)
_LOG = "the number is the last word of the driver on a fault"
_LEFT = {"RESTART_APP", "IGNORE", "WORKFLOW_XID_45", "XID_154"}
"""Actions of the catalog that leave the card as it is."""


def judge_cards(host: Host, facts: Facts) -> Iterator[Finding]:
    """Yield what concerns the use of cards: the log, the bus, what hides cards."""
    yield from _events(host, facts)
    if not cards(host):
        return
    yield from _aspm(host)
    yield from _near(host)
    yield from _peers(host)
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        if name in host.machine.variables:
            yield Finding(
                code="cards-hidden",
                severity=Severity.NOTE,
                where=name,
                what=f"it is set to {host.machine.variables[name]!r}",
                why="programs started from here see these cards only",
            )


def judge_rest(host: Host, own: frozenset[str] | None) -> Iterator[Finding]:
    """Yield what concerns every environment.

    Args:
        host: The host.
        own: Names of an environment's libraries, to tell which of them are shadowed; None for no
            environment.
    """
    if known(host.machine.system.cgroup) == 1:
        yield Finding(
            code="cgroup-v1",
            severity=Severity.WARNING,
            where="/sys/fs/cgroup",
            what="the cgroup tree is of version 1, or both are mounted",
            why=_CGROUP,
            hint="systemd.unified_cgroup_hierarchy=1 on the kernel's command line, then restart",
        )
    for place in host.machine.loader:
        yield from _shadow(place, own)


def root_adds(host: Host) -> Iterator[Finding]:
    """Yield what could not be read without root, in one finding."""
    machine = host.machine
    closed: dict[str, Reading[Any] | None] = {
        "the kernel's log (Xid lines)": machine.log,
        "access control (ACS) of PCI bridges": machine.pci.acs,
        "which daemons run": machine.daemons[0].running if machine.daemons else None,
    }
    told = [what for what, reading in closed.items() if isinstance(reading, NoPermission)]
    for gpu in host.nvml.gpus:
        if isinstance(gpu.name, NoPermission):
            told.append(f"GPU {gpu.index}")
        elif isinstance(gpu.mig.instances, NoPermission):
            told.append(f"MIG instances of GPU {gpu.index}")
        elif isinstance(gpu.processes.compute, NoPermission):
            told.append(f"processes on GPU {gpu.index}")
    if told:
        yield Finding(
            code="root-reads-more",
            severity=Severity.NOTE,
            where=host.name,
            what=f"not read, since this user may not: {', '.join(told)}",
            why="what is wrong there is not told here",
            hint="root sees more, outside of containers: sudo envbuild doctor",
        )


def _events(host: Host, facts: Facts) -> Iterator[Finding]:
    events = known(host.machine.log) or ()
    rows = {row.number: row for row in facts.xids}
    groups: dict[tuple[str, str, int], list[Event]] = {}
    for event in events:
        groups.setdefault((event.kind, event.address, event.number), []).append(event)
    for (kind, address, number), same in groups.items():
        last = same[-1]
        at = "" if last.at_s is None else f", last {_duration(last.at_s)} after the start"
        times = "once" if len(same) == 1 else f"{len(same)} times"
        where = _device(host, address)
        row = rows.get(number) if kind == "xid" else None
        if kind == "xid":
            yield Finding(
                code="xid-seen",
                severity=Severity.NOTE if row and row.action in _LEFT else Severity.WARNING,
                where=where,
                what=f"Xid {number} {times}{at}: {row.what if row else last.text}",
                why=row.sources[0] if row else f"{_LOG}; no table has this one",
                hint=row.cure if row else "look it up in NVIDIA's Xid catalog",
            )
        elif kind == "sxid":
            yield Finding(
                code="sxid-seen",
                severity=Severity.WARNING,
                where=where,
                what=f"SXid {number} of an NVSwitch {times}{at}: {last.text}",
                why="NVIDIA, Fabric Manager User Guide, NVSwitch SXid errors",
                hint="one that the line calls fatal needs a reset of the cards and the switches",
            )
        elif kind == "not-started":
            yield Finding(
                code="gpu-not-started",
                severity=Severity.ERROR,
                where=where,
                what=f"the driver could not start the card, {times}{at}: {last.text}",
                why="no program can use it",
                hint="other lines of the driver around it (dmesg) say why: power, firmware, a"
                " driver that does not know the card",
            )


def _device(host: Host, address: str) -> str:
    """Return what a log's address is: a card by its number where NVML knows it."""
    for index, place in places(host).items():
        if address and place.startswith(address):
            return f"GPU {index} ({address})"
    return address or "kernel log"


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _aspm(host: Host) -> Iterator[Finding]:
    policy = known(host.machine.pci.aspm_policy) or "unknown"
    found = {device.address: known(device.link.aspm) or () for device in on_bus(host)}
    on = [address for address, states in found.items() if states]
    if on:
        words = {state for states in found.values() for state in states}
        yield Finding(
            code="aspm-on",
            severity=Severity.NOTE,
            where=", ".join(on),
            what=f"their links save power when idle ({', '.join(sorted(words))}; policy {policy})",
            why=f"waking a link takes microseconds; what it costs here, only a measurement tells"
            f" ({_ASPM})",
            hint="compare your own job with pcie_aspm.policy=performance on the kernel's command"
            " line",
        )


def _near(host: Host) -> Iterator[Finding]:
    """Yield cards of which nobody knows the NUMA node."""
    lost = [one.address for one in on_bus(host) if isinstance(one.numa_node, Unsupported)]
    if lost and (known(host.machine.cpu.numa_nodes) or 1) > 1:
        yield Finding(
            code="numa-unknown",
            severity=Severity.NOTE,
            where=", ".join(lost),
            what="the firmware does not say which NUMA node these cards are near to",
            why="whether a program and its memory are on a card's side of the machine is left to"
            f" chance ({_NUMA})",
            hint="look for a firmware update, or for a setting such as NUMA nodes per socket; in a"
            " virtual machine, the host has to pass it on",
        )


def _peers(host: Host) -> Iterator[Finding]:
    """Yield what sends traffic between cards through the processor."""
    if len(cards(host)) < 2:  # noqa: PLR2004
        return
    ports = [port for port in known(host.machine.pci.acs) or () if _ACS & set(port.on)]
    if ports:
        yield Finding(
            code="acs-on",
            severity=Severity.WARNING,
            where=", ".join(port.address for port in ports),
            what=f"access control redirects traffic between cards ({', '.join(ports[0].on)})",
            why=f"cards then reach one another through the processor: slower, and NCCL may hang"
            f" ({_NCCL})",
            hint="turn ACS off in the firmware, or per bridge: setpci -s BRIDGE"
            " ECAP_ACS+0x6.w=0000; in a virtual machine it has to stay",
        )
    if known(host.machine.pci.iommu) == "translated":
        yield Finding(
            code="iommu-translates",
            severity=Severity.NOTE,
            where="IOMMU",
            what="it translates the addresses that cards use",
            why=f"traffic between cards may go through the processor ({_NCCL})",
            hint="iommu=pt on the kernel's command line passes them through",
        )


def _shadow(place: LoaderPlace, own: frozenset[str] | None) -> Iterator[Finding]:
    variable = not place.origin.startswith(("/", "the"))
    preloaded = place.origin in {"LD_PRELOAD", "/etc/ld.so.preload"}
    names = [name for name in place.libraries if own is None or _has(own, name)]
    compat = "libcuda.so.1" in place.libraries and not preloaded
    if compat:
        names = sorted({*names, "libcuda.so.1"})
    if preloaded:
        yield Finding(
            code="library-preloaded",
            severity=Severity.NOTE,
            where=place.origin,
            what=f"{place.path} is loaded into every program",
            why=f"it may change what CUDA and other libraries do ({_LOADER})",
            hint="look what put it there, if results or limits surprise",
        )
        return
    if not names:
        return
    first = (
        "these come before an environment's own, where those are found by RUNPATH as in wheels"
        if variable
        else "these are taken where an environment lacks its own, of whatever version they are"
    )
    yield Finding(
        code="shadowed-library",
        severity=Severity.WARNING if variable else Severity.NOTE,
        where=place.origin,
        what=f"{place.path} holds {', '.join(names)}",
        why=f"{first} ({_LOADER})" + ("; libcuda.so.1 is the driver's own" if compat else ""),
        hint=f"unset {place.origin}" if variable
        else "nothing, as long as environments bring their own libraries of CUDA",
    )  # fmt: skip


def _has(own: frozenset[str], name: str) -> bool:
    return name in own or any(fnmatch(one, f"{name}.*") for one in own)
