"""Watching PCIe traffic: counters that the simulator plays, cgroups that are folders."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nvmlsim.simulator import place

from envbuild.shares.watch import Watch
from envbuild.tools.run import Completed

_GIB = 1 << 30
_CARD = "GPU-00000000-1111-2222-3333-000000000000"


class Host:
    """A host with one card and two units on it, and what systemctl was told."""

    def __init__(self, root: Path) -> None:
        self.root = place(root, "h100x8-idle", "system.gpus = 1")
        self.told: list[str] = []
        self.now = 0.0
        self.used = {"a.service": 0.0, "b.service": 0.0}
        held = {
            unit: {"cgroup": f"/{unit}", "cards": [_CARD], "uuids": [_CARD], "pcie_bytes": limit}
            for unit, limit in (("a.service", 3 * _GIB), ("b.service", _GIB), ("c.service", 0))
        }
        (root / "run/envbuild").mkdir(parents=True)
        (root / "run/envbuild/cards.json").write_text(json.dumps(held))
        for unit in (*self.used, "c.service"):
            (root / f"sys/fs/cgroup/{unit}").mkdir(parents=True)
        self.traffic = 0.0
        self.watch = self._watch(read=lambda cards, _: dict.fromkeys(cards, self.traffic))

    def _watch(self, **more: Any) -> Watch:  # noqa: ANN401
        own: dict[str, Any] = {"runner": self._run, "clock": lambda: self.now}
        return Watch(self.root, self.root, cpus=8, **own, **more)

    def real(self) -> None:
        """Let the simulator say the traffic from now on; that takes a second each time."""
        self.watch = self._watch()

    def after(self, gib_per_second: float, *, seconds: float = 5.0) -> None:
        """Let time go by in which both used two CPUs."""
        state = self.root / "usr/lib64/nvmlsim.state"
        self.traffic = gib_per_second * _GIB
        kb = int(self.traffic / 1024 / 2)
        with state.open("a") as file:
            file.write(f"gpu.0.pcie.throughput.0 = {kb}\ngpu.0.pcie.throughput.1 = {kb}\n")
        self.now += seconds
        for unit in self.used:
            self.used[unit] += 2 * seconds * 1e6
            path = self.root / f"sys/fs/cgroup/{unit}/cpu.stat"
            path.write_text(f"usage_usec {self.used[unit]:.0f}\nuser_usec 0\n")
        self.watch.look()

    def _run(self, argv: Sequence[Any], **_: object) -> Completed:
        self.told.append(" ".join(map(str, argv)))
        return Completed(argv=tuple(argv), status=0, stdout="", stderr="")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_the_driver_says_is_held_against_the_limits(host: Host) -> None:
    host.real()
    host.after(8)
    host.after(8)
    assert [line.split()[-2:] for line in host.told] == [
        ["a.service", "CPUQuota=140.0%"],
        ["b.service", "CPUQuota=140.0%"],
    ]


def test_the_quota_falls_and_comes_back(host: Host) -> None:
    host.after(8)
    assert host.told == []  # how much CPU time they took is not known before the second sample
    host.after(8)
    set_ = "systemctl set-property --runtime"
    assert host.told == [f"{set_} {unit} CPUQuota=140.0%" for unit in ("a.service", "b.service")]
    host.after(3.5)
    assert len(host.told) == 2
    for _ in range(60):
        host.after(0.1)
    assert host.told[-1] == f"{set_} b.service CPUQuota="


def test_a_unit_that_ended_is_forgotten(host: Host) -> None:
    host.after(8)
    (host.root / "sys/fs/cgroup/a.service/cpu.stat").unlink()
    (host.root / "sys/fs/cgroup/a.service").rmdir()
    host.used.pop("a.service")
    host.after(0.9)
    assert set(host.watch.look()) == {"b.service"}


def test_without_a_card_that_answers_nothing_is_changed(host: Host) -> None:
    host.real()
    with (host.root / "usr/lib64/nvmlsim.state").open("a") as file:
        file.write("gpu.0.pcie.throughput.0 = !15\n")
    for _ in range(2):
        host.now += 5
        host.watch.look()
    assert host.told == []
