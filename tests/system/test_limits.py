"""Limits as the kernel keeps them: in the slice, beside busy neighbours."""

import json

import pytest
from system import marks
from system.machine import Machine
from system.test_services import WEB, said, unit

SLICE = "envbuild.slice/envbuild-plain.slice"


def _spent(guest: Machine, seconds: int, *services: str) -> list[float]:
    """Return how much of one processor services use, each as a share."""
    groups = [f"{SLICE}/{unit(service)}" for service in services]
    seen = json.loads(guest.run(["python3", "/srv/cpu.py", f"{seconds}", *groups]).out)
    return [seen["spent"][group] / seen["seconds"] for group in groups]


def test_the_slice_kills_inside_and_the_journal_says_who(guest: Machine) -> None:
    guest.run(["systemctl", "start", WEB, unit("eat")])
    guest.until(lambda: guest.show(unit("eat"), "ActiveState")["ActiveState"] == "failed")
    assert guest.show(unit("eat"), "Result") == {"Result": "oom-kill"}
    assert guest.show(WEB, "ActiveState", "NRestarts") == {
        "ActiveState": "active",
        "NRestarts": "0",
    }
    assert "killed by the OOM killer" in guest.journal("-u", unit("eat"))
    kernel = guest.journal("-k", "--grep=oom-kill:")
    assert f"oom_memcg=/{SLICE}," in kernel
    assert f"task_memcg=/{SLICE}/{unit('eat')}," in kernel
    assert guest.run(f"cat /sys/fs/cgroup/{SLICE}/memory.max").out == f"{300 << 20}\n"


@marks.long
def test_a_job_that_lost_a_worker_for_memory_is_stopped_and_comes_back(guest: Machine) -> None:
    name = unit("workers")
    guest.run(["systemctl", "start", name])
    guest.until(lambda: len(said(guest, name)) == 2)
    first, second = said(guest, name)
    assert (first["again"], second["again"]) == (False, True)
    assert f"{name}: Failed with result 'oom-kill'." in guest.journal("-u", name)
    running = guest.run(f"cat /sys/fs/cgroup/{SLICE}/{name}/cgroup.procs").out.split()
    main = guest.show(name, "MainPID")["MainPID"]
    assert {*running} == {main, *map(str, second["workers"])}
    assert guest.show(name, "ActiveState", "NRestarts") == {
        "ActiveState": "active",
        "NRestarts": "1",
    }


def test_a_quota_holds_beside_busy_neighbours(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("quota"), unit("heavy"), unit("light")])
    (share,) = _spent(guest, 6, "quota")
    assert share == pytest.approx(0.30, rel=0.02)


def test_weights_hold_on_one_processor(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("heavy"), unit("light")])
    heavy, light = _spent(guest, 8, "heavy", "light")
    assert heavy / light == pytest.approx(3, rel=0.02)


@marks.long
def test_status_shows_who_waits_for_a_processor(guest: Machine) -> None:
    guest.run(["systemctl", "start", WEB, unit("heavy"), unit("light")])
    guest.run("sleep 8")
    rows = json.loads(guest.run("envbuild units status plain --json").out)["units"]
    waits = {row["unit"]: row["pressure_percent"] for row in rows}
    assert waits[unit("light")]["cpu"] > 10
    assert waits["envbuild-plain.slice"]["cpu"] > 10
    assert waits[unit("quota")] is None  # it does not run
    assert set(waits[WEB]) == {"cpu", "memory", "io"}


def test_no_more_tasks_than_it_may(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("threads")])
    guest.until(lambda: said(guest, unit("threads")))
    assert said(guest, unit("threads")) == [{"threads": 20}]
    assert "fork rejected by pids controller" in guest.journal("-k")


def test_a_slice_is_frozen_and_thawed(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("light")])
    guest.run("systemctl freeze envbuild-plain.slice")
    assert _spent(guest, 2, "light") == [pytest.approx(0, abs=0.01)]
    guest.run("systemctl thaw envbuild-plain.slice")
    (share,) = _spent(guest, 2, "light")
    assert share > 0.5
