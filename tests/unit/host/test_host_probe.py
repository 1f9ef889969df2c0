"""What files say of a host: of a driver, of links, of the log, of a loader."""

import os
import sqlite3
import stat
import struct
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from host_trees import Card, HostTree, everyone

from envbuild.host.machine import Daemon, DeviceNode, Host, Machine
from envbuild.host.model import Nvml, NvmlState
from envbuild.host.probe import Where, probe
from envbuild.host.readings import Lost, NoAnswer, NoPermission, Unsupported, Value
from envbuild.host.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path / "root").system()


def _machine(tree: HostTree, **more: object) -> Machine:
    where = Where(root=tree.root, store=tree.root, may=everyone, **more)  # type: ignore[arg-type]
    nvml = Nvml(state=NvmlState.NO_LIBRARY)
    host = probe(where, ask=lambda: nvml, name="demo", taken="2026-12-01T00:00:00Z")
    assert msgspec.json.decode(msgspec.json.encode(host), type=Host) == host
    return host.machine


def test_an_empty_root_has_readings_that_say_why(tmp_path: Path) -> None:
    found = _machine(HostTree(tmp_path / "root"))
    assert found.driver.loaded == Unsupported("there is no /proc/driver/nvidia/version")
    assert found.nodes == Unsupported("there is no /dev")
    assert isinstance(found.system.glibc, Unsupported)
    assert isinstance(found.memory.total_bytes, Unsupported)
    assert isinstance(found.log, Unsupported)


def test_the_system_is_read(tree: HostTree) -> None:
    found = _machine(tree)
    assert found.system.kernel == Value("6.8.0-45-generic")
    assert found.system.glibc == Value("2.35")
    assert found.system.systemd == Value("249")
    assert found.system.cgroup == Value(2)
    assert found.cpu.level == Value(4)
    assert found.cpu.count == Value(4)
    assert found.cpu.numa_nodes == Value(2)
    assert found.memory.total_bytes == Value(2113560064 * 1024)
    assert found.memory.limit_bytes == Unsupported("no limit is set")


def test_a_cgroup_limits_memory(tree: HostTree) -> None:
    tree.file("sys/fs/cgroup/user.slice/memory.max", "1048576\n")
    assert _machine(tree).memory.limit_bytes == Value(1048576)


@pytest.mark.parametrize(
    "more", ["", "0::/a.scope\n"], ids=["version 1", "both, memory with version 1"]
)
def test_memory_of_version_1_is_read_where_it_is_kept(tree: HostTree, more: str) -> None:
    tree.file("proc/self/cgroup", f"11:cpu,cpuacct:/b\n9:memory:/a/b\n{more}")
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n")
    tree.file("sys/fs/cgroup/unified/a.scope/memory.max", "4096\n")  # nothing is charged there
    tree.file("sys/fs/cgroup/unified/cgroup.controllers")
    (tree.root / "sys/fs/cgroup/cgroup.controllers").unlink()
    found = _machine(tree)
    assert found.memory.limit_bytes == Value(1048576)
    assert found.system.cgroup == Value(1)


@pytest.mark.parametrize(("is_open", "flavour"), [(False, "proprietary"), (True, "open")])
def test_the_driver_is_read_without_nvml(tree: HostTree, is_open: bool, flavour: str) -> None:  # noqa: FBT001
    tree.driver("550.54.15", library="550.90.07", is_open=is_open)
    found = _machine(tree).driver
    assert found.loaded == Value("550.54.15")
    assert found.flavour == Value(flavour)
    assert isinstance(found.modules, Value)
    assert [module.name for module in found.modules.value] == [
        "nvidia",
        "nvidia_uvm",
        "nvidia_modeset",
        "nvidia_drm",
    ]
    assert isinstance(found.libraries, Value)
    assert {each.version for each in found.libraries.value} == {"550.90.07"}


def test_what_is_no_version_of_a_driver_is_no_answer(tree: HostTree) -> None:
    tree.file("proc/driver/nvidia/version", "something else\n")
    assert isinstance(_machine(tree).driver.loaded, NoAnswer)


def test_the_driver_of_a_container_is_found_below_its_root(tree: HostTree) -> None:
    tree.driver("550.54.15")
    own = HostTree(tree.root / "run/nvidia/driver").libraries("570.86.15", "usr/lib64")
    found = _machine(tree, driver_root=own.root).driver.libraries
    assert isinstance(found, Value)
    assert {(each.path, each.version) for each in found.value} == {
        ("/usr/lib64/libcuda.so.570.86.15", "570.86.15"),
        ("/usr/lib64/libnvidia-ml.so.570.86.15", "570.86.15"),
    }


