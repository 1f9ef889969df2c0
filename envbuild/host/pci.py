"""NVIDIA's devices on the PCI bus, from sysfs: links, drivers, NUMA, IOMMU, access control."""

import re
import struct
from collections.abc import Iterator

from envbuild.host.machine import AcsPort, DeviceKind, Iommu, Link, Pci, PciDevice
from envbuild.host.readings import Lost, NoPermission, Reading, Unsupported, Value, known
from envbuild.host.tree import Tree, then

_DEVICES = "sys/bus/pci/devices"
_NVIDIA = "0x10de"
_KINDS: dict[str, DeviceKind] = {"0x0300": "gpu", "0x0302": "gpu", "0x0680": "nvswitch"}
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_GENERATIONS = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "32.0": 5, "64.0": 6}
_NO_WIDTH = 63
"""The width of a register that reads as all ones: the device no longer answers."""
_POLICY = re.compile(r"\[(\w+)\]")
_STATES = {"l0s_aspm": "l0s", "l1_aspm": "l1", "l1_1_aspm": "l1.1", "l1_2_aspm": "l1.2"}
_ACS = 0x0D
"""Number of the extended capability (PCI_EXT_CAP_ID_ACS in linux/pci_regs.h)."""
_ACS_WORDS = (
    "SrcValid",
    "TransBlk",
    "ReqRedir",
    "CmpltRedir",
    "UpstreamFwd",
    "EgressCtrl",
    "DirectTrans",
)
_EXTENDED = 0x100
_SMALL = 64


def read(tree: Tree) -> Pci:
    """Return what sysfs says of cards and NVSwitches, and of what is above them."""
    names = tree.names(_DEVICES)
    devices = then(names, lambda there: tuple(_devices(tree, there)))
    return Pci(
        devices=devices,
        aspm_policy=tree.parsed("sys/module/pcie_aspm/parameters/policy", _policy),
        iommu=_iommu(tree, known(devices) or ()),
        acs=_acs(tree, [device.address for device in known(devices) or () if device.kind == "gpu"]),
    )


def _devices(tree: Tree, names: tuple[str, ...]) -> Iterator[PciDevice]:
    for address in names:
        folder = f"{_DEVICES}/{address}"
        if known(tree.text(f"{folder}/vendor")) != _NVIDIA:
            continue
        kind = _KINDS.get((known(tree.text(f"{folder}/class")) or "")[:6])
        if kind is not None:
            yield _device(tree, address, kind)


def _device(tree: Tree, address: str, kind: DeviceKind) -> PciDevice:
    folder = f"{_DEVICES}/{address}"
    own = f"proc/driver/nvidia/gpus/{address}/information"
    group = tree.at(f"{folder}/iommu_group").name
    device = known(tree.text(f"{folder}/device")) or ""
    return PciDevice(
        address=address,
        kind=kind,
        device_id=device.removeprefix("0x").upper(),
        model=tree.parsed(own, lambda text: _field(text, "Model")),
        driver=_driver(tree, folder),
        minor=tree.parsed(own, lambda text: int(_field(text, "Device Minor"))),
        link=_link(tree, folder),
        numa_node=_numa(tree, folder),
        cpus=tree.text(f"{folder}/local_cpulist"),
        iommu_group=Value(int(group)) if group.isdigit() else Unsupported("it is in no group"),
        iommu_type=tree.text(f"{folder}/iommu_group/type"),
    )


def _field(text: str, name: str) -> str:
    """Return a line's value in the driver's text about a card.

    Raises:
        ValueError: There is no such line.
    """
    match = re.search(rf"^{name}:\s*(\S.*)$", text, re.MULTILINE)
    if match is None:
        raise ValueError(text)
    return match[1].strip()


def _driver(tree: Tree, folder: str) -> Reading[str]:
    if not tree.has(f"{folder}/driver"):
        return Unsupported("no driver has it")
    return Value(tree.at(f"{folder}/driver").name)


