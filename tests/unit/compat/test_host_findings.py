"""What speaks against a host: each finding, and what does not make one."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from host_trees import Card, HostTree
from unit.compat.hosts import facts, gpu, host, nvml

from envbuild.compat.host import examine
from envbuild.findings import Finding, Severity
from envbuild.host.machine import DeviceNode, Host
from envbuild.host.mig import Mig
from envbuild.host.model import (
    Clocks,
    Ecc,
    Fabric,
    Firmware,
    Nvml,
    NvmlState,
    Pcie,
    RemappedRows,
    RetiredPages,
    Temperature,
)
from envbuild.host.readings import NoAnswer, NoPermission, Reading, Value

_DAY = date(2026, 12, 1)
_ADDRESS = "0000:18:00.0"
ON: Reading[bool] = Value(value=True)
OFF: Reading[bool] = Value(value=False)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path / "root").system()


@pytest.fixture
def whole(tree: HostTree) -> HostTree:
    """A host with a card and a driver that is well."""
    return tree.driver("580.95.05", is_open=True).card(Card(address=_ADDRESS))


def _found(seen: Host, code: str, *, today: date = _DAY) -> Finding:
    found = [one for one in examine(seen, facts(), today=today) if one.code == code]
    assert len(found) == 1, [one.code for one in examine(seen, facts(), today=today)]
    return found[0]


def test_a_host_that_is_well_has_no_findings(whole: HostTree) -> None:
    assert examine(host(whole, nvml(gpu())), facts(), today=_DAY) == ()


def test_a_host_without_a_card_is_a_warning(tree: HostTree) -> None:
    (found,) = examine(host(tree), facts(), today=_DAY)
    assert (found.code, found.severity) == ("no-gpu", Severity.WARNING)


def test_errors_come_first(whole: HostTree) -> None:
    whole.log("NVRM: Xid (PCI:0000:18:00): 13, pid=1")
    seen = host(whole, nvml(gpu(remapped_rows=RemappedRows(failed=ON, pending=ON))))
    codes = [(one.severity, one.code) for one in examine(seen, facts(), today=_DAY)]
    assert codes == [
        (Severity.ERROR, "remap-failed"),
        (Severity.WARNING, "remap-pending"),
        (Severity.NOTE, "xid-seen"),
    ]


def test_libraries_of_another_version(tree: HostTree) -> None:
    tree.driver("550.54.15", library="550.90.07").card(Card(address=_ADDRESS))
    found = _found(host(tree), "driver-mismatch")
    assert found.severity is Severity.ERROR
    assert "the kernel runs driver 550.54.15, and /usr/lib" in found.what
    answered = _found(host(tree, nvml(gpu(), driver="550.54.15")), "driver-mismatch")
    assert answered.severity is Severity.WARNING


def test_a_mismatch_that_only_nvml_says(whole: HostTree) -> None:
    found = _found(host(whole, Nvml(state=NvmlState.MISMATCH)), "driver-mismatch")
    assert found.what.endswith("and its libraries are of another version")


@pytest.mark.parametrize(("mode", "severity"), [(0o4755, Severity.NOTE), (0o755, Severity.ERROR)])
def test_the_module_that_cuda_needs(tree: HostTree, mode: int, severity: Severity) -> None:
    tree.driver("580.95.05", modules=("nvidia",)).card(Card(address=_ADDRESS))
    tree.file("usr/bin/nvidia-modprobe", mode=mode)
    if (tree.root / "usr/bin/nvidia-modprobe").stat().st_uid != 0 and mode == 0o4755:
        pytest.skip("needs root: a program that is setuid for root")
    assert _found(host(tree, nvml(gpu())), "nvidia-uvm-missing").severity is severity


def test_a_node_that_this_user_may_not_open(whole: HostTree) -> None:
    whole.file("dev/nvidia0", mode=0o660)
    found = _found(host(whole, nvml(gpu())), "device-node-permission")
    assert found.severity is Severity.ERROR
    assert "/dev/nvidia0 (0660 " in found.what


def test_a_node_with_an_old_major(whole: HostTree) -> None:
    seen = host(whole, nvml(gpu()))
    node = DeviceNode(
        path="/dev/nvidia-uvm",
        mode=0o666,
        owner="root",
        group="root",
        opens=True,
        number=(510, 0),
        expected=508,
    )
    others = seen.machine.nodes
    assert isinstance(others, Value)
    nodes = tuple(one for one in others.value if one.path != node.path)
    seen = replace(seen, machine=replace(seen.machine, nodes=Value((*nodes, node))))
    assert "major 510, and the kernel's is 508" in _found(seen, "device-node-stale").what


@pytest.mark.parametrize(
    ("today", "count"), [(date(2028, 6, 30), 0), (date(2028, 7, 1), 1), (date(2029, 1, 1), 1)]
)
def test_a_branch_is_kept_through_its_last_month(whole: HostTree, today: date, count: int) -> None:
    found = examine(host(whole, nvml(gpu())), facts(), today=today)
    assert [one.code for one in found] == ["driver-end-of-life"] * count


def test_a_driver_that_is_too_old_for_a_card(tree: HostTree) -> None:
    tree.driver("550.54.15").card(Card(address=_ADDRESS, device="2901", model="NVIDIA B200"))
    found = _found(host(tree), "driver-too-old")
    assert "(compute capability 10.0): 570.26 is needed" in found.what
    assert found.severity is Severity.ERROR


def test_a_driver_that_dropped_a_card(tree: HostTree) -> None:
    tree.driver("590.44.01").card(Card(address=_ADDRESS))
    found = _found(host(tree, nvml(gpu(capability="7.0"), driver="590.44.01")), "driver-too-new")
    assert found.what.startswith("R580 is the last branch")


def test_nvswitches_want_a_fabric_manager_of_the_drivers_version(whole: HostTree) -> None:
    whole.switch("0000:05:00.0")
    assert _found(host(whole, nvml(gpu())), "fabric-manager-missing").where == "1 NVSwitches"
    whole.process(900, "nv-fabricmanager").package("nvidia-fabricmanager-580", "580.82.07-1")
    found = _found(host(whole, nvml(gpu())), "fabric-manager-differs")
    assert found.what == "its package is of 580.82.07, the driver of 580.95.05"


_MPS = "tmp/nvidia-mps"


def test_an_mps_daemon_at_the_default_place(whole: HostTree) -> None:
    whole.process(4310, "nvidia-cuda-mps-control").process(4312, "nvidia-cuda-mps-server")
    whole.file(f"{_MPS}/control").file(f"{_MPS}/nvidia-cuda-mps-control.pid", "4310\n")
    seen = host(whole, nvml(gpu()))
    assert _found(seen, "mps-foreign").where == f"/{_MPS}/control"
    assert [one.code for one in examine(seen, facts(), today=_DAY)] == ["mps-foreign"]


@pytest.mark.parametrize("told", ["4310\n", "", "a\n"])
def test_a_socket_of_an_mps_daemon_that_ended(whole: HostTree, told: str) -> None:
    whole.process(4310, "python3").file(f"{_MPS}/control")
    whole.file(f"{_MPS}/nvidia-cuda-mps-control.pid", told)
    found = _found(host(whole, nvml(gpu())), "mps-left")
    assert (found.where, found.severity) == (f"/{_MPS}/control", Severity.NOTE)
    assert (whole.root / _MPS / "control").exists()


def test_an_mps_server_without_its_daemon(whole: HostTree) -> None:
    whole.process(4312, "nvidia-cuda-mps-server")
    seen = host(whole, nvml(gpu()))
    assert _found(seen, "mps-alone").where == "process 4312"
    control = next(one for one in seen.machine.daemons if one.name == "nvidia-cuda-mps-control")
    assert control.running == OFF


def test_an_mps_daemon_in_a_folder_of_its_own_is_fine(whole: HostTree) -> None:
    whole.process(4310, "nvidia-cuda-mps-control").process(4312, "nvidia-cuda-mps-server")
    whole.file("run/envbuild-mps/x/pipe/control")
    assert examine(host(whole, nvml(gpu())), facts(), today=_DAY) == ()


def test_hidden_processes_leave_mps_unknown(whole: HostTree) -> None:
    (whole.root / "proc/1/comm").unlink()
    whole.file(f"{_MPS}/control")
    seen = host(whole, nvml(gpu()))
    assert isinstance(seen.machine.mps.listens, NoPermission)
    assert "mps-left" not in {one.code for one in examine(seen, facts(), today=_DAY)}


def test_a_fabric_manager_whose_file_was_replaced(whole: HostTree) -> None:
    whole.switch("0000:05:00.0").process(900, "nv-fabricmanager")
    whole.package("nvidia-fabricmanager-580", "580.95.05-1")
    codes = {one.code for one in examine(host(whole), facts(), today=_DAY)}
    assert "fabric-manager-differs" not in codes
    whole.link("proc/900/exe", "/usr/bin/nv-fabricmanager (deleted)")
    found = _found(host(whole), "fabric-manager-differs")
    assert found.what == "its program was replaced since it started: it runs an earlier release"


def test_a_fabric_manager_that_runs_in_another_version_than_its_package(whole: HostTree) -> None:
    whole.switch("0000:05:00.0").process(900, "nv-fabricmanager")
    whole.package("nvidia-fabricmanager-580", "580.95.05-1")
    seen = host(whole, nvml(gpu()))
    (manager,) = (one for one in seen.machine.daemons if one.name == "nv-fabricmanager")

    def found(**said: Any) -> list[Finding]:  # noqa: ANN401
        machine = replace(seen.machine, daemons=(replace(manager, **said),))
        findings = examine(replace(seen, machine=machine), facts(), today=_DAY)
        return [one for one in findings if one.code == "fabric-manager-differs"]

    assert found(runs=Value("580.95.05"), replaced=Value(value=True)) == []
    (running,) = found(runs=Value("580.82.07"), replaced=Value(value=True))
    assert running.severity is Severity.ERROR
    assert running.what == "the running program is of 580.82.07, the driver of 580.95.05"
    assert running.hint == "systemctl restart nvidia-fabricmanager, with nothing on the cards"
    both = found(runs=Value("580.82.07"), version=Value("580.82.07"))
    assert [one.what.split(" is of ")[0] for one in both] == ["the running program", "its package"]


def test_adapters_for_rdma_and_the_module_between(whole: HostTree) -> None:
    codes = {one.code for one in examine(host(whole), facts(), today=_DAY)}
    assert not codes & {"peermem-missing", "peermem-alone"}
    whole.file("sys/module/nvidia_peermem/initstate", "live\n")
    assert _found(host(whole), "peermem-alone").where == "nvidia_peermem"
    whole.file("sys/class/infiniband/mlx5_0/node_type")
    codes = {one.code for one in examine(host(whole), facts(), today=_DAY)}
    assert not codes & {"peermem-missing", "peermem-alone"}
    (whole.root / "sys/module/nvidia_peermem/initstate").unlink()
    assert _found(host(whole), "peermem-missing").where == "mlx5_0"


def test_nodes_without_links_by_number(whole: HostTree) -> None:
    seen = host(whole, nvml(gpu()))
    node = DeviceNode(
        path="/dev/nvidia0",
        mode=0o666,
        owner="root",
        group="root",
        opens=True,
        number=(195, 0),
        expected=195,
        linked=False,
    )
    bare = replace(seen, machine=replace(seen.machine, nodes=Value((node,))))
    assert _found(bare, "device-links-missing").where == "/dev/nvidia0"
    inside = replace(bare.machine.system, container=Value("docker"))
    boxed = replace(bare, machine=replace(bare.machine, system=inside))
    codes = {one.code for one in examine(boxed, facts(), today=_DAY)}
    assert "device-links-missing" not in codes


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("525.60.13", "time out (Xid 119)"),
        ("525.105.17", ""),
        ("535.86.10", "may come out wrong"),
        ("535.104.05", ""),
        ("570.124.06", "stale pointer"),
        ("570.133.20", ""),
    ],
)
def test_releases_that_are_known_to_fail(tree: HostTree, version: str, told: str) -> None:
    tree.driver(version).card(Card(address=_ADDRESS))
    found = examine(host(tree), facts(), today=_DAY)
    said = [one.what for one in found if one.code == "driver-known-bad"]
    assert [told in one for one in said] == [True] * bool(told)


@pytest.mark.parametrize(
    ("is_open", "capability", "severity"),
    [
        (True, "7.0", Severity.ERROR),
        (False, "7.0", None),
        (False, "10.0", Severity.WARNING),
        (True, "10.0", None),
        (True, "9.0", None),
        (False, "9.0", None),
    ],
)
def test_the_flavour_of_the_kernel_module(
    tree: HostTree,
    is_open: bool,  # noqa: FBT001
    capability: str,
    severity: Severity | None,
) -> None:
    tree.driver("580.95.05", is_open=is_open).card(Card(address=_ADDRESS))
    found = examine(host(tree, nvml(gpu(capability=capability))), facts(), today=_DAY)
    told = [one.severity for one in found if one.code == "module-flavour"]
    assert told == ([severity] if severity else [])


def test_a_card_whose_numa_node_nobody_knows(tree: HostTree) -> None:
    tree.driver("580.95.05").card(Card(address=_ADDRESS, node=-1))
    assert _found(host(tree), "numa-unknown").where == _ADDRESS


def test_cards_that_wait_for_the_fabric(whole: HostTree) -> None:
    seen = host(whole, nvml(gpu(fabric=Fabric(state=Value("in-progress")))))
    assert _found(seen, "fabric-not-ready").where == "GPU 0"


@pytest.mark.parametrize(
    ("part", "code", "severity"),
    [
        ({"ecc": Ecc(uncorrected_volatile=Value(3))}, "ecc-uncorrected", Severity.WARNING),
        (
            {"ecc": Ecc(uncorrected_volatile=Value(0), uncorrected_aggregate=Value(3))},
            "ecc-uncorrected",
            Severity.NOTE,
        ),
        ({"ecc": Ecc(current=OFF, pending=OFF)}, "ecc-off", Severity.NOTE),
        ({"ecc": Ecc(current=ON, pending=OFF)}, "ecc-pending", Severity.WARNING),
        ({"retired_pages": RetiredPages(pending=ON)}, "remap-pending", Severity.WARNING),
        ({"mig": Mig(current=OFF, pending=ON)}, "mig-pending", Severity.WARNING),
        ({"mig": Mig(current=ON, devices=Value(()))}, "mig-empty", Severity.WARNING),
        ({"compute_mode": Value("prohibited")}, "compute-mode", Severity.WARNING),
        ({"compute_mode": Value("exclusive-process")}, "compute-mode", Severity.NOTE),
        (
            {
                "clocks": Clocks(reasons=Value(("hw-thermal-slowdown",))),
                "temperature": Temperature(gpu_c=Value(91)),
            },
            "throttled-heat",
            Severity.WARNING,
        ),
        (
            {"clocks": Clocks(reasons=Value(("hw-power-brake",)))},
            "throttled-power",
            Severity.WARNING,
        ),
        (
            {"clocks": Clocks(reasons=Value(("hw-slowdown",)))},
            "throttled-hardware",
            Severity.WARNING,
        ),
        ({"firmware": Firmware(gsp_enabled=OFF, gsp_default=ON)}, "gsp-off", Severity.NOTE),
        ({"persistence": OFF}, "persistence-off", Severity.NOTE),
        (
            {"temperature": Temperature(gpu_c=NoAnswer("999 is no temperature"))},
            "reading-no-answer",
            Severity.WARNING,
        ),
        ({"mig": Mig(instances=NoPermission("root"))}, "root-reads-more", Severity.NOTE),
    ],
)
def test_what_a_card_says(
    whole: HostTree, part: dict[str, Any], code: str, severity: Severity
) -> None:
    assert _found(host(whole, nvml(gpu(**part))), code).severity is severity


def test_an_idle_cards_generation_alone_is_a_note(tree: HostTree) -> None:
    tree.driver("580.95.05").card(Card(address=_ADDRESS, now=(1, 16)))
    card = gpu(pci_address=Value(_ADDRESS), clocks=Clocks(reasons=Value(("gpu-idle",))))
    assert _found(host(tree, nvml(card)), "pcie-degraded").severity is Severity.NOTE
    busy = replace(card, clocks=Clocks(reasons=Value(())))
    assert _found(host(tree, nvml(busy)), "pcie-degraded").severity is Severity.WARNING


def test_a_slot_that_gives_less_than_the_card_can(tree: HostTree) -> None:
    tree.driver("580.95.05")
    tree.card(Card(address=_ADDRESS, now=(3, 8), most=(4, 16), slot=(3, 8)))
    found = _found(host(tree), "pcie-slot")
    assert found.what == "its slot (0000:10:01.0) gives gen 3 x8 at most; the card can do gen 4 x16"


def test_a_link_that_only_nvml_shows(tree: HostTree) -> None:
    tree.driver("580.95.05")
    pcie = Pcie(generation=Value(4), width=Value(8), max_generation=Value(4), max_width=Value(16))
    found = _found(host(tree, nvml(gpu(pcie=pcie))), "pcie-degraded")
    assert found.severity is Severity.WARNING


def test_xids_are_told_by_card_and_number(whole: HostTree) -> None:
    line = "NVRM: Xid (PCI:0000:18:00): {}, pid=1, name=python"
    whole.log(*map(line.format, (31, 31, 79, 999)))
    seen = host(whole, nvml(gpu(pci_address=Value(_ADDRESS))))
    found = [one for one in examine(seen, facts(), today=_DAY) if one.code == "xid-seen"]
    assert [(one.severity, one.what.partition(":")[0]) for one in found] == [
        (Severity.WARNING, "Xid 79 once, last 3 s after the start"),
        (Severity.WARNING, "Xid 999 once, last 4 s after the start"),
        (Severity.NOTE, "Xid 31 2 times, last 2 s after the start"),
    ]
    assert {one.where for one in found} == {"GPU 0 (0000:18:00)"}


def test_other_lines_of_the_driver(whole: HostTree) -> None:
    whole.log(
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46",
        "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x24:0xffff:1436)",
    )
    assert _found(host(whole), "sxid-seen").severity is Severity.WARNING
    assert _found(host(whole), "gpu-not-started").severity is Severity.ERROR


def test_traffic_between_cards_through_the_processor(whole: HostTree) -> None:
    whole.acs("0000:10:01.0", 0b11101)
    codes = {one.code for one in examine(host(whole), facts(), today=_DAY)}
    assert "acs-on" not in codes, "one card has no other to talk to"
    whole.card(Card(address="0000:19:00.0")).acs("0000:11:01.0", 0)
    whole.file("sys/class/iommu/dmar0/.keep")
    assert _found(host(whole), "acs-on").where == "0000:10:01.0"
    assert _found(host(whole), "iommu-translates").severity is Severity.NOTE


def test_links_that_save_power(whole: HostTree) -> None:
    whole.file(f"sys/bus/pci/devices/{_ADDRESS}/link/l1_aspm", "1\n")
    assert "(l1; policy default)" in _found(host(whole), "aspm-on").what


def test_libraries_outside_of_environments(tree: HostTree) -> None:
    tree.file("opt/cuda/lib64/libcudart.so.12")
    tree.file("opt/cuda/lib64/libcufft.so.11")
    tree.file("etc/ld.so.preload", "/opt/libvgpu.so\n")
    seen = host(tree, LD_LIBRARY_PATH="/opt/cuda/lib64")
    found = _found(seen, "shadowed-library")
    assert found.severity is Severity.WARNING
    assert found.what == "/opt/cuda/lib64 holds libcudart.so.12, libcufft.so.11"
    assert _found(seen, "library-preloaded").where == "/etc/ld.so.preload"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (frozenset({"libcudart.so.12"}), ["/opt/cuda/lib64 holds libcudart.so.12"]),
        (frozenset({"libcudart.so.12.4.99"}), ["/opt/cuda/lib64 holds libcudart.so.12"]),
        (frozenset({"libz.so.1"}), []),
    ],
)
def test_only_an_environments_own_libraries_are_shadowed(
    tree: HostTree, own: frozenset[str], told: list[str]
) -> None:
    tree.file("opt/cuda/lib64/libcudart.so.12")
    seen = host(tree, LD_LIBRARY_PATH="/opt/cuda/lib64")
    found = examine(seen, facts(), today=_DAY, with_cards=False, libraries=own)
    assert [one.what for one in found] == told


def test_a_variable_that_hides_cards(whole: HostTree) -> None:
    found = _found(host(whole, nvml(gpu()), CUDA_VISIBLE_DEVICES="0"), "cards-hidden")
    assert found.severity is Severity.NOTE


def test_cards_do_not_matter_to_an_environment_without(tree: HostTree) -> None:
    tree.card(Card(address=_ADDRESS, driver=None))
    assert examine(host(tree), facts(), today=_DAY, with_cards=False) == ()
