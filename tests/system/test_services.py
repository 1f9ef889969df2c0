"""Services as systemd runs them: what they get, how they stop, what they may see."""

import json
from typing import Any

from system import marks
from system.machine import Machine

WEB = "envbuild-plain.web.service"


def said(guest: Machine, unit: str) -> list[dict[str, Any]]:
    """Return what a service's program said, and none of what systemd did."""
    lines = guest.journal("-u", unit).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def unit(service: str) -> str:
    return f"envbuild-plain.{service}.service"


def test_a_shipped_service_starts_and_answers(guest: Machine) -> None:
    guest.run("systemctl start envbuild-quickstart.hello.service")
    ask = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8765').status)"
    assert guest.run(["python3", "-c", ask]).out == "200\n"
    shown = guest.show("envbuild-quickstart.hello.service", "ControlGroup", "NRestarts")
    group = "/envbuild.slice/envbuild-quickstart.slice/envbuild-quickstart.hello.service"
    assert shown == {"ControlGroup": group, "NRestarts": "0"}


def test_a_service_that_is_started_is_ready(guest: Machine) -> None:
    guest.run(["systemctl", "start", WEB])
    connect = "import socket; socket.create_connection(('127.0.0.1', 8000))"
    guest.run(["python3", "-c", connect])


def test_the_main_process_alone_is_told_to_stop(guest: Machine) -> None:
    name = unit("train")
    guest.run(["systemctl", "start", name])
    guest.until(lambda: said(guest, name))
    guest.run(["systemctl", "stop", name])
    assert said(guest, name)[1:] == [{"checkpoint": "written", "worker": "alive"}]
    assert guest.show(name, "Result", "ActiveState") == {
        "Result": "success",
        "ActiveState": "inactive",
    }


def test_what_does_not_stop_is_killed_after_its_time(guest: Machine) -> None:
    name = unit("stubborn")
    guest.run(["systemctl", "start", name])
    guest.until(lambda: said(guest, name))
    guest.run(["systemctl", "stop", name])
    assert said(guest, name) == [{"started": True}, {"told": True}]
    assert guest.show(name, "Result", "ActiveState") == {
        "Result": "timeout",
        "ActiveState": "failed",
    }


def test_a_secret_is_read_by_its_service_alone(guest: Machine) -> None:
    name = unit("secret")
    guest.run(["systemctl", "start", name])
    guest.until(lambda: said(guest, name))
    seen = {"secret": "hidden", "mode": 0o400, "elsewhere": "Permission denied"}
    assert said(guest, name) == [seen]
    other = f"runuser -u trainer -- cat /run/credentials/{name}/token"
    assert guest.run(other, check=False).code != 0
    shown = guest.run(["systemctl", "show", name]).out
    assert "hidden" not in shown


def test_a_connection_starts_a_service_and_restarts_refuse_none(guest: Machine) -> None:
    guest.run("systemctl start envbuild-plain.asked.socket")
    assert guest.show(unit("asked"), "ActiveState") == {"ActiveState": "inactive"}
    guest.run("python3 /srv/load.py 8080 /tmp/stop >/tmp/counts 2>&1 &")
    seen: set[str] = set()
    for doing in ("kill --signal=KILL", "restart", "restart"):
        guest.until(lambda: is_new(guest, unit("asked"), seen))
        guest.run(f"systemctl {doing} {unit('asked')}")
    guest.until(lambda: is_new(guest, unit("asked"), seen))
    guest.run("touch /tmp/stop")
    guest.until(lambda: guest.run("cat /tmp/counts").out)
    counts = json.loads(guest.run("cat /tmp/counts").out)
    assert counts["refused"] == 0
    assert counts["lost"] <= 1  # what was in work at the kill
    assert counts["processes"] >= 3


def is_new(guest: Machine, service: str, seen: set[str]) -> bool:
    """Tell whether a process that was not there yet serves, and take note of it."""
    shown = guest.show(service, "ActiveState", "MainPID")
    if shown["ActiveState"] != "active" or shown["MainPID"] in seen:
        return False
    seen.add(shown["MainPID"])
    return True


@marks.long
def test_a_start_limit_is_reached_and_told(guest: Machine) -> None:
    name = unit("hopeless")
    guest.run(["systemctl", "start", name], check=False)
    guest.until(lambda: guest.show(name, "ActiveState")["ActiveState"] == "failed")
    assert guest.journal("-u", name).count("status=3/NOTIMPLEMENTED") == 3  # as often as it may
    shown = guest.run("envbuild units status plain --json", check=False)
    assert shown.code == 1
    (row,) = (row for row in json.loads(shown.out)["units"] if row["unit"] == name)
    assert row["state"] == "failed"
    assert "exit code 3; started too often, now left alone" in row["why"]
    guest.run(["systemctl", "reset-failed", name])
    guest.run(["systemctl", "start", name], check=False)
    guest.until(lambda: guest.journal("-u", name).count("status=3/NOTIMPLEMENTED") > 3)