def _numa(tree: Tree, folder: str) -> Reading[int]:
    node = tree.parsed(f"{folder}/numa_node", int)
    return Unsupported("the firmware does not say") if node == Value(-1) else node


def _link(tree: Tree, folder: str) -> Link:
    above = _above(tree, folder)
    slot = f"{_DEVICES}/{above}" if above else ""
    nothing = Unsupported("no bridge is above it")
    return Link(
        generation=_generation(tree, f"{folder}/current_link_speed"),
        width=_width(tree, f"{folder}/current_link_width"),
        max_generation=_generation(tree, f"{folder}/max_link_speed"),
        max_width=_width(tree, f"{folder}/max_link_width"),
        slot=Value(above) if above else nothing,
        slot_generation=_generation(tree, f"{slot}/max_link_speed") if above else nothing,
        slot_width=_width(tree, f"{slot}/max_link_width") if above else nothing,
        aspm=_aspm(tree, folder),
    )


def _above(tree: Tree, folder: str) -> str | None:
    """Return the address of the bridge above a device: its folder is in the bridge's."""
    name = tree.at(folder).parent.name
    return name if _ADDRESS.fullmatch(name) else None


def _generation(tree: Tree, path: str) -> Reading[int]:
    """Return a link's generation; sysfs has its speed (`16.0 GT/s PCIe`)."""

    def parse(text: str) -> int:
        try:
            return _GENERATIONS[text.split(" ", maxsplit=1)[0]]
        except KeyError as error:
            raise ValueError(text) from error

    return tree.parsed(path, parse)


def _width(tree: Tree, path: str) -> Reading[int]:
    width = tree.parsed(path, int)
    if width == Value(_NO_WIDTH):
        return Lost(f"/{path} reads as all ones")
    return width


def _policy(text: str) -> str:
    match = _POLICY.search(text)
    if match is None:
        raise ValueError(text)
    return match[1]


def _aspm(tree: Tree, folder: str) -> Reading[tuple[str, ...]]:
    names = tree.names(f"{folder}/link")
    return then(
        names,
        lambda there: tuple(
            word
            for name, word in _STATES.items()
            if name in there and known(tree.text(f"{folder}/link/{name}")) == "1"
        ),
    )


def _iommu(tree: Tree, devices: tuple[PciDevice, ...]) -> Reading[Iommu]:
    """Return whether addresses are translated; a group of type `identity` passes them through."""
    units = tree.names("sys/class/iommu")
    if isinstance(units, NoPermission):
        return units
    if not known(units):
        return Value("off")
    types = {known(device.iommu_type) for device in devices} - {None}
    return Value("passthrough" if types and types <= {"identity"} else "translated")


def _acs(tree: Tree, cards: list[str]) -> Reading[tuple[AcsPort, ...]]:
    """Return what access control does on the bridges above cards.

    It stands in the extended configuration space, of which a user who is not root sees nothing.
    """
    ports = {
        place.name: place
        for card in cards
        for place in tree.at(f"{_DEVICES}/{card}").parents
        if _ADDRESS.fullmatch(place.name)
    }
    found = []
    for address, place in sorted(ports.items()):
        try:
            space = (place / "config").read_bytes()
        except OSError as error:
            return tree.silence(f"{_DEVICES}/{address}/config", error)
        if len(space) <= _SMALL:
            return NoPermission(f"/{_DEVICES}/{address}/config beyond its first {_SMALL} bytes")
        if (on := _control(space)) is not None:
            found.append(AcsPort(address=address, on=on))
    return Value(tuple(found))


def _control(space: bytes) -> tuple[str, ...] | None:
    """Return what is on in the ACS control register, None for a bridge without."""
    offset, seen = _EXTENDED, set[int]()
    while _EXTENDED <= offset <= len(space) - 8 and offset not in seen:
        seen.add(offset)
        (head,) = struct.unpack_from("<I", space, offset)
        if head & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", space, offset + 6)
            return tuple(word for bit, word in enumerate(_ACS_WORDS) if control >> bit & 1)
        offset = head >> 20
    return None
