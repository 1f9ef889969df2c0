"""`envbuild units install` in a machine: one reload, all put back where a service stays down."""

import json
import os
import random
from pathlib import Path

import pytest
from system import powercut
from system.machine import Machine, Snapshot

WEB = "envbuild-small.web.service"
_UNITS = "/etc/systemd/system"
_CUTS = int(os.environ.get("ENVBUILD_CUTS", "0"))
_long = pytest.mark.skipif(not _CUTS, reason="takes minutes: nox -s cuts")


def _reloads(guest: Machine) -> int:
    return guest.journal("-b", "--identifier=systemd").count("Reloading.")


def _change(guest: Machine, old: str, new: str) -> None:
    """Write a changed recipe where the changed one is looked for."""
    # /srv is read-only in the machine: the second disk.
    guest.run("mkdir -p /root/recipes && cp -n /srv/recipes/small.yaml /root/recipes")
    guest.run(["sed", "-i", f"s/{old}/{new}/", "/root/recipes/small.yaml"])


def _install(guest: Machine, *words: str, check: bool = True) -> int:
    guest.run("mkdir -p /root/recipes && cp -n /srv/recipes/small.yaml /root/recipes")
    command = "cd /root && ENVBUILD_LOCKFILES=/srv/lockfiles envbuild units install small"
    return guest.run(f"{command} {' '.join(words)}", check=check, timeout_s=300).code


@pytest.mark.skipif(
    "ENVBUILD_SYSTEM_SUITE" not in os.environ, reason="takes minutes: nox -s system"
)
def test_install_starts_and_puts_back_what_fails(guest: Machine) -> None:
    before = _reloads(guest)
    _install(guest)
    assert _reloads(guest) == before + 1
    assert guest.show(WEB, "ActiveState", "UnitFileState") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
    }
    there = guest.run(f"cd {_UNITS} && sha256sum envbuild-small*").out
    pid = guest.show(WEB, "MainPID")
    _change(guest, "http.server", "no_such_module")
    assert _install(guest, check=False) != 0
    assert guest.run(f"cd {_UNITS} && sha256sum envbuild-small*").out == there
    assert guest.show(WEB, "ActiveState") == {"ActiveState": "active"}
    assert guest.show(WEB, "MainPID") != pid  # it was tried, and started as it was
    _change(guest, "no_such_module", "http.server")
    _change(guest, "tasks_max: 50", "tasks_max: 60")
    pid = guest.show(WEB, "MainPID")
    _install(guest)
    assert guest.show(WEB, "MainPID") == pid  # a limit is changed while it runs
    limit = guest.run("cat /sys/fs/cgroup/envbuild.slice/envbuild-small.slice/pids.max").out
    assert limit == "60\n"


@_long
def test_power_cuts_leave_the_old_units_or_the_new(
    prepared: Snapshot, disk: Path, tmp_path: Path
) -> None:
    with powercut.logged(prepared, disk, tmp_path) as guest:
        _install(guest)
        _change(guest, "8001", "8002")
        _install(guest)
        guest.run("cd /root && envbuild units remove small")
        guest.run("sleep 6")  # what was not flushed is written by the kernel
    log = powercut.entries(tmp_path / "log")
    chance = random.Random(os.environ.get("ENVBUILD_CUTS_SEED", "1"))  # noqa: S311
    seen: list[str] = []
    for number in range(_CUTS):
        cut = chance.randrange(len(log) + 1)
        with powercut.cut(tmp_path, log[:cut], chance if number % 2 else None) as root:
            seen.append(powercut.state(root / _UNITS[1:], "small"))
    print(json.dumps({each: seen.count(each) for each in sorted(set(seen))}))  # noqa: T201
    assert not [each for each in seen if each.startswith("inconsistent")], seen
    if _CUTS >= 100:
        assert {"nothing", "8001", "8002"} <= set(seen)


@_long
@pytest.mark.parametrize("after_s", [2, 6])
def test_a_machine_that_lost_power_is_installed_again(guest: Machine, after_s: int) -> None:
    _install(guest)
    _change(guest, "8001", "8002")
    install = "cd /root && ENVBUILD_LOCKFILES=/srv/lockfiles envbuild units install small"
    guest.run(f"({install}) >/dev/null 2>&1 & sleep {after_s}")
    guest.power_cut()
    _install(guest)
    assert guest.show(WEB, "ActiveState") == {"ActiveState": "active"}
    assert "8002" in guest.run(f"cat {_UNITS}/{WEB}").out
