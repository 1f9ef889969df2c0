"""Services that move to another generation, or are started anew one by one, while in use."""

import json
from itertools import pairwise

from system import marks
from system.machine import Machine
from system.test_install import change, envbuild, install
from system.test_services import is_new

pytestmark = marks.long

_ROLLED = ("one", "three", "two")  # in the order of their names


def _unit(service: str) -> str:
    return f"envbuild-moved.{service}.service"


def _generation(guest: Machine, service: str) -> str:
    """Return the generation that a service's program is of."""
    pid = guest.show(_unit(service), "MainPID")["MainPID"]
    program = guest.run(f"tr '\\0' '\\n' </proc/{pid}/cmdline").out.splitlines()[0]
    return program.partition("/generations/")[2].partition("/")[0]


def _pids(guest: Machine) -> dict[str, str]:
    return {name: guest.show(_unit(name), "MainPID")["MainPID"] for name in _ROLLED}


def _times(guest: Machine, service: str) -> list[tuple[str, int]]:
    """Return what a service said, and when, in microseconds."""
    lines = guest.journal("-u", _unit(service), "--output=json").splitlines()
    entries = [entry for line in lines if "_TRANSPORT" in (entry := json.loads(line))]
    said = [each for each in entries if each["MESSAGE"] in ('{"begun": true}', '{"ready": true}')]
    return [(each["MESSAGE"], int(each["__MONOTONIC_TIMESTAMP"])) for each in said]


def test_no_connection_is_refused_while_services_move(guest: Machine) -> None:
    install(guest, name="moved")
    guest.run("python3 /srv/load.py 8081 /tmp/stop >/tmp/counts 2>&1 &")
    seen: set[str] = set()
    asked, before = _unit("asked"), ""
    for doing in ("envbuild switch moved 1", "envbuild rollback moved", "kill"):
        guest.until(lambda: is_new(guest, asked, seen))
        before = _generation(guest, "asked")
        if doing == "kill":
            guest.run(["systemctl", "kill", "--signal=KILL", asked])
        else:
            envbuild(guest, *doing.split()[1:])
            assert _generation(guest, "asked") != before
    guest.until(lambda: is_new(guest, asked, seen))
    assert _generation(guest, "asked") == before
    guest.run("touch /tmp/stop")
    guest.until(lambda: guest.run("cat /tmp/counts").out)
    counts = json.loads(guest.run("cat /tmp/counts").out)
    print(json.dumps(counts))  # noqa: T201
    assert counts["refused"] == 0
    assert counts["lost"] <= 1  # what was in work at the kill
    assert counts["processes"] >= 4


def test_services_are_started_anew_one_by_one(guest: Machine) -> None:
    install(guest, name="moved")
    before = _pids(guest)
    envbuild(guest, "switch", "moved", "1", "--restart=rolling")
    after = _pids(guest)
    assert all(after[name] != before[name] for name in _ROLLED)
    times = {name: _times(guest, name)[-2:] for name in _ROLLED}
    assert all("begun" in begun and "ready" in ready for (begun, _), (ready, _) in times.values())
    for one, other in pairwise(_ROLLED):
        assert times[one][1][1] < times[other][0][1]  # that one is ready before this one begins

    # Where one does not come up the next ones are not touched, and what was is put back.
    change(guest, '"1"]', '"2"]', name="moved")
    guest.run("sed -i '/^  three:/,/exec:/s/slow, \"2\"/fail/' /root/recipes/moved.yaml")
    assert install(guest, "--restart=rolling", name="moved", check=False) != 0
    again = _pids(guest)
    assert again["two"] == after["two"]
    assert all(again[name] not in {after[name], "0"} for name in ("one", "three"))
    state = guest.show(_unit("three"), "ActiveState")
    assert state == {"ActiveState": "active"}
