"""The operating system, processors, memory, disk."""

import os
import re
from pathlib import Path

from envbuild.host.machine import Cpu, Disk, Memory, System
from envbuild.host.readings import NoPermission, Reading, Unsupported, Value, known
from envbuild.host.tree import Tree, then

_LIBC = re.compile(rb"GNU C Library [^\n]*? version (\d+\.\d+)")
_LIBC_PLACES = ("lib/{machine}-linux-gnu", "lib64", "usr/lib64", "usr/lib")
_SYSTEMD = re.compile(r"libsystemd-shared-(\d+)[^/]*\.so")
_SYSTEMD_PLACES = (
    "usr/lib/{machine}-linux-gnu/systemd",
    "usr/lib64/systemd",
    "usr/lib/systemd",
    "lib/systemd",
)
_LEVELS = (  # x86-64 psABI, "Micro-Architecture Levels"; names as in /proc/cpuinfo
    {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
    {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
)
_NO_LIMIT = 1 << 60


def system(tree: Tree, *, machine: str) -> System:
    """Return what the operating system is."""
    return System(
        kernel=tree.text("proc/sys/kernel/osrelease"),
        name=tree.parsed("etc/os-release", _pretty),
        glibc=_glibc(tree, machine),
        systemd=_systemd(tree, machine),
        booted=Value(tree.has("run/systemd/system")),
        cgroup=_cgroup(tree),
        controllers=then(
            tree.text("sys/fs/cgroup/cgroup.controllers"), lambda text: tuple(text.split())
        ),
        container=_container(tree),
    )


def cpu(tree: Tree) -> Cpu:
    """Return what the processors are."""
    text = tree.text("proc/cpuinfo")
    flags = then(text, lambda info: tuple(sorted(_line(info, "flags", "Features").split())))
    architecture = tree.text("proc/sys/kernel/arch")
    if not isinstance(architecture, Value):  # the file is there from Linux 6.1 on
        architecture = then(text, lambda info: "x86_64" if "\nflags" in info else "aarch64")
    return Cpu(
        architecture=architecture,
        model=then(text, _model, where="/proc/cpuinfo"),
        count=then(text, lambda info: info.count("processor\t") or 1),
        level=_level(flags, architecture),
        flags=flags,
        numa_nodes=then(
            tree.names("sys/devices/system/node"),
            lambda names: sum(re.fullmatch(r"node\d+", name) is not None for name in names),
        ),
    )


def memory(tree: Tree) -> Memory:
    """Return how much memory there is, and what this process may use of it."""
    text = tree.text("proc/meminfo")
    return Memory(
        total_bytes=then(text, lambda info: _kib(info, "MemTotal"), where="/proc/meminfo"),
        available_bytes=then(text, lambda info: _kib(info, "MemAvailable"), where="/proc/meminfo"),
        limit_bytes=_limit(tree),
    )


def disk(path: Path) -> Disk:
    """Return how much room there is for a store, which need not be there yet."""
    folder = next((one for one in (path, *path.parents) if one.is_dir()), Path("/"))
    try:
        status = os.statvfs(folder)
    except OSError as error:
        nothing = NoPermission(f"{folder}: {error.strerror}")
        return Disk(path=str(folder), free_bytes=nothing, total_bytes=nothing)
    return Disk(
        path=str(folder),
        free_bytes=Value(status.f_bavail * status.f_frsize),
        total_bytes=Value(status.f_blocks * status.f_frsize),
    )


def _pretty(text: str) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    if match is None:
        raise ValueError(text)
    return match[1]


def _glibc(tree: Tree, machine: str) -> Reading[str]:
    """Return the version that the C library's own text has."""
    for folder in _LIBC_PLACES:
        place = tree.at(f"{folder.format(machine=machine)}/libc.so.6")
        try:
            match = _LIBC.search(place.read_bytes())
        except OSError:
            continue
        if match:
            return Value(match[1].decode())
    return Unsupported("there is no libc.so.6 of the GNU C library")


def _systemd(tree: Tree, machine: str) -> Reading[str]:
    for folder in _SYSTEMD_PLACES:
        for name in known(tree.names(folder.format(machine=machine))) or ():
            if match := _SYSTEMD.fullmatch(name):
                return Value(match[1])
    return Unsupported("systemd is not installed")


def _cgroup(tree: Tree) -> Reading[int]:
    if tree.has("sys/fs/cgroup/cgroup.controllers"):
        return Value(2)
    return Value(1) if known(tree.names("sys/fs/cgroup")) else Unsupported("no cgroups are mounted")


def _container(tree: Tree) -> Reading[str]:
    told = tree.text("run/systemd/container")
    if isinstance(told, Value):
        return told
    if tree.has(".dockerenv"):
        return Value("docker")
    if tree.has("run/.containerenv"):
        return Value("podman")
    return Unsupported("nothing says that this is one")


def _model(text: str) -> str:
    """Return the processor's name; Arm's have numbers only."""
    try:
        return _line(text, "model name")
    except ValueError:
        return f"Arm {_line(text, 'CPU implementer')}/{_line(text, 'CPU part')}"


def _line(text: str, *names: str) -> str:
    """Return the value of the first line of a name.

    Raises:
        ValueError: There is none.
    """
    for name in names:
        if match := re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE):
            return match[1].strip()
    raise ValueError(names)


def _level(flags: Reading[tuple[str, ...]], architecture: Reading[str]) -> Reading[int]:
    if known(architecture) != "x86_64":
        return Unsupported("levels are those of x86-64")

    def level(found: tuple[str, ...]) -> int:
        have = 1
        for needed in _LEVELS:
            if not needed <= set(found):
                break
            have += 1
        return have

    return then(flags, level)


def _kib(text: str, name: str) -> int:
    return int(_line(text, name).split()[0]) * 1024


def _limit(tree: Tree) -> Reading[int]:
    """Return the lowest limit of this process's cgroups, of either version."""
    limits = []
    for line in (known(tree.text("proc/self/cgroup")) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, name = "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        parts = path.strip("/").split("/")
        for count in range(len(parts) + 1):
            folder = "/".join([base, *parts[:count]])
            text = known(tree.text(f"{folder}/{name}")) or ""
            limits += [int(text)] if text.isdigit() and int(text) < _NO_LIMIT else []
    return Value(min(limits)) if limits else Unsupported("no limit is set")
