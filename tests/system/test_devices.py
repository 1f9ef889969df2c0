"""Which device nodes a service can open, with a module that has NVIDIA's numbers."""

import json
from collections.abc import Collection

from system import marks
from system.machine import Machine
from system.test_services import said, unit

NODES = "envbuild-gpu-nodes.service"
_CARDS = ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2")
_ALL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/null")


def _opens(guest: Machine, service: str, times: int = 1) -> set[str]:
    """Return what a service could open when it looked for the last of so many times."""
    guest.until(lambda: len(said(guest, unit(service))) >= times)
    found = said(guest, unit(service))
    assert len(found) == times
    return {path for path, seen in found[-1]["nodes"].items() if seen == "open"}


def _programs(guest: Machine, service: str) -> list[str]:
    """Return the names of the programs that run in a unit's cgroup."""
    group = f"/sys/fs/cgroup/envbuild.slice/envbuild-plain.slice/{service}"
    each = f"for pid in $(cat {group}/cgroup.procs); do cat /proc/$pid/comm; done"
    return guest.run(each, check=False).out.split()


def _look(guest: Machine, *services: str) -> None:
    for service in services:
        guest.run(["systemctl", "kill", "--signal=HUP", "--kill-whom=main", unit(service)])


def _with(cards: Collection[str]) -> set[str]:
    return {*_ALL, *cards}


def test_each_service_opens_its_own_card_alone(guest: Machine) -> None:
    assert guest.run("ls /dev/nvidia*", check=False).code != 0
    guest.run(["systemctl", "start", *map(unit, ("pinned", "card", "other", "none"))])
    # The unit that all of them require has loaded the module and made the nodes.
    assert guest.show(NODES, "ActiveState") == {"ActiveState": "active"}
    assert _opens(guest, "pinned") == _with(["/dev/nvidia2"])
    card, other = _opens(guest, "card"), _opens(guest, "other")
    assert {frozenset(card), frozenset(other)} == {frozenset(_with([one])) for one in _CARDS[:2]}
    assert _opens(guest, "none") == {"/dev/null"}
    guest.run("systemctl daemon-reload")
    _look(guest, "card", "other", "pinned", "none")
    assert _opens(guest, "card", 2) == card
    assert _opens(guest, "other", 2) == other
    assert _opens(guest, "pinned", 2) == _with(["/dev/nvidia2"])
    assert _opens(guest, "none", 2) == {"/dev/null"}


def test_a_card_is_given_back_and_swapped(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("card")])
    assert _opens(guest, "card") == _with(["/dev/nvidia0"])
    guest.run(["systemctl", "kill", "--signal=KILL", unit("card")])  # it is started again
    assert _opens(guest, "card", 2) == _with(["/dev/nvidia0"])
    guest.run(["systemctl", "stop", unit("card")])
    guest.run(["systemctl", "start", unit("other")])
    assert _opens(guest, "other") == _with(["/dev/nvidia0"])
    guest.run(["systemctl", "start", unit("card")])
    assert _opens(guest, "card", 3) == _with(["/dev/nvidia1"])
    guest.run("systemctl daemon-reload")
    _look(guest, "card", "other")
    assert _opens(guest, "card", 4) == _with(["/dev/nvidia1"])
    assert _opens(guest, "other", 2) == _with(["/dev/nvidia0"])


@marks.long
def test_doctor_and_the_ledger_see_the_cards(guest: Machine) -> None:
    guest.run(["systemctl", "start", unit("card"), unit("pinned")])
    found = json.loads(guest.run("envbuild doctor --json").out)
    uuids = [f"GPU-00000000-0000-4000-8000-{card:012}" for card in range(len(_CARDS))]
    assert [gpu["uuid"]["value"] for gpu in found["host"]["nvml"]["gpus"]] == uuids
    held = json.loads(guest.run("envbuild slice show --json").out)["units"]
    assert held == {unit("card"): uuids[:1], unit("pinned"): uuids[2:]}
    rows = json.loads(guest.run("envbuild units status plain --json").out)["units"]
    told = {row["unit"]: (row["state"], row["cards"], row["why"]) for row in rows}
    assert told[unit("card")] == ("active", [0], None)
    assert told[unit("pinned")] == ("active", [2], None)


@marks.long
def test_the_check_before_a_start_looks_at_driver_and_nodes(guest: Machine) -> None:
    """What is no for good is a refusal; what may come is waited for and tried again."""
    # As `units install` does it; systemd forgets a unit that nothing refers to.
    guest.run(["systemctl", "enable", "--quiet", unit("card")])
    needs = guest.run("ls /var/lib/envbuild/envs/plain/generations/*/.envbuild/needs.json").out
    before = guest.run(f"cat {needs}").out
    fields = json.loads(before)
    fields["driver"]["value"] = ">=570"
    guest.put(needs.strip(), json.dumps(fields, indent=1))
    guest.run(["systemctl", "start", unit("card")])
    assert guest.show(unit("card"), "ActiveState", "Result") == {
        "ActiveState": "inactive",
        "Result": "exec-condition",
    }
    shown = guest.run("envbuild units status plain --json", check=False)
    assert shown.code == 1
    (row,) = (row for row in json.loads(shown.out)["units"] if row["unit"] == unit("card"))
    assert row["state"] == "refused"
    assert "refused: driver-out-of-range (exit code 105)" in row["why"]
    assert "it is for driver >=570, and this host runs 550.54.15" in row["why"]

    guest.put(needs.strip(), before)
    guest.run("rm /dev/nvidiactl")
    guest.run(["systemctl", "start", "--no-block", unit("card")])
    guest.until(lambda: "sleep" in _programs(guest, unit("card")))  # it waits
    guest.run("mknod -m 666 /dev/nvidiactl c 195 255")
    assert _opens(guest, "card") == _with(["/dev/nvidia0"])
    assert "the cards' nodes came late: it is started anew to see them" in guest.journal(
        "-u", unit("card")
    )
