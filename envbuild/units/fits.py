"""Whether a host's systemd can do what units say: cgroups, a user's manager, device nodes.

What is read lies below a root, so that it can be that of a host made for a test.
"""

import grp
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envbuild.findings import Finding, Findings, Severity
from envbuild.units import names
from envbuild.units.model import Scope, UnitFile
from envbuild.units.placing import DROP_IN

_OF_CONTROLLER: Final = {
    "CPUWeight": "cpu",
    "CPUQuota": "cpu",
    "AllowedCPUs": "cpuset",
    "AllowedMemoryNodes": "cpuset",
    "MemoryHigh": "memory",
    "MemoryMax": "memory",
    "MemorySwapMax": "memory",
    "IOWeight": "io",
    "IOReadBandwidthMax": "io",
    "IOWriteBandwidthMax": "io",
    "TasksMax": "pids",
}
_BY_BPF: Final = ("DeviceAllow", "DevicePolicy", "IPAddressAllow", "IPAddressDeny")
_IDLE_WITHOUT_V2: Final = (
    "MemoryHigh",
    "MemorySwapMax",
    "AllowedCPUs",
    "AllowedMemoryNodes",
    "IPAddressAllow",
    "IPAddressDeny",
)
_DELEGATE: Final = "cpu cpuset io memory pids"
_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia[0-9]*")
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH
_GROUP: Final = stat.S_IRGRP | stat.S_IWGRP


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """Where units are to run.

    Attributes:
        scope: The machine's manager, or a user's.
        uid: The user's number.
        user: The user's name.
        groups: The numbers of the user's groups.
        root: The root of the host's files.
    """

    scope: Scope
    uid: int
    user: str
    groups: tuple[int, ...] = ()
    root: Path = Path("/")


def judge(files: Sequence[UnitFile], seat: Seat) -> Findings:
    """Return which directives of units would do nothing on a host, and what is in the way."""
    used = directives(files)
    found = list(_version(seat.root, used))
    if not found:
        found += _controllers(seat, used) if seat.scope == "user" else _kernel(seat.root, used)
        if "IOWeight" in used:
            found += _weights(seat.root)
    if seat.scope == "user":
        found += _lingering(seat)
    if any(file.name == names.NODES or _for_cards(file.text) for file in files):
        found += _nodes(seat, files)
    return tuple(found)


def drop_ins(files: Sequence[UnitFile], seat: Seat) -> tuple[UnitFile, ...]:
    """Return what services with cards get from the host: the groups of the device nodes.

    A service's user must pass the nodes' modes as well: DeviceAllow= does not replace them.
    """
    groups = sorted(
        {
            _group_name(status.st_gid)
            for _, status in _device_nodes(seat.root)
            if status.st_mode & _OTHERS != _OTHERS and status.st_mode & _GROUP == _GROUP
        }
    )
    if not groups or seat.scope == "user":
        return ()
    found: list[UnitFile] = []
    for file in files:
        if _for_cards(file.text) and file.name.endswith(".service"):
            head = file.text.partition("\n")[0]
            text = (
                f"{head}\n# from this host: the groups that may open the cards' nodes\n\n"
                f"[Service]\nSupplementaryGroups={' '.join(groups)}\n"
            )
            found.append(UnitFile(name=f"{file.name}.d/{DROP_IN}", text=text))
    return tuple(found)


def directives(files: Iterable[UnitFile]) -> dict[str, None]:
    """Return the directives that units use, each once, in their order."""
    return {
        line.partition("=")[0]: None
        for file in files
        for line in file.text.splitlines()
        if "=" in line and line[:1].isupper()
    }


def _for_cards(text: str) -> bool:
    return "\nDeviceAllow=/dev/nvidiactl" in text


def _version(root: Path, used: Iterable[str]) -> Iterator[Finding]:
    """Yield what cgroups of version 1, alone or beside version 2, make of directives."""
    if (root / "sys/fs/cgroup/cgroup.controllers").exists():
        return
    idle = [name for name in used if name in _IDLE_WITHOUT_V2]
    hybrid = (root / "sys/fs/cgroup/unified/cgroup.controllers").exists()
    yield Finding(
        code="directives-idle",
        severity=Severity.ERROR,
        where="/sys/fs/cgroup",
        what=f"this host has cgroups of version 1{' beside version 2' if hybrid else ''}, where"
        f" these would do nothing: {', '.join(idle) or 'none of these units'}",
        why="systemd sets them with version 2 alone, silently (systemd.resource-control(5))",
        hint="systemd.unified_cgroup_hierarchy=1 on the kernel's command line, then restart",
    )


def _kernel(root: Path, used: Iterable[str]) -> Iterator[Finding]:
    """Yield the controllers that the machine's own systemd does not have, as in a container."""
    there = _words(root / "sys/fs/cgroup/cgroup.controllers")
    idle = {name: needed for name in used if (needed := _OF_CONTROLLER.get(name)) is not None}
    missing = [one for one in dict.fromkeys(idle.values()) if one not in there]
    if missing:
        told = [name for name, needed in idle.items() if needed in missing]
        yield Finding(
            code="controller-missing",
            severity=Severity.WARNING,
            where="/sys/fs/cgroup",
            what=f"this host has no controller {', '.join(missing)}, so these would do nothing:"
            f" {', '.join(told)}",
            why="systemd says nothing of limits that it cannot set",
            hint="a container gets them from what started it; a kernel, by cgroup_disable= taken"
            " off its command line",
        )


