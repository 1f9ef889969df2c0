"""Root folders of hosts, made of small files as the kernel, the driver and systems have them."""

import os
from dataclasses import dataclass
from pathlib import Path

_CPU_FLAGS = (
    "fpu cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
    " avx512f avx512bw avx512cd avx512dq avx512vl"
)
_CPUS = {
    "x86_64": (
        "processor\t: {0}\nvendor_id\t: GenuineIntel\n"
        "model name\t: INTEL(R) XEON(R) PLATINUM 8558\n"
        f"flags\t\t: {_CPU_FLAGS}\n\n"
    ),
    "aarch64": (
        "processor\t: {0}\nFeatures\t: fp asimd aes sha2 crc32 atomics sve\n"
        "CPU implementer\t: 0x41\nCPU part\t: 0xd85\n\n"
    ),
}
_MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm")
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card or an NVSwitch: address, PCI device id, and its link now, at most, and the slot's."""

    address: str
    device: str = "2330"
    model: str = "NVIDIA H100 80GB HBM3"
    now: tuple[int, int] = (5, 16)
    most: tuple[int, int] = (5, 16)
    slot: tuple[int, int] = (5, 16)
    kind: str = "0x030200"
    node: int = 0
    driver: str | None = "nvidia"


class HostTree:
    """A root folder that grows by what a host has."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.machine = "x86_64"
        self._cards = 0
        self._buses = 16

    def file(self, path: str, content: str | bytes = "", *, mode: int = 0o644) -> "HostTree":
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        place.chmod(mode)
        return self

    def link(self, path: str, target: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def system(
        self,
        *,
        kernel: str = "6.8.0-45-generic",
        glibc: str = "2.35",
        cgroup2: bool = True,
        memory_kib: int = 2113560064,
        machine: str = "x86_64",
    ) -> "HostTree":
        """An Ubuntu 22.04 with two Xeons' worth of everything, or on Arm."""
        self.machine = machine
        self.file("proc/sys/kernel/osrelease", f"{kernel}\n")
        self.file("proc/sys/kernel/arch", f"{machine}\n")
        self.file("proc/cpuinfo", "".join(_CPUS[machine].format(number) for number in range(4)))
        self.file(
            "proc/meminfo",
            f"MemTotal:       {memory_kib} kB\nMemFree:        1000 kB\n"
            f"MemAvailable:   {memory_kib - 64_000_000} kB\n",
        )
        self.file("proc/self/cgroup", "0::/user.slice\n")
        self.file("proc/1/comm", "systemd\n")
        self.file("etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n')
        libc = b"\x7fELF\0GNU C Library (Ubuntu GLIBC %s-0ubuntu3.8) stable release version %s.\n"
        self.file(f"usr/lib/{machine}-linux-gnu/libc.so.6", libc % (glibc.encode(), glibc.encode()))
        self.link("lib", "usr/lib")
        self.file("usr/lib/systemd/libsystemd-shared-249.so")
        self.file("run/systemd/system/.keep")
        if cgroup2:
            self.file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
            self.file("sys/fs/cgroup/user.slice/memory.max", "max\n")
        else:
            self.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        self.file("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave\n")
        for node in range(2):
            self.file(f"sys/devices/system/node/node{node}/cpulist", "0-1\n")
        self.file("sys/bus/pci/devices/.keep")
        self.file("dev/kmsg")
        self.file("var/lib/dpkg/status", "Package: bash\nStatus: install ok installed\n\n")
        self.file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        return self

    def driver(
        self,
        version: str,
        *,
        library: str | None = None,
        is_open: bool = False,
        modules: tuple[str, ...] = _MODULES,
    ) -> "HostTree":
        """The driver's module, its libraries, and its nodes but those of cards."""
        kind = f"Open Kernel Module for {self.machine}"
        kind = kind if is_open else f"{self.machine} Kernel Module"
        text = f"NVRM version: NVIDIA UNIX {kind}  {version}  Tue Mar  5 22:23:56 UTC 2024\n"
        self.file("proc/driver/nvidia/version", text + "GCC version:  gcc version 12.3.0\n")
        for module in modules:
            self.file(f"sys/module/{module}/initstate", "live\n")
            self.file(f"sys/module/{module}/version", f"{version}\n")
            self.file(f"sys/module/{module}/srcversion", "0B2C3D4E5F60718293A4B5C\n")
        self.file(
            "proc/devices",
            "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n"
            "511 nvidia-caps\n\nBlock devices:\n  8 sd\n",
        )
        self.libraries(library or version)
        nodes = ["nvidiactl", *(["nvidia-uvm"] if "nvidia_uvm" in modules else [])]
        for name in nodes:
            self.file(f"dev/{name}", mode=0o666)
        return self

    def libraries(self, version: str, folder: str = "") -> "HostTree":
        folder = folder or f"usr/lib/{self.machine}-linux-gnu"
        for name in ("libcuda.so", "libnvidia-ml.so"):
            self.file(f"{folder}/{name}.{version}")
            self.link(f"{folder}/{name}.1", f"{name}.{version}")
        return self

    def card(self, card: Card) -> "HostTree":
        """A card below a bridge of its own, its node, and what the driver shows of it."""
        number, bus = self._cards, self._buses
        self._buses += 1
        bridge = f"0000:{bus:02x}:01.0"
        folder = f"sys/devices/pci0000:{bus:02x}/{bridge}"
        own = f"{folder}/{card.address}"
        self._link_files(folder, card.slot, card.slot)
        self._link_files(own, card.now, card.most)
        for name, text in {
            "vendor": "0x10de",
            "device": f"0x{card.device.lower()}",
            "class": card.kind,
            "numa_node": f"{card.node}",
            "local_cpulist": "0-1",
            "link/l0s_aspm": "0",
            "link/l1_aspm": "0",
        }.items():
            self.file(f"{own}/{name}", f"{text}\n")
        self.link(f"sys/bus/pci/devices/{card.address}", f"../../../../{own}")
        self.link(f"sys/bus/pci/devices/{bridge}", f"../../../../{folder}")
        if card.driver is not None:
            self.file(f"sys/bus/pci/drivers/{card.driver}/.keep")
            self.link(f"{own}/driver", f"/sys/bus/pci/drivers/{card.driver}")
        if card.driver == "nvidia" and card.kind != "0x068000":
            self.file(
                f"proc/driver/nvidia/gpus/{card.address}/information",
                f"Model: \t\t {card.model}\nIRQ:   \t\t 68\nDevice Minor: \t {number}\n",
            )
            self.file(f"dev/nvidia{number}", mode=0o666)
            self._cards += 1
        return self

    def switch(self, address: str) -> "HostTree":
        """An NVSwitch."""
        return self.card(
            Card(address=address, device="22A3", kind="0x068000", driver="nvidia-nvswitch")
        )

    def _link_files(self, folder: str, now: tuple[int, int], most: tuple[int, int]) -> None:
        for name, (generation, width) in {"current": now, "max": most}.items():
            self.file(f"{folder}/{name}_link_speed", f"{_SPEEDS[generation]} GT/s PCIe\n")
            self.file(f"{folder}/{name}_link_width", f"{width}\n")

    def acs(self, address: str, control: int) -> "HostTree":
        """Give a bridge a configuration space with an ACS capability."""
        space = bytearray(4096)
        space[0x100:0x108] = (0x0001 | 1 << 16 | 0x148 << 20).to_bytes(4, "little") + bytes(4)
        space[0x148:0x150] = (0x000D | 1 << 16).to_bytes(4, "little") + (
            control << 16 | 0x7F
        ).to_bytes(4, "little")
        self.file(f"sys/bus/pci/devices/{address}/config", bytes(space))
        return self

    def log(self, *lines: str) -> "HostTree":
        """Put lines into the kernel's log, a second apart from the boot on."""
        records = [
            f"4,{number},{number * 1_000_000},-;{line}\n" for number, line in enumerate(lines, 1)
        ]
        self.file("dev/kmsg", "".join(records))
        return self

    def process(self, number: int, name: str) -> "HostTree":
        self.file(f"proc/{number}/comm", f"{name[:15]}\n")
        self.file(f"proc/{number}/cmdline", f"/usr/bin/{name}\0-d\0")
        return self

    def package(self, name: str, version: str) -> "HostTree":
        place = self.root / "var/lib/dpkg/status"
        text = (
            f"Package: {name}\nStatus: install ok installed\nPriority: optional\n"
            f"Architecture: amd64\nVersion: {version}\n\n"
        )
        place.write_text(place.read_text() + text)
        return self


def everyone(path: Path, wanted: int) -> bool:
    """Say whether anyone may open a file: who runs the tests is no matter."""
    mode = path.stat().st_mode
    return all(mode & bit for bit, asked in ((0o4, os.R_OK), (0o2, os.W_OK)) if wanted & asked)
