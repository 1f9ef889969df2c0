"""What speaks against a host's driver: versions that differ, nodes, age, the fabric manager."""

from collections.abc import Iterator
from datetime import date

from envbuild.compat.consistency import numbers
from envbuild.compat.host_words import capability, card_name, cards, driver_of, on_bus
from envbuild.compat.model import Facts
from envbuild.compat.triangle import driver_floor
from envbuild.findings import Finding, Severity
from envbuild.host.machine import Daemon, DeviceNode, Driver, Host
from envbuild.host.model import NvmlState
from envbuild.host.readings import NOT_ASKED, NoAnswer, Value, known

_MISMATCH = (
    "CUDA then fails with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803), NVML with"
    " `Driver/library version mismatch` (cuda.h, nvml.h)"
)
_NODES = (
    "CUDA reaches the cards through /dev/nvidia*, which setuid nvidia-modprobe makes where it is"
    " there (NVIDIA, CUDA Installation Guide for Linux, Device Node Verification)"
)
_RESTART = "systemctl restart nvidia-fabricmanager, with nothing on the cards"
_FABRIC = (
    "with NVSwitches, CUDA starts only once the fabric manager has set them up, else"
    " cudaErrorSystemNotReady (802); its version has to be the driver's (NVIDIA, Fabric Manager"
    " User Guide)"
)
_PERSISTENCE = (
    "the driver then lets go of a card with its last user: the next start takes seconds longer, and"
    " settings and counts since the start are lost (NVIDIA, Driver Persistence)"
)
_GROUP = 0o060
_RELOAD = (
    "restart the machine, or end what uses the cards and load the module anew:"
    " modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia && modprobe nvidia"
)


def judge(host: Host, facts: Facts, *, today: date) -> Iterator[Finding]:
    """Yield what speaks against the driver.

    Args:
        host: The host.
        facts: The tables.
        today: The day (UTC).
    """
    if not cards(host):
        yield _no_card(host)
        return
    yield from _loaded(host)
    yield from _answer(host)
    yield from _mismatch(host)
    if isinstance(host.machine.driver.loaded, Value):
        yield from _uvm(host)
        yield from _nodes(host)
    yield from _age(host, facts, today)
    yield from _for_cards(host, facts)
    yield from _persistence(host)
    yield from _fabric(host)


def _no_card(host: Host) -> Finding:
    seen = "no NVIDIA card is on the bus"
    if known(host.machine.pci.devices) is None:
        seen = "the bus cannot be read (/sys), and NVML names no card"
    return Finding(
        code="no-gpu",
        severity=Severity.WARNING,
        where=host.name,
        what=seen,
        why="environments that need no card run here; CUDA programs do not",
        hint="envbuild doctor NAME says whether an environment runs here",
    )


def _loaded(host: Host) -> Iterator[Finding]:
    modules = {module.name for module in known(host.machine.driver.modules) or ()}
    if "nouveau" in modules:
        yield Finding(
            code="nouveau-loaded",
            severity=Severity.ERROR,
            where="nouveau",
            what="the kernel's own driver for NVIDIA cards is loaded",
            why="it takes the cards, and NVIDIA's driver cannot have them (NVIDIA, CUDA"
            " Installation Guide for Linux, Disabling Nouveau)",
            hint="keep it from loading: `blacklist nouveau` and `options nouveau modeset=0` in"
            " /etc/modprobe.d, make the initramfs anew, restart",
        )
    elsewhere = [
        device for device in on_bus(host) if known(device.driver) not in (None, "nvidia", "nouveau")
    ]
    for device in elsewhere:
        yield Finding(
            code="card-elsewhere",
            severity=Severity.NOTE,
            where=device.address,
            what=f"{known(device.driver)} has this card",
            why="NVIDIA's driver cannot use it; vfio-pci hands cards to virtual machines",
        )
    unused = len(on_bus(host)) > len(elsewhere)
    absent = not isinstance(host.machine.driver.loaded, Value) and "nvidia" not in modules
    if absent and unused and host.nvml.state is not NvmlState.ANSWERED:
        yield Finding(
            code="driver-not-loaded",
            severity=Severity.ERROR,
            where=host.name,
            what=f"{len(on_bus(host))} cards are on the bus, and NVIDIA's driver is not loaded",
            why="no program can use them",
            hint=_how_to_load(host.machine.driver),
        )


def _how_to_load(driver: Driver) -> str:
    built = known(driver.built)
    if built:
        return f"modprobe nvidia (DKMS built {', '.join(built)}); dmesg says why where it fails"
    return "install the driver for this kernel, or look with dmesg why it did not load"


