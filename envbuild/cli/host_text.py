"""A host as a person reads it: a table of cards, a table of the rest, what an environment needs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from envbuild.cli import output
from envbuild.compat.host_words import cards, driver_of, on_bus, places
from envbuild.host.machine import Host
from envbuild.host.mig import MigDevice
from envbuild.host.model import Gpu, NvmlState
from envbuild.host.readings import Lost, NoPermission, Reading, Unsupported, Value, known
from envbuild.target import NONE, Need, Needs

T = TypeVar("T")

_HEADINGS = ("GPU", "MODEL", "CAPABILITY", "MEMORY", "MIG", "ECC", "PCIE", "HEAT", "POWER", "BUSY")
_NOT_THERE = "-"
_STATES = {
    NvmlState.NO_LIBRARY: "its library was not found",
    NvmlState.NOT_LOADED: "it says that the driver is not loaded",
    NvmlState.MISMATCH: "its library and the driver are of different versions",
}
_MIB = 1 << 20


def text(host: Host) -> str:
    """Return a host as two tables."""
    parts = []
    rows = [row for gpu in host.nvml.gpus for row in _cards(gpu)]
    if rows:
        parts.append(output.table(_HEADINGS, rows))
    parts.append(output.table(("WHAT", "FOUND"), _rest(host)))
    return "\n\n".join(parts)


def needs_text(needs: Needs, here: Mapping[str, str]) -> str:
    """Return a table of what an environment needs and what this host has."""
    told: dict[str, Need] = {
        "platform": needs.platform,
        "cards": needs.gpus,
        "capability": needs.capabilities,
        "GPU code": needs.codes,
        "driver": needs.driver,
        "driver branch": needs.branches,
        "oldest driver": needs.floor,
        "CUDA": needs.cuda,
        "glibc": needs.glibc,
        "CPU": needs.cpu,
        "memory": needs.memory,
        "disk": needs.disk,
    }
    rows = (
        (what, _wanted(what, need.value), here.get(what, _NOT_THERE), need.origin or "")
        for what, need in told.items()
        if need.value != NONE or what == "memory"
    )
    return output.table(("NEED", "WANTED", "HERE", "FROM"), rows)


def here_of(host: Host) -> dict[str, str]:
    """Return what a host has of each need."""
    machine = host.machine
    driver = driver_of(host) or "none"
    names = [
        known(card.name if isinstance(card, Gpu) else card.model) or "a card"
        for card in cards(host)
    ]
    capabilities = [known(gpu.compute_capability) or "?" for gpu in host.nvml.gpus]
    level = known(machine.cpu.level)
    return {
        "platform": shown(machine.cpu.architecture),
        "cards": _counted(names) or "none",
        "capability": ", ".join(dict.fromkeys(capabilities)) or ("?" if names else "none"),
        "driver": driver,
        "oldest driver": driver,
        "driver branch": f"R{driver.partition('.')[0]}" if driver[:1].isdigit() else driver,
        "CUDA": known(host.nvml.cuda) or "none",
        "glibc": shown(machine.system.glibc),
        "CPU": f"x86_64_v{level}" if level else shown(machine.cpu.architecture),
        "memory": shown(machine.memory.total_bytes, output.bytes_text),
        "disk": shown(machine.disk.free_bytes, lambda size: f"{output.bytes_text(size)} free"),
    }


def _wanted(what: str, value: str | None) -> str:
    if value is not None and value.isdigit() and what in {"memory", "disk"}:
        return output.bytes_text(int(value))
    if what == "memory" and value == NONE:
        return "not limited"
    return value or "unknown"


def shown(reading: Reading[T], form: Callable[[T], str] = str) -> str:
    """Return a reading in a word: its value, or `-`, `root`, `lost`, `?` for why there is none."""
    if isinstance(reading, Value):
        return form(reading.value)
    if isinstance(reading, Unsupported):
        return _NOT_THERE
    if isinstance(reading, NoPermission):
        return "root"
    return "lost" if isinstance(reading, Lost) else "?"


def _cards(gpu: Gpu) -> Iterator[tuple[str, ...]]:
    power = f"{shown(gpu.power.usage_mw, _watts)} of {shown(gpu.power.enforced_mw, _watts)}"
    power = power.removesuffix(f" of {_NOT_THERE}")
    memory = (
        f"{shown(gpu.memory.used_bytes, output.bytes_text)} of"
        f" {shown(gpu.memory.total_bytes, output.bytes_text)}"
    )
    yield (
        f"{gpu.index}",
        shown(gpu.name),
        shown(gpu.compute_capability),
        _joined(memory, " of "),
        shown(gpu.mig.current, _switch),
        shown(gpu.ecc.current, _switch),
        _joined(f"gen {shown(gpu.pcie.generation)} x{shown(gpu.pcie.width)}", " x", "gen "),
        shown(gpu.temperature.gpu_c, lambda degrees: f"{degrees} °C"),
        _joined(power, " of ", ending=" W"),
        shown(gpu.utilization.gpu_percent, lambda percent: f"{percent} %"),
    )
    for device in known(gpu.mig.devices) or ():
        yield _instance(gpu, device)


def _joined(text: str, between: str, beginning: str = "", *, ending: str = "") -> str:
    """Return two readings that stand together as one word where both say the same nothing."""
    first, _, second = text.removeprefix(beginning).partition(between)
    return first if first == second and not first[:1].isdigit() else f"{text}{ending}"


def _instance(gpu: Gpu, device: MigDevice) -> tuple[str, ...]:
    name = shown(device.name).rpartition("MIG ")[2]
    memory = shown(device.memory_mib, lambda mib: output.bytes_text(mib * _MIB))
    return (f"{gpu.index}:{device.index}", f"  {name}", "", memory, *[""] * (len(_HEADINGS) - 4))


def _watts(milliwatts: int) -> str:
    return f"{milliwatts / 1000:.0f}"


def _switch(on: bool) -> str:  # noqa: FBT001
    return "on" if on else "off"


def _rest(host: Host) -> Iterator[tuple[str, str]]:
    machine = host.machine
    yield "host", f"{host.name}, {shown(machine.system.name)}, Linux {shown(machine.system.kernel)}"
    container = known(machine.system.container)
    if container is not None:
        yield "container", container
    yield "driver", _driver(host)
    yield "NVML", _nvml(host)
    yield "cards on the bus", _bus(host)
    yield "device nodes", _nodes(host)
    if host.nvml.gpus:
        yield "firmware", _firmware(host)
    yield "PCIe", _pcie(host)
    if near := _near(host):
        yield "NUMA nodes", near
    if adapters := known(machine.rdma):
        yield "RDMA", ", ".join(adapters)
    yield "kernel log", _log(host)
    yield "daemons", _daemons(host)
    system, cpu, memory = machine.system, machine.cpu, machine.memory
    cgroup = shown(system.cgroup, lambda version: f"version {version}")
    controllers = known(system.controllers)
    yield "cgroups", f"{cgroup} ({', '.join(controllers)})" if controllers else cgroup
    booted = "" if known(system.booted) else ", which does not run this host"
    yield "systemd", f"{shown(system.systemd)}{booted}"
    yield "glibc", shown(system.glibc)
    level, nodes = known(cpu.level), known(cpu.numa_nodes) or 1
    model = f"{shown(cpu.model)}, {shown(cpu.count)} CPUs"
    model += f", x86-64-v{level}" if level else ""
    yield "CPU", f"{model}, {nodes} NUMA node{'s' * (nodes > 1)}"
    limit = known(memory.limit_bytes)
    yield (
        "memory",
        (
            f"{shown(memory.available_bytes, output.bytes_text)} available of"
            f" {shown(memory.total_bytes, output.bytes_text)}"
            + (f", this process may use {output.bytes_text(limit)}" if limit else "")
        ),
    )
    disk = machine.disk
    yield (
        "store's disk",
        (
            f"{shown(disk.free_bytes, output.bytes_text)} free of"
            f" {shown(disk.total_bytes, output.bytes_text)} at {disk.path}"
        ),
    )


def _driver(host: Host) -> str:
    driver = host.machine.driver
    version = known(driver.loaded)
    if version is None:
        return "none is loaded" if isinstance(driver.loaded, Unsupported) else shown(driver.loaded)
    modules = [module.name for module in known(driver.modules) or ()]
    return f"{version}, {shown(driver.flavour)} module; loaded: {', '.join(modules) or 'unknown'}"


def _nvml(host: Host) -> str:
    nvml = host.nvml
    if nvml.state is NvmlState.ANSWERED:
        versions = f"driver {shown(nvml.driver)}, CUDA {shown(nvml.cuda)}"
        return f"library {shown(nvml.library)}, {versions}"
    return _STATES.get(nvml.state, nvml.why or str(nvml.state))


def _bus(host: Host) -> str:
    devices = host.machine.pci.devices
    found = known(devices)
    if found is None:
        return shown(devices)
    told = []
    for kind, word in (("gpu", "card"), ("nvswitch", "NVSwitch")):
        ours = [device for device in found if device.kind == kind]
        if ours:
            owners = _counted([known(device.driver) or "no driver" for device in ours])
            ending = ("s" if word == "card" else "es") if len(ours) > 1 else ""
            told.append(f"{len(ours)} {word}{ending} ({owners})")
    return ", ".join(told) or "none"


def _nodes(host: Host) -> str:
    nodes = known(host.machine.nodes)
    if not nodes:
        return "none"
    opened = [node for node in nodes if node.opens]
    every = "all of which" if len(opened) == len(nodes) else f"{len(opened)} of which"
    rights = dict.fromkeys(f"{node.mode:04o} {node.owner}:{node.group}" for node in nodes)
    return f"{len(nodes)}, {every} this user may open ({', '.join(rights)})"


def _firmware(host: Host) -> str:
    """Return the releases of the cards' firmware: VBIOS, and that of their own processor."""
    told = []
    for what in ("vbios", "gsp"):
        found = [shown(getattr(gpu.firmware, what)) for gpu in host.nvml.gpus]
        told.append(f"{'GSP' if what == 'gsp' else 'VBIOS'} {', '.join(dict.fromkeys(found))}")
    off = any(known(gpu.firmware.gsp_enabled) is False for gpu in host.nvml.gpus)
    return "; ".join(told) + (" (off)" if off else "")


