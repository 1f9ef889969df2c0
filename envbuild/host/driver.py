"""NVIDIA's driver as files show it: modules, libraries, device nodes. NVML is not asked."""

import grp
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from envbuild.host.machine import DeviceNode, Driver, DriverLibrary, Flavour, Module
from envbuild.host.readings import Reading, Unsupported, Value, known
from envbuild.host.tree import Tree, then

_NVRM = re.compile(
    r"^NVRM version:.*?(?P<open>Open )?Kernel Module.*?\s(?P<version>\d+\.\d+(?:\.\d+)?)\s"
)
_MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nv_peer_mem",
    "nouveau",
)
_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
_FOLDERS = (
    "usr/lib/{machine}-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib/{machine}-linux-gnu",
    "usr/lib/wsl/lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "run/opengl-driver/lib",
)
_VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)$")
_NODES = re.compile(r"nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)")
_MAJORS = (
    (re.compile(r"nvidia(\d+|ctl|-modeset)"), ("nvidia", "nvidia-frontend", "nvidiactl")),
    (re.compile(r"nvidia-uvm(-tools)?"), ("nvidia-uvm",)),
    (re.compile(r"nvidia-caps/.*"), ("nvidia-caps",)),
)

May = Callable[[Path, int], bool]


def read(tree: Tree, driver_tree: Tree, *, machine: str) -> Driver:
    """Return what files say of the driver.

    The module's version: /proc/driver/nvidia/version, whose text has `Open Kernel Module` for the
    open one. Libraries carry the driver's version in the file's name.

    Args:
        tree: The host's root, with `/proc` and `/sys`.
        driver_tree: The root of the driver's own files.
        machine: The kernel's word for the processor (`x86_64`).
    """
    head = tree.parsed("proc/driver/nvidia/version", _head)
    return Driver(
        loaded=then(head, lambda found: found[1]),
        flavour=then(head, lambda found: found[0]),
        modules=_modules(tree),
        built=_built(tree),
        libraries=Value(tuple(_libraries(driver_tree, machine))),
    )


def nodes(tree: Tree, may: May = os.access) -> Reading[tuple[DeviceNode, ...]]:
    """Return the driver's device nodes, and who may open them.

    Args:
        tree: The host's root.
        may: Says whether this user may open a file; access(2), which knows lists of rights too.
    """
    names = tree.names("dev")
    if not isinstance(names, Value):
        return names
    majors = _majors(known(tree.text("proc/devices")) or "")
    paths = [f"dev/{name}" for name in names.value if _NODES.fullmatch(name)]
    paths += [f"dev/nvidia-caps/{name}" for name in known(tree.names("dev/nvidia-caps")) or ()]
    return Value(tuple(_node(tree, path, majors, may) for path in paths if tree.status(path)))


def modprobe(driver_tree: Tree) -> Reading[bool]:
    """Return whether nvidia-modprobe is there and setuid: then users' programs make nodes."""
    status = driver_tree.status("usr/bin/nvidia-modprobe")
    if status is None:
        return Unsupported("there is no /usr/bin/nvidia-modprobe")
    return Value(bool(status.st_mode & stat.S_ISUID) and status.st_uid == 0)


def _head(text: str) -> tuple[Flavour, str]:
    match = _NVRM.match(text + "\n")
    if match is None:
        raise ValueError(text)
    flavour: Flavour = "open" if match["open"] else "proprietary"
    return flavour, match["version"]


def _modules(tree: Tree) -> Reading[tuple[Module, ...]]:
    names = tree.names("sys/module")
    return then(
        names,
        lambda there: tuple(
            Module(
                name=name,
                version=tree.text(f"sys/module/{name}/version"),
                source=tree.text(f"sys/module/{name}/srcversion"),
            )
            for name in _MODULES
            # A folder may stand for a parameter alone; `initstate` is there for what is loaded.
            if name in there and tree.has(f"sys/module/{name}/initstate")
        ),
    )


def _built(tree: Tree) -> Reading[tuple[str, ...]]:
    folders = tree.names("var/lib/dkms")
    kernel = known(tree.text("proc/sys/kernel/osrelease"))
    if not isinstance(folders, Value) or kernel is None:
        return folders
    found = {
        version
        for folder in folders.value
        if folder.startswith("nvidia")
        for version in known(tree.names(f"var/lib/dkms/{folder}")) or ()
        if version[:1].isdigit() and tree.has(f"var/lib/dkms/{folder}/{version}/{kernel}")
    }
    return Value(tuple(sorted(found)))


def _libraries(tree: Tree, machine: str) -> Iterator[DriverLibrary]:
    seen: set[Path] = set()
    for folder in _FOLDERS:
        for name in _LIBRARIES:
            path = f"{folder.format(machine=machine)}/{name}"
            place = tree.at(path)
            match = _VERSION.search(place.name)
            if place.is_file() and place not in seen and match:
                seen.add(place)
                yield DriverLibrary(name=name, path=tree.name(place), version=match[1])


def _majors(text: str) -> dict[str, int]:
    """Return the majors of character devices by name, of the text of /proc/devices."""
    lines = text.partition("Block devices:")[0].splitlines()
    pairs = (line.split() for line in lines if line[:4].strip().isdigit())
    return {name: int(major) for major, name in pairs}


def _node(tree: Tree, path: str, majors: dict[str, int], may: May) -> DeviceNode:
    place = tree.at(path)
    status = place.stat()
    name = path.removeprefix("dev/")
    device = stat.S_ISCHR(status.st_mode)
    number = (os.major(status.st_rdev), os.minor(status.st_rdev)) if device else None
    names = next((names for kind, names in _MAJORS if kind.fullmatch(name)), ())
    return DeviceNode(
        path=f"/{path}",
        mode=stat.S_IMODE(status.st_mode),
        owner=_name(status.st_uid, lambda number: pwd.getpwuid(number).pw_name),
        group=_name(status.st_gid, lambda number: grp.getgrgid(number).gr_name),
        opens=may(place, os.R_OK | os.W_OK),
        number=number,
        expected=next((majors[one] for one in names if one in majors), None),
        linked=tree.has(f"dev/char/{number[0]}:{number[1]}") if number else None,
    )


def _name(number: int, find: Callable[[int], str]) -> str:
    try:
        return find(number)
    except KeyError:
        return str(number)