def _controllers(seat: Seat, used: Iterable[str]) -> Iterator[Finding]:
    """Yield the controllers that did not reach the cgroup that a user's units run in."""
    manager = f"user.slice/user-{seat.uid}.slice/user@{seat.uid}.service"
    top = seat.root / "sys/fs/cgroup" / manager
    delegated = _words(top / "cgroup.controllers")
    used = tuple(used)
    below = next(
        (
            folder
            for folder in (top / names.PARENT_SLICE, top / "app.slice")
            if (folder / "cgroup.controllers").exists()
        ),
        top,
    )
    enabled = _words(below / "cgroup.controllers")
    for controller in dict.fromkeys(_OF_CONTROLLER.values()):
        told = [name for name in used if _OF_CONTROLLER.get(name) == controller]
        if not told or controller in enabled:
            continue
        if controller in delegated:
            yield Finding(
                code="controller-missing",
                severity=Severity.NOTE,
                where=f"/sys/fs/cgroup/{manager}/{below.name}",
                what=f"{controller} is delegated to this user, and not enabled in {below.name} yet;"
                f" it is for {', '.join(told)}",
                why="systemd enables it when a unit that needs it starts",
                hint="look again once it runs: systemctl --user show -p EffectiveCPUs UNIT"
                if controller == "cpuset"
                else None,
            )
        else:
            yield Finding(
                code="controller-missing",
                severity=Severity.ERROR,
                where=f"/sys/fs/cgroup/{manager}",
                what=f"{controller} is not delegated to this user's systemd, so these would do"
                f" nothing: {', '.join(told)}",
                why="it says nothing of limits that it cannot set",
                hint="as root, systemctl edit user@.service: [Service] and below it"
                f" Delegate={_DELEGATE}; then log in anew",
            )
    idle = [name for name in used if name in _BY_BPF]
    if idle:
        yield Finding(
            code="controller-missing",
            severity=Severity.ERROR,
            where=f"/sys/fs/cgroup/{manager}",
            what=f"a user's systemd cannot enforce {', '.join(idle)}",
            why="they need root: which devices are opened is left to the nodes' modes",
            hint="install them for the machine: --system",
        )


def _weights(root: Path) -> Iterator[Finding]:
    """Yield the disks where neither a scheduler nor the kernel's cost model heeds weights."""
    qos = {
        line.partition(" ")[0]
        for line in _lines(root / "sys/fs/cgroup/io.cost.qos")
        if "enable=1" in line.split()
    }
    told: list[str] = []
    for device in sorted((root / "sys/block").glob("*/device")):
        disk = device.parent
        chosen = [word for word in _words(disk / "queue/scheduler") if word.startswith("[")]
        number = "".join(_words(disk / "dev"))
        if chosen and chosen != ["[bfq]"] and number not in qos:
            told.append(f"{disk.name} ({chosen[0].strip('[]')})")
    if told:
        yield Finding(
            code="io-weight-idle",
            severity=Severity.WARNING,
            where="/sys/block",
            what=f"IOWeight does nothing on {', '.join(told)}: its scheduler does not know weights",
            why="only the scheduler bfq, or the kernel's cost model, divides a disk by weights"
            " (Linux, bfq-iosched.rst, cgroup-v2.rst)",
            hint=f"echo bfq >/sys/block/{told[0].partition(' ')[0]}/queue/scheduler; or"
            " io_read_bandwidth and io_write_bandwidth, which hold with every scheduler",
        )


def _lingering(seat: Seat) -> Iterator[Finding]:
    if not (seat.root / "var/lib/systemd/linger" / seat.user).exists():
        yield Finding(
            code="ends-at-logout",
            severity=Severity.WARNING,
            where=seat.user,
            what="services of this user end when they log out, and do not start at boot",
            why="a user's systemd runs while they are logged in, unless they linger (loginctl(1))",
            hint=f"loginctl enable-linger {seat.user}",
        )


def _nodes(seat: Seat, files: Sequence[UnitFile]) -> Iterator[Finding]:
    """Yield device nodes that a service cannot be let open by a group."""
    users = [seat.user] if seat.scope == "user" else _users(files)
    closed: list[str] = []
    for path, status in _device_nodes(seat.root):
        if status.st_mode & _OTHERS == _OTHERS:
            continue
        by_group = status.st_mode & _GROUP == _GROUP
        member = seat.scope == "system" or status.st_gid in seat.groups
        if not (by_group and member):
            mode = stat.S_IMODE(status.st_mode)
            closed.append(f"{path} ({mode:04o}, group {_group_name(status.st_gid)})")
    if closed and users:
        yield Finding(
            code="device-node-permission",
            severity=Severity.ERROR,
            where=closed[0].partition(" ")[0],
            what=f"{', '.join(users)} may not open {', '.join(closed)}",
            why="CUDA opens these nodes; DeviceAllow= does not replace their modes",
            hint="let users open them: NVreg_DeviceFileMode=0666 of the module nvidia, or 0660 with"
            " a group",
        )


def _users(files: Sequence[UnitFile]) -> list[str]:
    """Return whom services with cards run as, without root, who may open every node."""
    found = {
        line.removeprefix("User=")
        for file in files
        if _for_cards(file.text)
        for line in file.text.splitlines()
        if line.startswith("User=")
    }
    return sorted(found - {"root", "0"})


def _device_nodes(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for pattern in _NODES:
        for path in sorted((root / "dev").glob(pattern)):
            yield f"/dev/{path.name}", path.stat()


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return f"{number}"


def _words(path: Path) -> tuple[str, ...]:
    return tuple(word for line in _lines(path) for word in line.split())


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text().splitlines())
    except OSError:
        return ()