def _answer(host: Host) -> Iterator[Finding]:
    nvml = host.nvml
    if nvml.state in {NvmlState.SILENT, NvmlState.DIED, NvmlState.FAILED}:
        unasked = [
            str(gpu.index)
            for gpu in nvml.gpus
            if isinstance(gpu.name, NoAnswer) and gpu.name.why.startswith(NOT_ASKED.why)
        ]
        ending = f"; GPU {', '.join(unasked)} could not be asked any more" if unasked else ""
        yield Finding(
            code="nvml-no-answer",
            severity=Severity.ERROR,
            where="NVML",
            what=(nvml.why or f"NVML {nvml.state}") + ending,
            why="the driver or a card hangs, or this user may not reach them; programs on the"
            " cards may hang too",
            hint="look into the kernel's log for Xid lines; a card that hangs needs a reset, or"
            " the machine a restart",
        )
    loaded = isinstance(host.machine.driver.loaded, Value)
    if nvml.state is NvmlState.NO_LIBRARY and loaded:
        yield Finding(
            code="nvml-missing",
            severity=Severity.WARNING,
            where="libnvidia-ml.so.1",
            what="the driver is loaded, and its library for looking at cards is not found",
            why="nothing is known of the cards' state; CUDA needs libcuda.so.1 of the same set",
            hint="where a container holds the driver: --driver-root /run/nvidia/driver; else"
            " install the driver's libraries, of the same version",
        )


def _mismatch(host: Host) -> Iterator[Finding]:
    driver = host.machine.driver
    loaded, libraries = known(driver.loaded), known(driver.libraries) or ()
    others: dict[str, str] = {}
    for each in libraries:
        if each.version != loaded:
            others.setdefault(each.version, each.path)
    said = host.nvml.state is NvmlState.MISMATCH
    if not said and (loaded is None or not others):
        return
    answered = host.nvml.state is NvmlState.ANSWERED
    seen = [f"{path} is of {version}" for version, path in sorted(others.items())]
    what = f"the kernel runs driver {loaded or 'of another version'}"
    what += f", and {' and '.join(seen)}" if seen else ", and its libraries are of another version"
    waits = [version for version in known(driver.built) or () if version in others]
    yield Finding(
        code="driver-mismatch",
        severity=Severity.WARNING if answered else Severity.ERROR,
        where=f"driver {loaded or ''}".strip(),
        what=what,
        why=_MISMATCH
        + ("; NVML answered, so the loader takes a library that fits" if answered else ""),
        hint=_RELOAD + (f"; DKMS built {waits[0]}" if waits else ""),
    )


def _uvm(host: Host) -> Iterator[Finding]:
    modules = known(host.machine.driver.modules)
    if modules is None or any(module.name == "nvidia_uvm" for module in modules):
        return
    helps = known(host.machine.modprobe) is True
    ending = (
        "a program outside every sandbox loads it (nvidia-modprobe is setuid); a service with"
        " NoNewPrivileges or without modules cannot"
        if helps
        else "and nothing loads it for users: nvidia-modprobe is not there or not setuid"
    )
    yield Finding(
        code="nvidia-uvm-missing",
        severity=Severity.NOTE if helps else Severity.ERROR,
        where="nvidia_uvm",
        what="the driver's module for unified memory is not loaded",
        why=f"CUDA does not start without it; {ending}",
        hint="modprobe nvidia-uvm, at each start: a line nvidia-uvm in /etc/modules-load.d",
    )


def _nodes(host: Host) -> Iterator[Finding]:
    nodes = known(host.machine.nodes)
    if nodes is None:
        return
    minors = [known(device.minor) for device in on_bus(host)]
    minors += [known(gpu.minor) for gpu in host.nvml.gpus]
    wanted = {f"/dev/nvidia{minor}" for minor in minors if minor is not None} | {"/dev/nvidiactl"}
    if any(each.name == "nvidia_uvm" for each in known(host.machine.driver.modules) or ()):
        wanted.add("/dev/nvidia-uvm")
    if missing := sorted(wanted - {node.path for node in nodes}):
        yield Finding(
            code="device-node-missing",
            severity=Severity.WARNING,
            where=", ".join(missing),
            what=f"{'this node is' if len(missing) == 1 else 'these nodes are'} not there",
            why=_NODES,
            hint="nvidia-modprobe -c 0 -u makes them; a container gets them when it is started",
        )
    yield from _closed(nodes)
    for node in nodes:
        if node.number and node.expected is not None and node.number[0] != node.expected:
            yield Finding(
                code="device-node-stale",
                severity=Severity.ERROR,
                where=node.path,
                what=f"it has major {node.number[0]}, and the kernel's is {node.expected} now",
                why="majors of nvidia-uvm and nvidia-caps are given out anew when a module loads",
                hint=f"rm {node.path} && nvidia-modprobe -c 0 -u",
            )


def _closed(nodes: tuple[DeviceNode, ...]) -> Iterator[Finding]:
    """Yield nodes that this user may not open; those for MIG's own rights are not for users."""
    closed = [node for node in nodes if not node.opens and "/nvidia-caps/" not in node.path]
    if closed:
        told = ", ".join(
            f"{node.path} ({node.mode:04o} {node.owner}:{node.group})" for node in closed
        )
        groups = sorted({node.group for node in closed if node.mode & _GROUP == _GROUP} - {"root"})
        yield Finding(
            code="device-node-permission",
            severity=Severity.ERROR,
            where=closed[0].path,
            what=f"this user may not open {told}",
            why=_NODES,
            hint=f"put the user into the group {groups[0]}"
            if groups
            else "let users open them: NVreg_DeviceFileMode=0666 of the module nvidia",
        )


