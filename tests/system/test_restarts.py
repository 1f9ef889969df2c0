"""From kill -9 to ready: a unit of ours beside one written by hand with its sandbox and program."""

import json
from collections.abc import Callable
from statistics import median

import pytest
from system import marks
from system.machine import Machine
from system.test_services import unit

_OURS = ("ExecCondition=", "ExecStartPre=", "ExecStopPost=", "EnvironmentFile=-", "#")
_BY_HAND = "by-hand.service"
_TIMES = 7


@marks.long
@pytest.mark.parametrize("service", ["quick", "quick-card"])
def test_from_kill_to_ready(
    guest: Machine, service: str, record_property: Callable[[str, object], None]
) -> None:
    ours = unit(service)
    lines = guest.run(["cat", f"/etc/systemd/system/{ours}"]).out.splitlines()
    by_hand = [line for line in lines if not line.startswith(_OURS)]
    by_hand.insert(by_hand.index("[Service]") + 1, "DeviceAllow=/dev/nvidia2 rw")
    guest.put(f"/etc/systemd/system/{_BY_HAND}", "\n".join(by_hand) + "\n")
    guest.run("systemctl daemon-reload")
    guest.run(["systemctl", "start", ours, _BY_HAND])
    words = ["python3", "/srv/restarts.py", f"{_TIMES}", ours, _BY_HAND]
    seen = json.loads(guest.run(words, timeout_s=600).out)
    medians = {name: median(times) for name, times in seen.items()}
    ratio = medians[ours] / medians[_BY_HAND]
    told = f"{ours}: {medians[ours]:.2f} s, by hand {medians[_BY_HAND]:.2f} s, {ratio:.2f}x"
    print(told)  # noqa: T201
    record_property("restart", told)
    assert guest.show(ours, "NRestarts") == guest.show(_BY_HAND, "NRestarts")
    assert guest.show(ours, "ActiveState") == {"ActiveState": "active"}
