"""What speaks against a host's kernel modules and firmware, and the release of its driver."""

from collections.abc import Iterator

from envbuild.compat.consistency import numbers
from envbuild.compat.host_words import capability, card_name, cards, driver_of
from envbuild.compat.model import Facts
from envbuild.findings import Finding, Severity
from envbuild.host.machine import Host
from envbuild.host.readings import Value, known

_PEER = "NVIDIA driver README, GPUDirect RDMA Peer Memory Client"
_OPERATOR = "NVIDIA GPU Operator, GPUDirect RDMA and GPUDirect Storage"
_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
_OPEN = (
    "NVIDIA driver installation guide, kernel modules; NVIDIA/open-gpu-kernel-modules, README.md"
)
_OPEN_ONLY = "scyto/truenas-nvidia-rtx6000-pro-mig; NVIDIA's own note is less definite"
_FIRST_OPEN, _FIRST_CLOSED = (7, 5), (10, 0)
_LINKS = "NVIDIA/nvidia-container-toolkit#48, opencontainers/runc#3708"
_GSP = "NVIDIA driver README, GSP Firmware: NVreg_EnableGpuFirmware=0 turns it off"


def judge(host: Host, facts: Facts) -> Iterator[Finding]:
    """Yield what speaks against modules, firmware and release."""
    yield from _known_bad(host, facts)
    yield from _flavour(host, facts)
    yield from _firmware(host)
    yield from _peers(host)
    yield from _links(host)


def _known_bad(host: Host, facts: Facts) -> Iterator[Finding]:
    """Yield what a driver's release is known to do wrong."""
    version = driver_of(host)
    if version is None:
        return
    here = {capability(card, facts) for card in cards(host)}
    for row in facts.bad_drivers:
        concerned = not row.capabilities or here & set(row.capabilities)
        if concerned and numbers(row.first) <= numbers(version) < numbers(row.fixed):
            yield Finding(
                code="driver-known-bad",
                severity=Severity.WARNING,
                where=f"driver {version}",
                what=f"known to fail: {row.effect}; when {row.when}",
                why="; ".join(row.sources),
                hint=row.cure,
            )


def _flavour(host: Host, facts: Facts) -> Iterator[Finding]:
    """Yield cards that the kernel module's flavour does not run."""
    flavour = known(host.machine.driver.flavour)
    for card in cards(host) if flavour is not None else ():
        found = capability(card, facts)
        able = numbers(found) if found is not None else None
        if able is None:
            continue
        if flavour == "open" and able < _FIRST_OPEN:
            yield _other_module(card_name(card), "open", "proprietary", Severity.ERROR, _OPEN)
        elif flavour == "proprietary" and able >= _FIRST_CLOSED:
            yield _other_module(
                card_name(card), "proprietary", "open", Severity.WARNING, _OPEN_ONLY
            )


def _other_module(where: str, loaded: str, wanted: str, severity: Severity, source: str) -> Finding:
    return Finding(
        code="module-flavour",
        severity=severity,
        where=where,
        what=f"the {loaded} kernel module is loaded, and this card runs with the {wanted} one",
        why=f"the driver does not start the card then ({source})",
        hint=f"install the driver with its {wanted} kernel modules",
    )


def _firmware(host: Host) -> Iterator[Finding]:
    off = [
        str(gpu.index)
        for gpu in host.nvml.gpus
        if known(gpu.firmware.gsp_enabled) is False and known(gpu.firmware.gsp_default)
    ]
    if off:
        yield Finding(
            code="gsp-off",
            severity=Severity.NOTE,
            where=f"GPU {', '.join(off)}",
            what="the GSP firmware is off, and by default it is on",
            why=f"somebody turned it off, as a way around faults such as Xid 119 ({_GSP})",
            hint="with a newer driver, try without: NVreg_EnableGpuFirmware in /etc/modprobe.d",
        )


def _peers(host: Host) -> Iterator[Finding]:
    """Yield adapters for RDMA without the module that gives them the cards' memory, or it alone."""
    modules = known(host.machine.driver.modules)
    if modules is None:
        return
    loaded = sorted(_PEER_MODULES & {module.name for module in modules})
    adapters = known(host.machine.rdma) or ()
    if adapters and not loaded:
        yield Finding(
            code="peermem-missing",
            severity=Severity.NOTE,
            where=", ".join(adapters),
            what="adapters for RDMA are there, and nvidia_peermem is not loaded",
            why="they reach the cards' memory over DMA-BUF alone, which NVIDIA recommends and not"
            " every library and driver has; else data goes through the host's memory"
            f" ({_OPERATOR})",
            hint="where NCCL_DEBUG=INFO does not say GDRDMA: modprobe nvidia-peermem",
        )
    elif loaded and not adapters:
        yield Finding(
            code="peermem-alone",
            severity=Severity.NOTE,
            where=", ".join(loaded),
            what="the module is loaded, and the kernel has no adapter for RDMA",
            why=f"it gives cards' memory to InfiniBand and RoCE adapters, and does nothing else"
            f" ({_PEER})",
            hint="if one is built in: load its driver (mlx5_ib), then nvidia-peermem anew",
        )


def _links(host: Host) -> Iterator[Finding]:
    """Yield nodes that a container whose cgroup systemd manages loses."""
    system = host.machine.system
    nodes = known(host.machine.nodes) or ()
    bare = [node.path for node in nodes if node.linked is False]
    booted = known(system.booted)
    if bare and booted and not isinstance(system.container, Value):
        yield Finding(
            code="device-links-missing",
            severity=Severity.NOTE,
            where=", ".join(bare[:3]) + (f" and {len(bare) - 3} more" if len(bare) > 3 else ""),  # noqa: PLR2004
            what="/dev/char has no links to these nodes",
            why="a container whose cgroup systemd manages loses its cards with the next systemctl"
            f" daemon-reload: `Failed to initialize NVML: Unknown Error` ({_LINKS})",
            hint="only for containers: nvidia-ctk system create-dev-char-symlinks --create-all,"
            " at each start by a udev rule",
        )