def test_nodes_say_who_may_open_them(tree: HostTree) -> None:
    tree.driver("550.54.15").card(Card(address="0000:18:00.0"))
    tree.file("dev/nvidia0", mode=0o660)
    found = _machine(tree).nodes
    assert isinstance(found, Value)
    assert {node.path: node.opens for node in found.value} == {
        "/dev/nvidia0": False,
        "/dev/nvidia-uvm": True,
        "/dev/nvidiactl": True,
    }
    assert {node.expected for node in found.value} == {195, 508}


def test_a_link_has_the_slot_above_it(tree: HostTree) -> None:
    card = Card(address="0000:18:00.0", device="20B2", now=(3, 8), most=(4, 16), slot=(3, 8))
    devices = _machine(tree.driver("550.54.15").card(card)).pci.devices
    assert isinstance(devices, Value)
    (found,) = devices.value
    assert (found.kind, found.device_id, found.minor) == ("gpu", "20B2", Value(0))
    assert found.model == Value("NVIDIA H100 80GB HBM3")
    assert found.driver == Value("nvidia")
    link = found.link
    assert (link.generation, link.width) == (Value(3), Value(8))
    assert (link.max_generation, link.max_width) == (Value(4), Value(16))
    assert (link.slot, link.slot_generation) == (Value("0000:10:01.0"), Value(3))


def test_a_card_that_left_the_bus_reads_as_ones(tree: HostTree) -> None:
    tree.card(Card(address="0000:18:00.0"))
    tree.file("sys/bus/pci/devices/0000:18:00.0/current_link_width", "63\n")
    tree.file("sys/bus/pci/devices/0000:18:00.0/current_link_speed", "Unknown\n")
    devices = _machine(tree).pci.devices
    assert isinstance(devices, Value)
    assert isinstance(devices.value[0].link.width, Lost)
    assert isinstance(devices.value[0].link.generation, NoAnswer)


def test_access_control_is_read_where_the_whole_space_is(tree: HostTree) -> None:
    tree.card(Card(address="0000:18:00.0")).acs("0000:10:01.0", 0b11101)
    found = _machine(tree).pci.acs
    assert isinstance(found, Value)
    assert found.value[0].on == ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
    tree.file("sys/bus/pci/devices/0000:10:01.0/config", bytes(64))
    assert isinstance(_machine(tree).pci.acs, NoPermission)


def test_the_log_gives_xids_and_what_else_the_driver_said(tree: HostTree) -> None:
    tree.log(
        "Linux version 6.8.0",
        "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off.",
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 31, pid=12, name=python, Ch 00000008",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46",
        "NVRM: API mismatch: the client has the version 550.90.07, but",
        "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x24:0xffff:1436)",
        "usb 1-1: NVRM is only mentioned",
    )
    found = _machine(tree).log
    assert isinstance(found, Value)
    assert [(one.kind, one.number, one.address) for one in found.value] == [
        ("xid", 79, "0000:18:00"),
        ("xid", 31, "0000:3b:00"),
        ("sxid", 28006, "0000:c1:00.0"),
        ("version-mismatch", 0, ""),
        ("not-started", 0, "0000:18:00"),
    ]
    assert found.value[0].at_s == 2.0


def test_a_closed_log_is_read_from_a_file_that_is_open(tree: HostTree) -> None:
    (tree.root / "dev/kmsg").unlink()
    line = "Dec  1 10:00:0{} host kernel: [{}.5] {}\n"
    tree.file(
        "var/log/kern.log",
        line.format(1, 100, "NVRM: Xid (PCI:0000:18:00): 48, DBE of the boot before")
        + line.format(2, 0, "Linux version 6.8.0")
        + line.format(3, 7, "NVRM: Xid (PCI:0000:18:00): 13, pid=1, Graphics Exception"),
    )
    found = _machine(tree).log
    assert isinstance(found, Value)
    assert [(one.number, one.at_s) for one in found.value] == [(13, 7.5)]


def test_a_log_that_only_root_reads_is_no_permission(tree: HostTree) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    tree.file("dev/kmsg", mode=0o000)
    assert isinstance(_machine(tree).log, NoPermission)


def test_daemons_and_the_versions_of_their_packages(tree: HostTree) -> None:
    tree.process(812, "nv-fabricmanager").package("nvidia-fabricmanager-550", "550.54.15-1")
    found = {each.name: each for each in _machine(tree).daemons}
    assert found["nv-fabricmanager"].running == Value(value=True)
    assert found["nv-fabricmanager"].version == Value("550.54.15")
    assert found["nvidia-persistenced"].running == Value(value=False)


def _header(**tags: str) -> bytes:
    """Return a header as rpm's database has it: counts, index, data."""
    numbers = {"name": 1000, "version": 1001, "release": 1002}
    index, data = b"", b""
    for name, text in tags.items():
        index += struct.pack(">IIII", numbers[name], 6, len(data), 1)
        data += text.encode() + b"\0"
    return struct.pack(">II", len(tags), len(data)) + index + data


