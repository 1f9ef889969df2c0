"""Programs that people run, under the units that ship for them, in a systemd that runs.

What they download is kept in a folder: `nox -s programs`.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from integration import systemd_running
from integration.systemd_running import Site

import envbuild

_FOLDER = os.environ.get("ENVBUILD_TEST_PROGRAMS", "")
_RECIPES = Path(envbuild.__file__).parent / "recipes"
_GOLDEN = Path(__file__).parents[1] / "golden/units"
_WAIT_S = 300.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(not _FOLDER, reason="downloads 3 GB: nox -s programs"),
]

_TRAIN = """import json, os, signal, sys
import torch

def step(x, w):
    return torch.nn.functional.gelu(x @ w).sum(dim=1)

compiled = torch.compile(step)
x, w = torch.randn(64, 32), torch.randn(32, 16)
picture = torch.nn.Conv2d(3, 8, 3)(torch.randn(2, 3, 32, 32))
off = float((compiled(x, w) - step(x, w)).abs().max())
kernels = [place for place, _, names in os.walk(os.environ["TORCHINDUCTOR_CACHE_DIR"])
           if any(name.endswith(".so") for name in names)]
print(json.dumps({
    "torch": torch.__version__, "off": off, "convolved": list(picture.shape),
    "kernels": len(kernels), "user": os.getuid(), "again": os.path.exists("checkpoint.pt"),
}), flush=True)

def end(*_):
    torch.save({"w": w}, "checkpoint.pt")
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
while True:
    signal.pause()
"""
_ASK = """import json, sys, urllib.request as r
base, token, path, *body = sys.argv[1:]
head = {"Authorization": f"token {token}", "Content-Type": "application/json"}
ask = r.Request(base + path, headers=head, data=body[0].encode() if body else None)
print(r.urlopen(ask).read().decode())
"""
_EXECUTE = """import sys
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=60)
client.execute_interactive(
    "import os, pwd; print(6 * 7); print(pwd.getpwuid(os.getuid()).pw_name); "
    "print(os.environ['PATH'])", timeout=60)
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose cache is kept; it lies on one disk with the store, so that files are linked."""
    if missing := systemd_running.missing():
        pytest.skip(missing)
    shared = Path(_FOLDER).resolve()
    shared.mkdir(parents=True, exist_ok=True)
    shared.chmod(0o755)
    for path in shared.iterdir():
        if path.name != "cache":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    base = tmp_path / "machine"
    base.mkdir()
    with systemd_running.booted(base, shared) as machine:
        yield Site(machine)


def test_jupyter_answers_and_starts_kernels(site: Site) -> None:
    site.online("create", "jupyter", "--no-compile")
    site.envbuild("units", "install", "jupyter")
    unit = "envbuild-jupyter.lab.service"
    assert site.machine.show(unit, "ActiveState") == "active"
    runtime = "/var/lib/envbuild/jupyter/lab/.local/share/jupyter/runtime"
    found = site.machine.run("sh", "-c", f"cat {runtime}/jpserver-*.json").stdout
    server = json.loads(found)

    def ask(path: str, *body: str) -> object:
        words = ("/usr/bin/python3", "-c", _ASK, server["url"], server["token"], path, *body)
        return json.loads(site.machine.run(*words).stdout)

    assert re.match(r"\d+\.", str(_field(ask("api"), "version")))
    prefix = str(site.json("info", "jupyter")["prefix"])
    kernel = _field(ask("api/kernels", json.dumps({"name": "python3"})), "id")
    words = (f"{prefix}/bin/python", "-c", _EXECUTE, f"{runtime}/kernel-{kernel}.json")
    told = site.machine.run(*words).stdout.splitlines()
    assert told[:2] == ["42", "eb-jupyter"]
    assert told[2].startswith(f"{prefix}/bin:")  # `!jupyter …` in a notebook is the environment's
    group = site.machine.show(unit, "ControlGroup")
    pids = site.machine.run("cat", f"/sys/fs/cgroup{group}/cgroup.procs").stdout.split()
    lines = [site.machine.run("cat", f"/proc/{pid}/cmdline").stdout.split("\0")[:3] for pid in pids]
    assert [f"{prefix}/bin/python", "-m", "ipykernel_launcher"] in lines
    site.machine.run("systemctl", "stop", unit)
    assert site.machine.show(unit, "Result") == "success"


def test_torch_compiles_under_the_training_service_that_ships(
    site: Site, record_property: Callable[[str, object], None]
) -> None:
    """The service of h100-pt24 word for word; what looks for a card is taken out of it."""
    if not Path("/usr/include/python3.11/Python.h").exists() or not shutil.which("g++"):
        pytest.skip("torch.compile needs g++ and the headers of /usr/bin/python3")
    name, unit = "h100-pt24", "envbuild-h100-pt24.train.service"
    shipped = yaml.safe_load((_RECIPES / f"{name}.yaml").read_text())
    recipe = {
        "name": name,
        "python": ">=3.11,<3.12",
        "channels": ["host"],
        "pypi": ["torch ==2.4.0", "numpy <2", "setuptools"],  # which inductor imports
        "services": shipped["services"],
        "slice": shipped["slice"],
    }
    (site.outside / "recipes" / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
    site.online("lock", name)
    site.online("create", name, "--no-compile")
    machine = site.machine
    machine.run("mkdir", "-m", "777", "/srv/train")
    (site.outside / "train/train.py").write_text(_TRAIN)
    # What a host with cards has, and this one has not.
    machine.run("ln", "-s", "/bin/true", "/usr/bin/nvidia-modprobe")
    machine.run("mkdir", f"{site.units}/{unit}.d")
    site.write(f"{unit}.d/no-card.conf", "[Service]\nExecCondition=\nExecStartPre=\n")
    site.envbuild("units", "install", name)
    prefix = str(site.json("info", name)["prefix"])
    text = site.read(unit).partition("[Unit]")[2]
    golden = (_GOLDEN / name / unit).read_text().partition("[Unit]")[2]
    was = re.search(r"ExecStart=(.*)/bin/python", golden)
    assert was is not None
    assert text == golden.replace(was[1], prefix)

    first = _said(site, unit, 1)[0]
    assert str(first["torch"]).startswith("2.4.0")
    assert first["off"] == pytest.approx(0, abs=1e-4)
    assert (first["convolved"], first["again"]) == ([2, 8, 30, 30], False)
    assert 0 not in {first["kernels"], first["user"]}
    machine.run("systemctl", "restart", unit)  # it writes its checkpoint first
    _, second = _said(site, unit, 2)
    record_property("said", [first, second])
    assert second["again"]
    assert second["kernels"] == first["kernels"]  # those of the first start are taken
    machine.run("systemctl", "stop", unit)
    assert machine.show(unit, "Result") == "success"


def _said(site: Site, unit: str, count: int) -> list[dict[str, object]]:
    """Wait until a service has said something so many times, and return what."""
    end = time.monotonic() + _WAIT_S
    while True:
        text = site.machine.run("journalctl", "-u", unit, "--output=cat").stdout
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        if len(found) == count:
            return found
        assert "Failed with result" not in text, text
        assert time.monotonic() < end, text
        time.sleep(1)


def _field(answer: object, name: str) -> object:
    assert isinstance(answer, dict)
    return answer[name]
