"""Which device nodes a service can open, with a module that has NVIDIA's numbers."""

from typing import Any

from system.machine import Machine
from system.test_services import said, unit

NAME = unit("card")
OPEN = {
    "/dev/nvidiactl": "open",
    "/dev/nvidia-uvm": "open",
    "/dev/nvidia0": "open",
    "/dev/nvidia1": "Operation not permitted",
    "/dev/nvidia2": "Operation not permitted",
    "/dev/null": "open",
    "/dev/vda": "Permission denied",
}


def _looks(guest: Machine, times: int) -> dict[str, Any]:
    """Return what the service could open when it looked for the last of so many times."""
    guest.until(lambda: len(said(guest, NAME)) >= times)
    found = said(guest, NAME)
    assert len(found) == times
    seen: dict[str, Any] = found[-1]["nodes"]
    return seen


def test_another_card_cannot_be_opened(guest: Machine) -> None:
    assert guest.run("ls /dev/nvidia*", check=False).code != 0  # the unit of the nodes makes them
    guest.run(["systemctl", "start", NAME])
    assert _looks(guest, 1) == OPEN
    assert guest.show("envbuild-gpu-nodes.service", "ActiveState") == {"ActiveState": "active"}
    guest.run("systemctl daemon-reload")
    guest.run(["systemctl", "kill", "--signal=HUP", "--kill-whom=main", NAME])
    assert _looks(guest, 2) == OPEN
    # Another card is given: the change holds after a reload, for what runs and what is started.
    guest.put(
        "/run/systemd/system/envbuild-plain.card.service.d/50-cards.conf",
        "[Service]\nDeviceAllow=/dev/nvidia1 rw\n",
    )
    guest.run("systemctl daemon-reload")
    guest.run(["systemctl", "restart", NAME])
    swapped = OPEN | {"/dev/nvidia0": OPEN["/dev/nvidia1"], "/dev/nvidia1": "open"}
    assert _looks(guest, 3) == swapped
