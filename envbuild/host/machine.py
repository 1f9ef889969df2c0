"""`Machine`: what files of the kernel, the driver and the system say of a host.

Everything that can be missing is a `Reading`. Sizes are in bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from envbuild.host.model import Nvml
from envbuild.host.readings import NOT_ASKED, Reading

DeviceKind = Literal["gpu", "nvswitch"]
Flavour = Literal["open", "proprietary"]
EventKind = Literal["xid", "sxid", "version-mismatch", "not-started"]
Iommu = Literal["off", "passthrough", "translated"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """A module of the kernel, loaded.

    Attributes:
        name: As /sys/module has it (`nvidia_uvm`).
        version: Its version.
        source: Digest of its source (`srcversion`), which modinfo(8) shows of a file too.
    """

    name: str
    version: Reading[str] = NOT_ASKED
    source: Reading[str] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverLibrary:
    """A library of the driver, which has the driver's version in its file name.

    Attributes:
        name: What programs load (`libcuda.so.1`).
        path: The file.
        version: The driver's version.
    """

    name: str
    path: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """NVIDIA's driver as files show it, without NVML.

    Attributes:
        loaded: Version of the module in the kernel (/proc/driver/nvidia/version).
        flavour: `open` or `proprietary`.
        modules: Modules that are loaded: NVIDIA's, and nouveau, which takes the cards.
        built: Versions that DKMS built for the kernel that runs: one would be loaded next.
        libraries: The driver's libraries below the driver's root.
    """

    loaded: Reading[str] = NOT_ASKED
    flavour: Reading[Flavour] = NOT_ASKED
    modules: Reading[tuple[Module, ...]] = NOT_ASKED
    built: Reading[tuple[str, ...]] = NOT_ASKED
    libraries: Reading[tuple[DriverLibrary, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceNode:
    """A file through which programs reach the driver.

    Attributes:
        path: Such as `/dev/nvidia0`.
        mode: Permission bits.
        owner: Its owner's name, or number where it has no name here.
        group: Its group's.
        opens: Whether this user may open it for reading and writing.
        number: Major and minor; None where it is no device.
        expected: The major that the kernel has for it now, None where it does not say.
        linked: Whether /dev/char has a link to it; None where it is no device.
    """

    path: str
    mode: int
    owner: str
    group: str
    opens: bool
    number: tuple[int, int] | None = None
    expected: int | None = None
    linked: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A PCIe link as sysfs has it; an idle card lowers its generation, not its width.

    Attributes:
        generation: Now.
        width: Lanes now.
        max_generation: The most that the device can do.
        max_width: The most that the device can do.
        slot: Address of the bridge above it.
        slot_generation: The most that the bridge above it can do.
        slot_width: The same in lanes.
        aspm: Power saving that is on (`l0s`, `l1` …).
    """

    generation: Reading[int] = NOT_ASKED
    width: Reading[int] = NOT_ASKED
    max_generation: Reading[int] = NOT_ASKED
    max_width: Reading[int] = NOT_ASKED
    slot: Reading[str] = NOT_ASKED
    slot_generation: Reading[int] = NOT_ASKED
    slot_width: Reading[int] = NOT_ASKED
    aspm: Reading[tuple[str, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class PciDevice:
    """A card or an NVSwitch on the bus, whether or not a driver has it.

    Attributes:
        address: `0000:1b:00.0`.
        kind: `gpu` or `nvswitch`.
        device_id: PCI device id, four hexadecimal digits, upper case.
        model: What the driver calls it.
        driver: The module that has it (`nvidia`, `vfio-pci`).
        minor: N of its `/dev/nvidiaN`.
        link: Its link.
        numa_node: The NUMA node that it is near to.
        cpus: The CPUs that it is near to, as a list (`0-31,64-95`).
        iommu_group: Number of its IOMMU group.
        iommu_type: How the IOMMU treats the group (`identity`, `DMA`, `DMA-FQ`).
    """

    address: str
    kind: DeviceKind
    device_id: str
    model: Reading[str] = NOT_ASKED
    driver: Reading[str] = NOT_ASKED
    minor: Reading[int] = NOT_ASKED
    link: Link = Link()
    numa_node: Reading[int] = NOT_ASKED
    cpus: Reading[str] = NOT_ASKED
    iommu_group: Reading[int] = NOT_ASKED
    iommu_type: Reading[str] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class AcsPort:
    """A bridge above a card, with what access control (ACS) does there.

    Attributes:
        address: The bridge.
        on: What is on, in lspci's words (`SrcValid`, `ReqRedir` …).
    """

    address: str
    on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pci:
    """The bus.

    Attributes:
        devices: NVIDIA's cards and NVSwitches, by address.
        aspm_policy: The kernel's policy of saving power on links.
        iommu: Whether addresses of devices are translated.
        acs: Bridges above cards; root alone may read it.
    """

    devices: Reading[tuple[PciDevice, ...]] = NOT_ASKED
    aspm_policy: Reading[str] = NOT_ASKED
    iommu: Reading[Iommu] = NOT_ASKED
    acs: Reading[tuple[AcsPort, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A line of the kernel's log that the driver wrote.

    Attributes:
        kind: `xid` of a card, `sxid` of an NVSwitch, a version mismatch, a card that did not start.
        at_s: Seconds since the boot, None where the line does not say.
        address: The device's PCI address as the line has it, without its function.
        number: The Xid or SXid; 0 for another kind.
        text: What the line says.
    """

    kind: EventKind
    at_s: float | None
    address: str
    number: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Daemon:
    """A program in the background that belongs to the driver.

    Attributes:
        name: Its program's name.
        running: Whether a process of that name is there.
        version: Its package's version, as dpkg or rpm has it.
        replaced: Whether its program's file was replaced since it started.
        runs: The version that the program which runs says of itself.
    """

    name: str
    running: Reading[bool] = NOT_ASKED
    version: Reading[str] = NOT_ASKED
    replaced: Reading[bool] = NOT_ASKED
    runs: Reading[str] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Mps:
    """CUDA's Multi-Process Service.

    Attributes:
        controls: Numbers of its control daemons' processes.
        servers: Numbers of its servers' processes.
        socket: Whether the default place has a daemon's socket, living or left over.
        listens: Whether the daemon that made it runs.
    """

    controls: Reading[tuple[int, ...]] = NOT_ASKED
    servers: Reading[tuple[int, ...]] = NOT_ASKED
    socket: bool = False
    listens: Reading[bool] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Cpu:
    """The processors.

    Attributes:
        architecture: The kernel's word (`x86_64`).
        model: The first one's name.
        count: How many are on line.
        level: The level of x86-64 that they have (1 to 4).
        flags: What they can do, sorted.
        numa_nodes: How many NUMA nodes there are.
    """

    architecture: Reading[str] = NOT_ASKED
    model: Reading[str] = NOT_ASKED
    count: Reading[int] = NOT_ASKED
    level: Reading[int] = NOT_ASKED
    flags: Reading[tuple[str, ...]] = NOT_ASKED
    numa_nodes: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Memory of the machine.

    Attributes:
        total_bytes: All of it.
        available_bytes: What could be had without swapping.
        limit_bytes: What this process's cgroup may use; unsupported where there is no limit.
    """

    total_bytes: Reading[int] = NOT_ASKED
    available_bytes: Reading[int] = NOT_ASKED
    limit_bytes: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """The disk of the store.

    Attributes:
        path: The store, or the nearest folder above it that is there.
        free_bytes: Room for this user.
        total_bytes: Its size.
    """

    path: str
    free_bytes: Reading[int] = NOT_ASKED
    total_bytes: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """The operating system.

    Attributes:
        kernel: Its release.
        name: What the distribution calls itself.
        glibc: Version of the C library.
        systemd: Version of systemd that is installed.
        booted: Whether systemd runs this host (sd_booted(3)).
        cgroup: Version of the cgroup tree: 2, or 1 (also where both are mounted).
        controllers: Controllers of version 2.
        container: What kind of container this is; unsupported in none.
    """

    kernel: Reading[str] = NOT_ASKED
    name: Reading[str] = NOT_ASKED
    glibc: Reading[str] = NOT_ASKED
    systemd: Reading[str] = NOT_ASKED
    booted: Reading[bool] = NOT_ASKED
    cgroup: Reading[int] = NOT_ASKED
    controllers: Reading[tuple[str, ...]] = NOT_ASKED
    container: Reading[str] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderPlace:
    """A place outside every environment in which programs find libraries of CUDA.

    Attributes:
        origin: What names it: a variable, a file of the loader's configuration.
        path: The folder, or the library itself.
        libraries: Names of the libraries there that environments have too.
    """

    origin: str
    path: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What files say of a host.

    Attributes:
        driver: NVIDIA's driver.
        nodes: Device nodes.
        pci: The bus.
        log: What the driver wrote into the kernel's log since the boot.
        daemons: Programs that belong to the driver.
        mps: CUDA's Multi-Process Service.
        system: The operating system.
        cpu: The processors.
        memory: Memory.
        disk: The store's disk.
        loader: Where programs find libraries of CUDA outside every environment.
        variables: Variables of this process that change which cards and libraries are used.
        modprobe: Whether a setuid nvidia-modprobe makes nodes and loads modules for users.
        rdma: Adapters for RDMA (InfiniBand, RoCE); unsupported where the kernel has none of it.
    """

    driver: Driver = Driver()
    nodes: Reading[tuple[DeviceNode, ...]] = NOT_ASKED
    pci: Pci = Pci()
    log: Reading[tuple[Event, ...]] = NOT_ASKED
    daemons: tuple[Daemon, ...] = ()
    mps: Mps = Mps()
    system: System = System()
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    disk: Disk = Disk(path="")
    loader: tuple[LoaderPlace, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    modprobe: Reading[bool] = NOT_ASKED
    rdma: Reading[tuple[str, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A host at one instant.

    Attributes:
        name: The machine's name.
        taken: The instant (RFC 3339, UTC).
        root: Whether root asked: others read less.
        driver_root: Where the driver's own files were looked for.
        nvml: What NVML says.
        machine: What files say.
    """

    name: str
    taken: str
    root: bool
    driver_root: str
    nvml: Nvml
    machine: Machine
