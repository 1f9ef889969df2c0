"""Which device nodes a service can open, with a module that has NVIDIA's numbers."""

from collections.abc import Collection

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