def _age(host: Host, facts: Facts, today: date) -> Iterator[Finding]:
    version = driver_of(host)
    if version is None:
        return
    branch = numbers(version)[0]
    row = next((one for one in facts.branches if one.branch == branch), None)
    end = row.end_of_life if row else None
    if row is None or end is None or today.isoformat()[: len(end)] <= end:
        return
    kept = [one for one in facts.branches if one.kind == "long-term" and one.branch > branch]
    kept = [one for one in kept if (one.end_of_life or "9") > today.isoformat()]
    later = min(kept, key=lambda one: one.branch, default=None)
    yield Finding(
        code="driver-end-of-life",
        severity=Severity.WARNING,
        where=f"driver {version}",
        what=f"its branch R{branch} gets no updates since {end}",
        why="; ".join(row.sources),
        hint=f"R{later.branch} is kept until {later.end_of_life}" if later else None,
    )


def _for_cards(host: Host, facts: Facts) -> Iterator[Finding]:
    """Yield cards that the driver is too old or too new for."""
    version = driver_of(host)
    if version is None:
        return
    names: dict[str, list[str]] = {}
    for card in cards(host):
        if (found := capability(card, facts)) is not None:
            names.setdefault(found, []).append(card_name(card))
    for found, told in names.items():
        floor = driver_floor(facts, (), (found,))
        row = next((one for one in facts.architectures if one.capability == found), None)
        if floor is not None and numbers(version) < numbers(floor.version):
            yield Finding(
                code="driver-too-old",
                severity=Severity.ERROR,
                where=f"driver {version}",
                what=f"it is too old for {', '.join(told)} (compute capability {found}):"
                f" {floor.version} is needed",
                why=f"{floor.why} ({'; '.join(floor.sources)})",
                hint=f"install driver {floor.version} or newer",
            )
        last = row.last_branch if row else None
        if row is not None and last is not None and numbers(version)[0] > last:
            yield Finding(
                code="driver-too-new",
                severity=Severity.ERROR,
                where=f"driver {version}",
                what=f"R{last} is the last branch that runs {', '.join(told)} (compute"
                f" capability {found})",
                why="; ".join(row.sources),
                hint=f"install driver {last}",
            )


def _persistence(host: Host) -> Iterator[Finding]:
    off = [card for card in host.nvml.gpus if known(card.persistence) is False]
    if off:
        yield Finding(
            code="persistence-off",
            severity=Severity.NOTE,
            where=_range([card.index for card in off]),
            what="persistence mode is off",
            why=_PERSISTENCE,
            hint="let nvidia-persistenced run: systemctl enable --now nvidia-persistenced",
        )


def _range(indexes: list[int]) -> str:
    return f"GPU {', '.join(map(str, indexes))}"


def _fabric(host: Host) -> Iterator[Finding]:
    switches = [one for one in known(host.machine.pci.devices) or () if one.kind == "nvswitch"]
    manager = next((one for one in host.machine.daemons if one.name == "nv-fabricmanager"), None)
    waiting = [
        card.index
        for card in host.nvml.gpus
        if known(card.fabric.state) in ("not-started", "in-progress")
    ]
    running = known(manager.running) if manager else None
    if switches and running is False:
        yield Finding(
            code="fabric-manager-missing",
            severity=Severity.ERROR,
            where=f"{len(switches)} NVSwitches",
            what="nv-fabricmanager does not run",
            why=_FABRIC,
            hint="install nvidia-fabricmanager of the driver's version and start it: systemctl"
            " enable --now nvidia-fabricmanager",
        )
    elif waiting:
        yield Finding(
            code="fabric-not-ready",
            severity=Severity.ERROR,
            where=_range(waiting),
            what="not registered with the fabric yet",
            why=_FABRIC,
            hint="wait, then look: journalctl -u nvidia-fabricmanager",
        )
    if switches and manager is not None:
        yield from _manager(manager, driver_of(host))


def _manager(manager: Daemon, driver: str | None) -> Iterator[Finding]:
    """Yield what the fabric manager's versions have against the driver's."""
    runs, version = known(manager.runs), known(manager.version)
    differs = [
        (said, where, hint)
        for said, where, hint in (
            (runs, "the running program", _RESTART),
            (version, "its package", f"install nvidia-fabricmanager of {driver}"),
        )
        if said and driver and numbers(said) != numbers(driver)
    ]
    for said, where, hint in differs:
        yield Finding(
            code="fabric-manager-differs",
            severity=Severity.ERROR,
            where="nv-fabricmanager",
            what=f"{where} is of {said}, the driver of {driver}",
            why=_FABRIC,
            hint=hint,
        )
    if known(manager.replaced) and not runs:
        yield Finding(
            code="fabric-manager-differs",
            severity=Severity.WARNING,
            where="nv-fabricmanager",
            what="its program was replaced since it started: it runs an earlier release",
            why=_FABRIC,
            hint=_RESTART,
        )
