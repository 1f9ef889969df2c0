"""How hosts differ: what matters first, what changes by itself left out."""

from dataclasses import replace
from pathlib import Path

import pytest
from host_trees import Card, HostTree, everyone

from envbuild.host.difference import compare
from envbuild.host.machine import Host
from envbuild.host.model import Gpu, Memory, Nvml, NvmlState, Temperature
from envbuild.host.probe import Where, probe
from envbuild.host.readings import Lost, Value


def _nvml(driver: str = "550.54.15", **more: object) -> Nvml:
    card = Gpu(index=0, name=Value("NVIDIA H100"), uuid=Value("GPU-1"))
    cards = (replace(card, **more),)  # type: ignore[arg-type]
    return Nvml(state=NvmlState.ANSWERED, driver=Value(driver), gpus=cards)


def _host(root: Path, said: Nvml, name: str = "node1", address: str = "0000:18:00.0") -> Host:
    tree = HostTree(root).system().driver("550.54.15").card(Card(address=address))
    where = Where(root=tree.root, store=root, may=everyone)
    return probe(where, ask=lambda: said, name=name, taken="2026-12-01T00:00:00Z")


@pytest.fixture
def before(tmp_path: Path) -> Host:
    return _host(tmp_path / "one", _nvml())


def test_a_host_does_not_differ_from_itself(before: Host) -> None:
    assert compare(before, before) == ()


def test_what_changes_by_itself_is_no_difference(before: Host) -> None:
    passing = _nvml(
        temperature=Temperature(gpu_c=Value(70)), memory=Memory(used_bytes=Value(1 << 30))
    )
    assert compare(before, replace(before, nvml=passing, taken="later")) == ()


def test_what_matters_comes_first(before: Host) -> None:
    machine = before.machine
    now = replace(
        before,
        nvml=_nvml("550.90.07"),
        machine=replace(
            machine,
            cpu=replace(machine.cpu, model=Value("another")),
            system=replace(machine.system, glibc=Value("2.39")),
        ),
    )
    found = compare(before, now)
    assert [(one.what, one.before, one.now) for one in found] == [
        ("nvml.driver", "550.54.15", "550.90.07"),
        ("machine.system.glibc", "2.35", "2.39"),
        ("machine.cpu.model", "INTEL(R) XEON(R) PLATINUM 8558", "another"),
    ]
    assert all(one.matters for one in found)


def test_a_card_that_is_gone_and_one_that_is_lost(before: Host) -> None:
    gone = compare(before, replace(before, nvml=replace(_nvml(), gpus=())))
    assert ("nvml.gpus.0", "there", "-") in [(one.what, one.before, one.now) for one in gone]
    lost = compare(before, replace(before, nvml=_nvml(name=Lost("GPU is lost"))))
    assert [(one.what, one.now) for one in lost] == [("nvml.gpus.0.name", "(lost)")]


def test_another_hosts_addresses_are_no_difference(before: Host, tmp_path: Path) -> None:
    other = _host(tmp_path / "two", _nvml(uuid=Value("GPU-2")), "node2", "0000:3b:00.0")
    assert compare(before, other) == ()
    same = replace(other, name="node1")
    assert {one.what for one in compare(before, same)} >= {"nvml.gpus.0.uuid"}


def test_events_of_the_log_are_counted(before: Host, tmp_path: Path) -> None:
    tree = HostTree(tmp_path / "one")
    tree.log(*["NVRM: Xid (PCI:0000:18:00): 79, pid=1"] * 2)
    where = Where(root=tree.root, store=tmp_path / "one", may=everyone)
    now = probe(where, ask=_nvml, name="node1", taken="2026-12-02T00:00:00Z")
    (found,) = compare(before, now)
    assert (found.what, found.before, found.now) == ("machine.log.xid 79", "-", "2")
