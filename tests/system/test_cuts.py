"""Power cuts of what changes units: replayed at random points of a machine's writes, and real."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from system import marks, powercut
from system.machine import Machine, Snapshot
from system.test_install import UNITS, WEB, change, envbuild, install

_SEED = os.environ.get("ENVBUILD_CUTS_SEED", "1")


def _states(
    folder: Path, look: Callable[[Path], str], record_property: Callable[[str, object], None]
) -> list[str]:
    """Return what a machine is found to be after each cut; what was seen how often is told."""
    log = powercut.entries(folder / "log")
    chance = random.Random(_SEED)  # noqa: S311
    seen: list[str] = []
    for number in range(marks.CUTS):
        end = chance.randrange(len(log) + 1)
        with powercut.cut(folder, log[:end], chance if number % 2 else None) as root:
            seen.append(look(root))
    counts = {each: seen.count(each) for each in sorted(set(seen))}
    told = {"seed": _SEED, "writes": len(log), "states": counts}
    print(json.dumps(told))  # noqa: T201
    record_property("cuts", json.dumps(told))
    assert not [each for each in seen if each.startswith("inconsistent")], seen
    return seen


@marks.cuts
def test_power_cuts_leave_the_old_units_or_the_new(
    prepared: Snapshot,
    disk: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with powercut.logged(prepared, disk, tmp_path) as guest:
        install(guest)
        change(guest, "8001", "8002")
        install(guest)
        envbuild(guest, "units", "remove", "small")
        guest.run("sleep 6")  # what was not flushed is written by the kernel
    look = lambda root: powercut.units_state(root / UNITS[1:], "small")  # noqa: E731
    seen = _states(tmp_path, look, record_property)
    if marks.CUTS >= 100:
        assert {"nothing", "8001", "8002"} <= set(seen)


@marks.cuts
def test_power_cuts_leave_units_and_current_of_one_generation(
    prepared: Snapshot,
    disk: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with prepared.fork(disk) as guest:
        install(guest)
        installed = tmp_path / "installed"
        installed.mkdir()
        before = guest.save(installed)
    with powercut.logged(before, disk, tmp_path) as guest:
        envbuild(guest, "switch", "small", "1")
        envbuild(guest, "rollback", "small")
        guest.run("sleep 6")

    def look(root: Path) -> str:
        with powercut.store(tmp_path, root, disk) as place:
            return powercut.moved_state(root / UNITS[1:], place("small"))

    seen = _states(tmp_path, look, record_property)
    if marks.CUTS >= 100:
        assert len(set(seen)) == 2


@marks.cuts
@pytest.mark.parametrize("after_s", [2, 6])
def test_a_machine_that_lost_power_is_installed_again(guest: Machine, after_s: int) -> None:
    install(guest)
    change(guest, "8001", "8002")
    guest.run("sync")  # the recipe is there, whatever becomes of the units
    again = "cd /root && ENVBUILD_LOCKFILES=/srv/lockfiles envbuild units install small"
    guest.run(f"({again}) >/dev/null 2>&1 & sleep {after_s}")
    guest.power_cut()
    install(guest)
    assert guest.show(WEB, "ActiveState") == {"ActiveState": "active"}
    assert "8002" in guest.run(f"cat {UNITS}/{WEB}").out


@marks.cuts
def test_a_machine_that_lost_power_is_switched_again(guest: Machine) -> None:
    install(guest)
    again = "cd /root && ENVBUILD_LOCKFILES=/srv/lockfiles envbuild switch small 1"
    guest.run(f"({again}) >/dev/null 2>&1 & sleep 5")
    guest.power_cut()
    guest.until(lambda: guest.show(WEB, "ActiveState")["ActiveState"] == "active")
    envbuild(guest, "switch", "small", "1")
    assert guest.show(WEB, "ActiveState") == {"ActiveState": "active"}
    current = guest.run("readlink /var/lib/envbuild/envs/small/current").out.strip()
    assert f"/{current}/bin/python" in guest.run(f"cat {UNITS}/{WEB}").out
