"""`units install`, `status` and `remove` against a systemd that runs."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from integration import systemd_running
from integration.systemd_running import Machine, Site

_UNIT = "envbuild-demo.web.service"
_WEB = """services:
  web:
    exec: [python, -m, http.server, --bind, 127.0.0.1, "8765"]
    readiness: {kind: port, port: 8765, timeout: 60s}
    network: loopback
    restart: {delay: 30s}
"""

_QUICK = """services:
  quick:
    exec: [python, -I, /srv/job.py, slow, "0"]
    readiness: {kind: notify}
    restart: {delay: 100ms}
"""
_CHECK = ("ExecCondition=", "#")
_PROGRAMS = Path(__file__).parents[1] / "system/programs"

_long = pytest.mark.skipif(
    os.environ.get("ENVBUILD_SERVICES") != "all", reason="all of it: nox -s services"
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if missing := systemd_running.missing():
        pytest.skip(missing)
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o755)
    with systemd_running.booted(tmp_path_factory.mktemp("machine"), shared) as machine:
        yield machine


@pytest.fixture(scope="module")
def created(machine: Machine) -> Site:
    site = Site(machine)
    site.recipe(_WEB)
    site.create()
    return site


@pytest.fixture
def site(created: Site) -> Iterator[Site]:
    """Yield a site where nothing is installed."""
    created.recipe(_WEB)
    yield created
    created.envbuild("units", "remove", "demo", check=False)
    created.machine.run("rm", "-rf", str(created.units))
    created.machine.run("mkdir", str(created.units))
    created.machine.run("systemctl", "daemon-reload")


@pytest.fixture
def first(site: Site) -> Iterator[str]:
    """Give the generation that is current, and make it so again for the tests that follow."""
    generation = str(site.json("info", "demo")["generation"])
    yield generation
    site.envbuild("switch", "demo", generation)


def _pid(site: Site) -> str:
    return site.machine.show(_UNIT, "MainPID")


@pytest.mark.slow
def test_install_status_and_remove(site: Site) -> None:
    dry = site.json("units", "install", "demo", "--dry-run")
    assert (dry["done"], [one["action"] for one in dry["units"]]) == (False, [None, "start"])
    assert site.listed() == [".envbuild/demo.lock"]

    site.envbuild("units", "install", "demo")
    assert site.machine.show(_UNIT, "ActiveState") == "active"
    assert site.machine.run("systemctl", "is-enabled", _UNIT).stdout == "enabled\n"
    site.envbuild("units", "demo", "--check")
    before = _pid(site)
    assert site.json("units", "install", "demo")["units"] == []
    assert _pid(site) == before

    rows = {row["unit"]: row for row in site.json("units", "status", "demo")["units"]}
    assert (rows[_UNIT]["state"], rows[_UNIT]["restarts"]) == ("active", 0)
    assert (rows[_UNIT]["at_boot"], rows[_UNIT]["why"]) == (True, None)
    assert rows[_UNIT]["pid"] == int(before)

    site.machine.run("mkdir", f"{site.units}/{_UNIT}.d")
    site.write(f"{_UNIT}.d/override.conf", "[Service]\nNice=5\n")
    site.envbuild("units", "remove", "demo")
    assert site.machine.show(_UNIT, "ActiveState") == "inactive"
    assert site.listed() == [".envbuild/demo.lock", f"{_UNIT}.d/override.conf"]
    assert site.envbuild("units", "status", "demo", check=False).returncode == 3


@_long
def test_everything_is_put_back_where_a_service_does_not_come_up(site: Site) -> None:
    site.recipe(_WEB.replace("exec:", "exec: [python, -c, raise SystemExit('no model')]  #"))
    done = site.envbuild("units", "install", "demo", check=False)
    assert done.returncode == 1
    assert f"{_UNIT} did not come up: exit code 1" in done.stderr
    assert "no model" in done.stderr
    assert site.listed() == [".envbuild/demo.lock"]
    assert site.machine.show(_UNIT, "LoadState") == "not-found"

    site.recipe(_WEB)
    site.envbuild("units", "install", "demo")
    before = site.read(_UNIT)
    site.recipe(_WEB.replace('"8765"]', '"none"]'))
    assert site.envbuild("units", "install", "demo", check=False).returncode == 1
    assert site.read(_UNIT) == before
    assert site.machine.show(_UNIT, "ActiveState") == "active"
    assert site.json("units", "install", "demo", "--dry-run")["units"][0]["name"] == _UNIT


@_long
def test_limits_reach_what_runs_and_the_rest_restarts_it(site: Site) -> None:
    site.envbuild("units", "install", "demo")
    first = _pid(site)
    site.recipe(_WEB + "    limits: {memory_max: 300M}\n    stop: {timeout: 45s}\n")
    site.envbuild("units", "install", "demo")
    assert _pid(site) == first
    assert site.machine.show(_UNIT, "MemoryMax") == str(300 << 20)
    assert site.machine.show(_UNIT, "TimeoutStopUSec") == "45s"

    site.recipe(_WEB + "    environment: {A: b}\n")
    done = site.json("units", "install", "demo", "--restart=never")
    assert (done["running_as_before"], _pid(site)) == ([_UNIT], first)
    site.recipe(_WEB + "    environment: {A: c}\n")
    site.envbuild("units", "install", "demo", "--restart=rolling")
    assert _pid(site) != first


@_long
def test_the_check_before_a_start_tells_why(site: Site) -> None:
    (needs,) = site.outside.glob("store/envs/demo/generations/*/.envbuild/needs.json")
    before = needs.read_text()
    needs.write_text(re.sub(r">=2\.\d+", ">=2.99", before))
    try:
        done = site.envbuild("units", "install", "demo", check=False)
        assert done.returncode == 1
        assert f"{_UNIT} did not come up: refused: glibc-too-old (exit code 103)" in done.stderr
        assert "it needs glibc >=2.99" in done.stderr
        assert site.listed() == [".envbuild/demo.lock"]

        site.envbuild("units", "install", "demo", "--no-start")
        site.machine.run("systemctl", "start", _UNIT)
        rows = {row["unit"]: row for row in site.json("units", "status", "demo", code=1)["units"]}
        assert (rows[_UNIT]["state"], rows[_UNIT]["restarts"]) == ("refused", 0)
        assert "glibc-too-old" in str(rows[_UNIT]["why"])
    finally:
        needs.write_text(before)
    site.envbuild("units", "install", "demo")
    assert site.machine.show(_UNIT, "ActiveState") == "active"


@_long
def test_what_systemd_does_not_take_is_not_written(site: Site) -> None:
    site.machine.run("mkdir", "-p", "/srv/templates")
    block = "{% block service %}\nRestartSec=soon\n{% endblock %}\n"
    (site.outside / "templates/service.j2").write_text(
        '{% extends "shipped/service.j2" %}\n' + block
    )
    done = site.envbuild("units", "install", "demo", "--templates", "/srv/templates", check=False)
    assert done.returncode == 1
    assert "soon" in done.stderr
    assert site.listed() == [".envbuild/demo.lock"]

    site.write(_UNIT, "[Service]\nExecStart=/bin/true\n")
    assert site.envbuild("units", "install", "demo", check=False).returncode == 6
    assert site.read(_UNIT) == "[Service]\nExecStart=/bin/true\n"


@_long
def test_what_a_killed_install_left_is_put_back(site: Site) -> None:
    site.envbuild("units", "install", "demo")
    before = site.read(_UNIT)
    site.recipe(_WEB.replace("port: 8765, ", "port: 9999, "))
    process = site.started("units", "install", "demo")
    end = time.monotonic() + 60
    while site.read(_UNIT) == before and time.monotonic() < end:
        time.sleep(0.1)
    holder = json.loads(site.read(".envbuild/demo.lock"))
    site.machine.run("kill", "-9", str(holder["pid"]))  # `process` is what entered the machine
    process.wait()
    site.recipe(_WEB)
    site.envbuild("units", "install", "demo")
    assert site.read(_UNIT) == before
    assert site.machine.show(_UNIT, "ActiveState") == "active"
    assert '"pending": null' in site.read(".envbuild/demo.json")


def test_without_a_systemd_nothing_is_written(created: Site, tmp_path: Path) -> None:
    """What renders works there, and nothing is put where systemd would look."""
    if systemd_running.BOOTED.is_dir():
        pytest.skip("systemd runs this machine")
    done = created.outside_run("units", "install", "demo", home=tmp_path)
    assert done.returncode == 7
    assert "/run/systemd/system" in done.stderr
    assert not list(created.units.glob("envbuild-demo*"))
    assert not (created.units / ".envbuild/demo.lock").exists()
    rendered = created.outside_run("units", "demo", "--output", f"{tmp_path}/u", home=tmp_path)
    assert rendered.returncode == 0, rendered.stderr
    told = created.outside_run("doctor", home=tmp_path)
    assert ", which does not run this host" in told.stdout


def _runs(site: Site) -> str:
    """Return the generation that the service runs from, as its unit says."""
    (line,) = (line for line in site.read(_UNIT).splitlines() if line.startswith("# generation "))
    program = site.machine.run("cat", f"/proc/{_pid(site)}/cmdline").stdout.split("\0")[0]
    assert program == f"{line.removeprefix('# generation ')}/bin/python"
    return line.rpartition("/")[2]


@_long
def test_services_move_with_switch_and_rollback(site: Site, first: str) -> None:
    site.envbuild("units", "install", "demo")
    assert _runs(site) == first
    site.envbuild("create", "demo", "--offline", "--no-compile", "--reinstall")
    second = str(site.json("info", "demo")["generation"])
    assert (second != first, _runs(site)) == (True, first)

    site.envbuild("switch", "demo", second)
    assert _runs(site) == second
    site.envbuild("rollback", "demo", first)
    assert _runs(site) == first
    assert site.json("info", "demo")["generation"] == first

    broken = site.outside / f"store/envs/demo/generations/{second}/bin/python"
    broken.unlink()
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 9\n")
    broken.chmod(0o755)
    done = site.envbuild("switch", "demo", second, check=False)
    assert done.returncode == 1
    assert "did not come up" in done.stderr
    assert (_runs(site), site.json("info", "demo")["generation"]) == (first, first)

    site.recipe("")
    pid = _pid(site)
    site.envbuild("switch", "demo", second, "--restart=never")
    assert _pid(site) == pid
    assert f"/generations/{second}/" in site.read(_UNIT)


@_long
def test_a_user_installs_for_their_own_manager(site: Site) -> None:
    machine = site.machine
    machine.run("useradd", "--create-home", "trainer")
    machine.run("chmod", "a+rx", "/root")  # the interpreter of the tests may lie there
    uid = machine.run("id", "-u", "trainer").stdout.strip()

    done = site.envbuild("units", "status", "demo", "--user", user="trainer", check=False)
    assert done.returncode == 7
    assert f"loginctl enable-linger {uid}" in done.stderr

    machine.run("loginctl", "enable-linger", "trainer")
    machine.run("sh", "-c", f"until [ -S /run/user/{uid}/bus ]; do sleep 0.1; done")
    site.envbuild("create", "demo", "--offline", "--no-compile", user="trainer")
    site.envbuild("units", "install", "demo", "--user", user="trainer")
    done = site.envbuild("units", "status", "demo", "--user", "--json", user="trainer")
    states = {row["unit"]: row["state"] for row in json.loads(done.stdout)["units"]}
    assert states[_UNIT] == "active"
    site.envbuild("units", "remove", "demo", "--user", user="trainer")


@_long
def test_from_kill_to_ready(site: Site, record_property: Callable[[str, object], None]) -> None:
    """Beside a unit that is written by hand, with the sandbox and program of ours."""
    for name in ("job.py", "restarts.py"):
        (site.outside / name).write_text((_PROGRAMS / name).read_text())
    site.recipe(_QUICK)
    site.envbuild("units", "install", "demo")
    ours, by_hand = "envbuild-demo.quick.service", "by-hand.service"
    lines = site.read(ours).splitlines()
    site.write(by_hand, "\n".join(line for line in lines if not line.startswith(_CHECK)) + "\n")
    site.machine.run("systemctl", "start", by_hand)
    seen = site.machine.run("python3", "/srv/restarts.py", "21", ours, by_hand).stdout
    medians = {name: median(times) for name, times in json.loads(seen).items()}
    ratio = medians[ours] / medians[by_hand]
    told = f"{ours}: {medians[ours]:.3f} s, by hand {medians[by_hand]:.3f} s, {ratio:.2f}x"
    print(told)  # noqa: T201
    record_property("restart", told)
    assert site.machine.show(ours, "ActiveState") == "active"
