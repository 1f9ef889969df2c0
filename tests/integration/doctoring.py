"""Hosts for doctor: each scenario of NVML's simulator in a root folder that goes with it."""

from collections.abc import Callable
from pathlib import Path

from host_trees import Card, HostTree
from nvmlsim.simulator import place

H100_ADDRESSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
_H100 = "550.54.15"
_A100 = "535.104.05"


def h100x8(tree: HostTree, *, version: str = _H100, library: str | None = None) -> HostTree:
    """Eight H100 behind four NVSwitches, with the fabric manager and nvidia-persistenced."""
    tree.driver(version, library=library)
    for number, bus in enumerate(H100_ADDRESSES):
        tree.card(Card(address=f"0000:{bus}:00.0", node=number // 4))
    for bus in ("05", "06", "07", "08"):
        tree.switch(f"0000:{bus}:00.0")
    tree.process(901, "nv-fabricmanager").process(902, "nvidia-persistenced")
    return tree.package("nvidia-fabricmanager-550", f"{version}-1")


def h100(tree: HostTree) -> HostTree:
    return tree.driver(_H100).card(Card(address="0000:1b:00.0"))


def _a100(address: str, now: tuple[int, int] = (4, 16)) -> Card:
    return Card(
        address=address,
        device="20F1",
        model="NVIDIA A100-PCIE-40GB",
        now=now,
        most=(4, 16),
        slot=(4, 16),
    )


def _a100_slow_link(tree: HostTree) -> None:
    tree.driver(_A100).card(_a100("0000:3b:00.0", now=(3, 8))).acs("0000:10:01.0", 0x1D)


def _ecc_remaps(tree: HostTree) -> None:
    tree.driver(_A100).card(_a100("0000:3b:00.0")).card(_a100("0000:af:00.0"))
    tree.acs("0000:10:01.0", 0x1D).acs("0000:11:01.0", 0)
    tree.log(
        "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE (double bit error)",
        "NVRM: Xid (PCI:0000:3b:00): 63, pid=1896, Row Remapper: New row marked for remapping",
        "NVRM: Xid (PCI:0000:3b:00): 94, pid=7194, name=python3, Contained: Channel 0x8",
        "NVRM: Xid (PCI:0000:af:00): 64, pid=1896, Row Remapper: Failed to remap",
    )


def _b200_old_driver(tree: HostTree) -> None:
    card = Card(address="0000:17:00.0", device="2901", model="NVIDIA B200")
    tree.driver("570.133.20", is_open=True).card(card)


def _absurd(tree: HostTree) -> None:
    h100(tree)


def _gone(tree: HostTree) -> None:
    h100x8(tree)
    folder = "sys/bus/pci/devices/0000:43:00.0"
    tree.file(f"{folder}/current_link_width", "63\n")
    tree.file(f"{folder}/current_link_speed", "Unknown\n")
    tree.log(
        "Linux version 6.8.0-45-generic",
        "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the"
        " bus.",
        "NVRM: Xid (PCI:0000:43:00): 154, GPU recovery action changed from 0x0 (None) to 0x2"
        " (Node Reboot Required)",
    )


def _lost(tree: HostTree) -> None:
    h100x8(tree)
    tree.log("NVRM: Xid (PCI:0000:61:00): 79, pid='<unknown>', GPU has fallen off the bus.")


def _hang(tree: HostTree) -> None:
    h100x8(tree)
    tree.log("NVRM: Xid (PCI:0000:c3:00): 119, pid=4431, name=python, Timeout after 45s of waiting")


def _mismatch(tree: HostTree) -> None:
    h100x8(tree, library="550.90.07")
    tree.file("var/lib/dkms/nvidia/550.90.07/6.8.0-45-generic/x86_64/module/nvidia.ko")
    tree.log("NVRM: API mismatch: the client has the version 550.90.07, but this kernel module has")


def _idle(tree: HostTree) -> None:
    h100x8(tree)
    for number in range(8):
        tree.file(f"sys/class/infiniband/mlx5_{number}/node_type", "1: CA\n")
    tree.file("sys/module/nvidia_peermem/initstate", "live\n")


def _mig(tree: HostTree) -> None:
    h100x8(tree)
    tree.file("opt/cuda/lib64/libcudart.so.12")


def _no_gpu(tree: HostTree) -> None:
    tree.driver(_H100)


def _no_permission(tree: HostTree) -> None:
    tree.driver(_H100)
    for bus in H100_ADDRESSES[:3]:
        tree.card(Card(address=f"0000:{bus}:00.0"))
    (tree.root / "dev/kmsg").unlink()
    (tree.root / "dev/nvidia1").unlink()
    tree.file(".dockerenv")


def _no_sensors(tree: HostTree) -> None:
    tree.driver("580.95.05", is_open=True)
    link = (5, 1)
    name = "NVIDIA GB10"
    tree.card(Card(address="000f:01:00.0", model=name, now=link, most=link, slot=link))


def _not_loaded(tree: HostTree) -> None:
    tree.libraries(_H100)
    for bus in H100_ADDRESSES[:2]:
        tree.card(Card(address=f"0000:{bus}:00.0", driver=None))


def _old_driver(tree: HostTree) -> None:
    tree.driver("470.57.02", modules=("nvidia", "nvidia_modeset"))
    card = Card(
        address="0004:04:00.0",
        device="1DB1",
        model="Tesla V100-SXM2-16GB",
        now=(3, 16),
        most=(3, 16),
        slot=(3, 16),
    )
    tree.card(card)


def _trace(tree: HostTree) -> None:
    h100(tree)


_MACHINES = {"no-sensors": "aarch64"}
_TREES: dict[str, Callable[[HostTree], None]] = {
    "a100-slow-link": _a100_slow_link,
    "absurd": _absurd,
    "b200-old-driver": _b200_old_driver,
    "ecc-remaps": _ecc_remaps,
    "gone": _gone,
    "h100x8-idle": _idle,
    "h100x8-mig": _mig,
    "hang": _hang,
    "hang-at-once": _hang,
    "lost": _lost,
    "mismatch": _mismatch,
    "no-gpu": _no_gpu,
    "no-permission": _no_permission,
    "no-sensors": _no_sensors,
    "not-loaded": _not_loaded,
    "old-driver": _old_driver,
    "trace": _trace,
}


def host(root: Path, scenario: str) -> Path:
    """Make the root folder of a host that plays a scenario, and return it."""
    tree = HostTree(root).system(machine=_MACHINES.get(scenario, "x86_64"))
    tree.file("proc/sys/kernel/hostname", "node1\n")
    _TREES[scenario](tree)
    return place(root, scenario)


def _nouveau(tree: HostTree) -> None:
    tree.file("sys/module/nouveau/initstate", "live\n")
    tree.card(Card(address="0000:1b:00.0", driver="nouveau"))
    tree.card(Card(address="0000:43:00.0", driver="vfio-pci"))


def _no_library(tree: HostTree) -> None:
    """The driver of a container, seen without `--driver-root`; no fabric manager."""
    h100x8(tree)
    for path in (tree.root / "usr/lib/x86_64-linux-gnu").glob("lib[cn]*"):
        if "libc.so" not in path.name:
            path.unlink()
    tree.process(901, "bash")


def _cgroup1(tree: HostTree) -> None:
    for path in sorted((tree.root / "sys/fs/cgroup").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    tree.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "68719476736\n")
    tree.file("proc/self/cgroup", "4:memory:/\n0::/\n")
    tree.file("usr/local/cuda/lib64/libcudart.so.12")
    tree.file("etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64\n")


def _bare(_tree: HostTree) -> None:
    pass


WITHOUT_NVML: dict[str, Callable[[HostTree], None]] = {
    "bare": _bare,
    "cgroup-v1": _cgroup1,
    "no-library": _no_library,
    "nouveau": _nouveau,
}


def host_without_nvml(root: Path, name: str) -> Path:
    """Make the root folder of a host whose NVML is not there, and return it."""
    tree = HostTree(root).system()
    tree.file("proc/sys/kernel/hostname", "node1\n")
    WITHOUT_NVML[name](tree)
    return root