def _near(host: Host) -> str:
    """Return which cards each NUMA node has, where there are several nodes."""
    if (known(host.machine.cpu.numa_nodes) or 1) < 2:  # noqa: PLR2004
        return ""
    numbers = {address: index for index, address in places(host).items()}
    nodes: dict[str, list[str]] = {}
    for device in on_bus(host):
        name = device.address
        name = f"GPU {numbers[name]}" if name in numbers else name
        nodes.setdefault(shown(device.numa_node), []).append(name)
    return "; ".join(f"node {node}: {', '.join(own)}" for node, own in sorted(nodes.items()))


def _pcie(host: Host) -> str:
    pci = host.machine.pci
    ports = known(pci.acs)
    on = sum(bool(port.on) for port in ports or ())
    acs = shown(pci.acs, lambda _: f"on at {on} bridge{'s' * (on > 1)}" if on else "off")
    return (
        f"power saving (ASPM) {shown(pci.aspm_policy)}; IOMMU {shown(pci.iommu)};"
        f" access control (ACS) {acs}"
    )


def _log(host: Host) -> str:
    events = known(host.machine.log)
    if events is None:
        return "read by root alone" if isinstance(host.machine.log, NoPermission) else "not there"
    xids = [event for event in events if event.kind == "xid"]
    return f"{len(xids)} Xid line{'s' * (len(xids) != 1)} since the start, as far as it goes back"


def _daemons(host: Host) -> str:
    daemons = host.machine.daemons
    running = [
        f"{daemon.name} {known(daemon.runs) or known(daemon.version) or ''}".strip()
        for daemon in daemons
        if known(daemon.running)
    ]
    if not running and any(isinstance(daemon.running, NoPermission) for daemon in daemons):
        return "root"
    return ", ".join(running) or "none of the driver's runs"


def _counted(names: list[Any]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    if len(counts) == 1:
        name, count = next(iter(counts.items()))
        return f"{count} x {name}" if count > 1 and " " in name else name
    return ", ".join(f"{count} x {name}" for name, count in counts.items())
