"""An MPS server and its client as units, in a systemd that runs; the daemon is a stand-in.

What looks for cards is taken out of both by drop-ins of an administrator: there are none here.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import systemd_running
from integration.systemd_running import Machine, Site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("ENVBUILD_SERVICES") != "all", reason="nox -s services"),
]

_SERVER, _CLIENT = "envbuild-share._mps-any.service", "envbuild-share.one.service"
_PIPE = "/run/envbuild-mps/share._mps-any/pipe"
_RECIPE = """services:
  one:
    exec: [python, -I, /srv/client.py]
    user: trainer
    gpu: {memory: 8G, isolation: mps}
    restart: {delay: 1s}
"""
_CONTROL = """#!/bin/sh
pid=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
if [ "$1" = -d ]; then
    sleep 100000 &
    echo $! >"$pid"
    exit 0
fi
read -r words
echo "told: $words"
kill "$(cat "$pid")"
rm "$pid"
"""
_PROGRAM = """import json, os, signal, sys
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
server = os.path.join(pipe, "nvidia-cuda-mps-control.pid")
print(json.dumps({"pipe": pipe, "user": os.getuid(), "server": open(server).read()}), flush=True)

def end(*_):
    print(json.dumps({"ends": True, "server": os.path.exists(server)}), flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
while True:
    signal.pause()
"""
_WALK = """import os, sys
path = sys.argv[1]
while path != "/":
    print(path, oct(os.stat(path).st_mode & 0o777), os.access(path, os.R_OK | os.X_OK))
    path = os.path.dirname(path)
open(f"{sys.argv[1]}/nvidia-cuda-mps-control.pid").read()
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if missing := systemd_running.missing():
        pytest.skip(missing)
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (tmp_path / "machine").mkdir()
    with systemd_running.booted(tmp_path / "machine", shared) as machine:
        yield Site(machine)


@pytest.fixture
def served(site: Site) -> Machine:
    """A machine where the client runs, and its server with it."""
    machine = site.machine
    machine.run("useradd", "--uid", "1777", "trainer")
    (site.outside / "client.py").write_text(_PROGRAM)
    (site.outside / "control").write_text(_CONTROL)
    machine.run("install", "/srv/control", "/usr/bin/nvidia-cuda-mps-control")
    machine.run("ln", "-s", "/bin/true", "/usr/bin/nvidia-modprobe")
    for unit, cleared in ((_SERVER, "ExecStartPre=\nExecStopPost="), (_CLIENT, "ExecStartPre=")):
        machine.run("mkdir", f"{site.units}/{unit}.d")
        condition = "ExecCondition=\n" if unit == _CLIENT else ""
        site.write(f"{unit}.d/no-card.conf", f"[Service]\n{condition}{cleared}\n")
    site.recipe(_RECIPE, name="share")
    site.create("share")
    site.envbuild("units", "install", "share")
    return machine


def _said(machine: Machine, unit: str) -> list[str]:
    return machine.run("journalctl", "-u", unit, "--output=cat").stdout.splitlines()


def test_the_pipe_is_reached_by_its_user_and_clients_stop_first(served: Machine) -> None:
    for unit in (_SERVER, _CLIENT):
        assert served.show(unit, "ActiveState") == "active"
    (first,) = (json.loads(line) for line in _said(served, _CLIENT) if line.startswith("{"))
    assert (first["pipe"], first["user"]) == (_PIPE, 1777)
    assert first["server"].strip() == served.show(_SERVER, "MainPID")
    walked = served.run("/usr/bin/python3", "-c", _WALK, _PIPE, user="trainer").stdout
    assert walked.splitlines() == [
        f"{_PIPE} 0o755 True",
        "/run/envbuild-mps/share._mps-any 0o755 True",
        "/run/envbuild-mps 0o755 True",
        "/run 0o755 True",
    ]
    assert served.run("test", "-e", "/tmp/nvidia-mps", check=False).returncode == 1  # noqa: S108

    served.run("systemctl", "stop", _SERVER)
    last = [json.loads(line) for line in _said(served, _CLIENT) if line.startswith("{")][-1]
    assert last == {"ends": True, "server": True}  # the server was still there
    assert "told: quit -t 10" in _said(served, _SERVER)
    assert [served.show(unit, "ActiveState") for unit in (_CLIENT, _SERVER)] == ["inactive"] * 2
    assert served.show(_SERVER, "Result") == "success"


def test_after_a_killed_client_both_begin_anew(served: Machine) -> None:
    before = [served.show(unit, "MainPID") for unit in (_SERVER, _CLIENT)]
    served.run("systemctl", "kill", "--signal=KILL", _CLIENT)
    end = time.monotonic() + 60
    while True:
        now = [served.show(unit, "MainPID") for unit in (_SERVER, _CLIENT)]
        if not {"0", *before} & {*now}:
            break
        assert time.monotonic() < end, now
        time.sleep(0.2)
    assert [served.show(unit, "ActiveState") for unit in (_SERVER, _CLIENT)] == ["active"] * 2