def _rpm(tree: HostTree, *packages: tuple[str, bytes], place: str) -> None:
    (tree.root / "var/lib/dpkg/status").unlink(missing_ok=True)
    tree.file(place)
    with closing(sqlite3.connect(tree.root / place)) as database, database:
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        database.execute("CREATE TABLE Name (key TEXT, hnum INTEGER, idx INTEGER)")
        for number, (name, header) in enumerate(packages, 1):
            database.execute("INSERT INTO Packages VALUES (?, ?)", (number, header))
            database.execute("INSERT INTO Name VALUES (?, ?, 0)", (name, number))


def _manager(tree: HostTree) -> Daemon:
    return next(one for one in _machine(tree).daemons if one.name == "nv-fabricmanager")


@pytest.mark.parametrize("folder", ["usr/lib/sysimage/rpm", "var/lib/rpm"])
def test_versions_in_the_database_of_rpm(tree: HostTree, folder: str) -> None:
    name = "nvidia-fabric-manager"
    header = _header(name=name, version="550.54.15", release="1")
    _rpm(tree, ("bash", b""), (name, header), place=f"{folder}/rpmdb.sqlite")
    before = sorted((tree.root / folder).iterdir())
    assert _manager(tree).version == Value("550.54.15")
    assert sorted((tree.root / folder).iterdir()) == before


@pytest.mark.parametrize("header", [b"", b"\0\0\0\x09\0\0\0\0", _header(name="x")])
def test_a_damaged_database_of_rpm(tree: HostTree, header: bytes) -> None:
    _rpm(tree, ("nvidia-fabricmanager", header), place="var/lib/rpm/rpmdb.sqlite")
    assert isinstance(_manager(tree).version, NoAnswer)
    tree.file("var/lib/rpm/rpmdb.sqlite", b"SQLite format 3\0 and no more")
    assert isinstance(_manager(tree).version, NoAnswer)


def test_a_system_whose_packages_cannot_be_read(tree: HostTree) -> None:
    (tree.root / "var/lib/dpkg/status").unlink()
    assert isinstance(_manager(tree).version, Unsupported)
    tree.file("var/lib/rpm/Packages", b"\0\x06\x15\x61")
    assert _manager(tree).version == NoAnswer(
        "/var/lib/rpm/Packages is of a form that only rpm reads"
    )


def test_links_to_nodes_by_their_numbers(tree: HostTree) -> None:
    node = tree.root / "dev/nvidia0"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(195, 0))
    except OSError:
        pytest.skip("needs the right to make device nodes (CAP_MKNOD)")
    (one,) = _nodes(tree)
    assert (one.number, one.linked) == ((195, 0), False)
    tree.link("dev/char/195:0", "../nvidia0")
    (one,) = _nodes(tree)
    assert one.linked


def _nodes(tree: HostTree) -> tuple[DeviceNode, ...]:
    found = _machine(tree).nodes
    assert isinstance(found, Value)
    return found.value


def test_places_of_the_loader_in_its_order(tree: HostTree) -> None:
    tree.file("opt/cuda/lib64/libcudart.so.12")
    tree.file("opt/cuda/lib64/libcudart.so.12.4.99")
    tree.file("usr/local/cuda/lib64/libcublas.so.12")
    tree.file("etc/ld.so.conf.d/cuda.conf", "# ours\n/usr/local/cuda/lib64\n/nowhere\n")
    tree.file("etc/ld.so.preload", "/opt/hami/libvgpu.so # limits\n")
    variables = {"LD_LIBRARY_PATH": "/opt/cuda/lib64:/nowhere"}
    found = _machine(tree, variables=variables).loader
    assert [(one.origin, one.path, one.libraries) for one in found] == [
        ("/etc/ld.so.preload", "/opt/hami/libvgpu.so", ("libvgpu.so",)),
        ("LD_LIBRARY_PATH", "/opt/cuda/lib64", ("libcudart.so.12",)),
        ("/etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64", ("libcublas.so.12",)),
    ]


def test_links_stay_inside_a_root(tmp_path: Path) -> None:
    tree = HostTree(tmp_path / "root")
    tree.file("usr/lib/os-release", "inside\n")
    tree.link("etc/os-release", "/usr/lib/os-release")
    tree.link("etc/out", "../../../../usr/lib/os-release")
    tree.link("etc/loop", "loop")
    found = Tree(tree.root)
    assert found.text("etc/os-release") == Value("inside")
    assert found.text("etc/out") == Value("inside")
    assert isinstance(found.text("etc/loop"), NoAnswer | Unsupported)
