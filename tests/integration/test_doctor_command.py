"""`envbuild doctor` on hosts of every kind: whole outputs, files that were saved, refusals."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from integration.creating import NEEDS, Creator, order
from integration.doctoring import WITHOUT_NVML, host, host_without_nvml
from integration.packages import File, make_package
from nvmlsim.simulator import SCENARIOS

from envbuild.cli.context import Here
from envbuild.cli.main import main
from envbuild.host import gpus
from envbuild.packages import PipPackage
from envbuild.store import needs, present
from envbuild.store.layout import Generation
from envbuild.store.order import dumps, loads
from envbuild.target import Need
from envbuild.tools.nvml import Limits

_DISK = re.compile(r"[\d.]+ [kMGT]?B free of [\d.]+ [kMGT]?B at \S+")
_OWNERS = re.compile(r"(?<=[ (]\d{4} )[\w-]+:[\w-]+")


@pytest.fixture(autouse=True)
def settled(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Hold the day, the variables and the patience still."""
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(Here, "now", lambda _: datetime(2026, 12, 1, tzinfo=UTC))
    if "hang" in request.node.name:  # others are waited for, however busy the machine is
        short = partial(gpus.read_nvml, limits=Limits(silence_s=2, total_s=60))
        monkeypatch.setattr(gpus, "read_nvml", short)


def _settled(text: str) -> str:
    """Return text without what varies by machine: the disk, and who owns the test's files."""
    return _OWNERS.sub("OWNER:GROUP", _DISK.sub("ROOM at STORE", text))


def _plain(told: str) -> str:
    """Return what is told of an environment without what varies by machine, nor its columns."""
    told = re.sub(r"lock \(\S+\):", "lock (FOLDER):", told)
    return re.sub(r" {2,}", "  ", re.sub(r"[\d.]+ [kMGT]?B free", "ROOM free", told))


def _lines(text: str) -> str:
    """Return JSON, a line for each field of a card or a part, without what varies by machine."""
    data: dict[str, Any] = json.loads(text)
    host = data["host"]
    host["root"] = None
    host["machine"]["disk"] = None
    for node in host["machine"]["nodes"].get("value", ()):
        node["owner"] = node["group"] = None
    nvml, machine = host.pop("nvml"), host.pop("machine")
    cards = nvml.pop("gpus")
    flags = machine["cpu"]["flags"].pop("value", [])
    lines = [json.dumps(host), json.dumps(nvml), f"flags: {len(flags)}"]
    for part in (*cards, machine):
        lines += ["", *(f"{key}: {json.dumps(value)}" for key, value in part.items())]
    lines += ["", *(json.dumps(finding, ensure_ascii=False) for finding in data["findings"])]
    return "\n".join(lines) + "\n"


def _whole(
    root: Path,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Any,  # noqa: ANN401
) -> None:
    saved = tmp_path / "saved.json"
    code = main(["doctor", "--root", str(root), "--save", str(saved)])
    out = capsys.readouterr().out
    golden(f"doctor/{name}.txt", _settled(out) + f"exit code {code}\n")
    golden(f"doctor/{name}.json.txt", _lines(saved.read_text()))
    assert main(["doctor", "--root", str(root), "--diff", str(saved)]) == 0
    assert "nothing differs" in capsys.readouterr().out


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_whole_output_for_each_scenario(
    scenario: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    _whole(host(tmp_path / "root", scenario), scenario, tmp_path, capsys, golden)


@pytest.mark.parametrize("name", WITHOUT_NVML)
def test_the_whole_output_without_nvml(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    _whole(host_without_nvml(tmp_path / "root", name), name, tmp_path, capsys, golden)


@pytest.mark.parametrize(
    ("name", "scenario", "code"),
    [
        ("h100-pt24", "h100x8-mig", 0),
        ("h100-pt24", "mismatch", 1),
        ("h100-pt24", "no-gpu", 1),
        ("b200-pt28", "b200-old-driver", 1),
        ("quickstart", "mismatch", 0),
        ("quickstart", "no-gpu", 0),
        ("cpu-arm", "no-gpu", 1),
    ],
)
def test_an_environment_that_is_locked(
    name: str,
    scenario: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    root = host(tmp_path / "root", scenario)
    assert main(["doctor", name, "--root", str(root)]) == code
    out = capsys.readouterr().out
    verdict = f"{name}: may {'not ' * code}run here"
    assert out.splitlines()[-1] == verdict
    told = out[out.index(f"\n{name}, from recipe and lock") + 1 :]
    golden(f"doctor/{name}-on-{scenario}.txt", _plain(told))
    assert main(["doctor", name, "--root", str(root), "--json"]) == code
    environment = json.loads(capsys.readouterr().out)["environment"]
    assert (environment["name"], environment["admitted"]) == (name, not code)
    assert main(["doctor", name, "--root", str(root), "-q"]) == code
    quiet = capsys.readouterr().out.splitlines()
    assert quiet[-1] == verdict
    assert [line for line in quiet if line.startswith(("warning", "note"))] == []


@pytest.fixture
def created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Creator:
    """A store with an environment `demo` for one H100."""
    creator = Creator(root=tmp_path / "store")
    wheel = PipPackage(name="torch", version="2.4.0", hashes=("0" * 64,))
    needs = replace(NEEDS, gpus=Need(value="h100", origin="recipe"))
    content = {"lib/libcudart.so.12": File(content=b"a library")}
    small = make_package(tmp_path / "channel", "cuda-cudart", content=content)
    made = creator.create(order([small], needs=needs))
    kept = made.generation.order
    kept.write_text(dumps(replace(loads(kept.read_bytes()), pip=(wheel,))))
    monkeypatch.setenv("ENVBUILD_STORE", str(creator.root))
    return creator


def _current(creator: Creator) -> Generation:
    found = present.current(creator.place)
    assert found is not None
    return found


def _asked(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", "demo", "--root", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_an_environment_that_an_earlier_version_made(
    created: Creator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = host(tmp_path / "root", "trace")
    code, data = _asked(root, capsys)
    assert code == 0
    own = data["environment"]
    assert own["from"].startswith("needs.json of generation")
    assert own["from"].endswith("and what its packages say")
    assert own["needs"]["capabilities"] == {"value": "9.0", "origin": "facts: gpu h100"}
    assert own["needs"]["codes"]["origin"] == "facts: pytorch 2.4.0 pypi"
    codes = {finding["code"] for finding in data["findings"]}
    assert codes == {"need-unknown", "driver-end-of-life", "throttled-power"}
    assert _current(created).needs.is_file()


_WANTED = {
    "platform": "linux-64",
    "gpus": "h100",
    "capabilities": "9.0",
    "codes": "pytorch: sm_80 sm_90",
    "driver": ">=550",
    "floor": "525.60.13",
    "cuda": "12.4",
    "glibc": ">=2.28",
    "cpu": "x86_64_v3",
    "memory": "none",
}


@pytest.mark.parametrize(
    ("reason", "scenario", "code", "wanted"),
    [
        ("nothing", "h100x8-idle", 0, {}),
        ("platform-differs", "h100x8-idle", 1, {"platform": "linux-aarch64", "cpu": "aarch64"}),
        ("cpu-too-old", "h100x8-idle", 1, {"cpu": "x86_64_v5"}),
        ("cpu-not-judged", "h100x8-idle", 0, {"cpu": "zen4"}),
        ("glibc-too-old", "h100x8-idle", 1, {"glibc": ">=2.39"}),
        ("memory-short", "h100x8-idle", 0, {"memory": f"{4 << 40}"}),
        ("card-needed", "no-gpu", 1, {}),
        ("driver-needed", "not-loaded", 1, {}),
        ("driver-out-of-range", "h100x8-idle", 1, {"driver": ">=500,<540", "branches": "R535"}),
        ("driver-too-old", "h100x8-idle", 1, {"driver": "none", "floor": "580.65.06"}),
        ("no-gpu-code", "a100-slow-link", 1, {"codes": "pytorch: sm_90"}),
        ("code-compiled-first", "h100x8-idle", 0, {"codes": "pytorch: sm_80 compute_80"}),
        ("need-unknown", "h100x8-idle", 0, {"glibc": None, "codes": None}),
    ],
)
def test_each_reason_against_an_environment(
    reason: str,
    scenario: str,
    code: int,
    wanted: dict[str, str | None],
    created: Creator,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    told = {name: Need(value=value, origin="recipe") for name, value in (_WANTED | wanted).items()}
    _current(created).needs.write_text(needs.dumps(replace(NEEDS, **told)))
    root = host(tmp_path / "root", scenario)
    assert main(["doctor", "demo", "--root", str(root)]) == code
    out = capsys.readouterr().out
    golden(f"doctor/demo-{reason}.txt", _plain(out[out.index("\ndemo, from ") + 1 :]))
    _, data = _asked(root, capsys)
    codes = {one["code"] for one in data["findings"] if one["where"].startswith("demo")}
    assert codes >= {reason} if reason != "nothing" else codes == set()


def test_an_environment_whose_needs_are_gone(
    created: Creator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _current(created).needs.unlink()
    code, data = _asked(host(tmp_path / "root", "trace"), capsys)
    assert code == 0
    assert "which has no needs.json that can be read" in data["environment"]["from"]
    assert data["environment"]["needs"]["gpus"]["value"] == "h100"
    _current(created).order.unlink()
    assert main(["doctor", "demo"]) == 6
    assert "cannot be read" in capsys.readouterr().err


def test_an_environments_own_libraries_that_are_shadowed(
    created: Creator,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = host(tmp_path / "root", "trace")
    for name in ("libcudart.so.12", "libcufft.so.11"):
        (root / "opt").mkdir(exist_ok=True)
        (root / "opt" / name).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt")
    assert created.root.is_dir()
    _, data = _asked(root, capsys)
    (told,) = (one for one in data["findings"] if one["code"] == "shadowed-library")
    assert told["what"] == "/opt holds libcudart.so.12"


def test_half_a_scenario_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = host(tmp_path / "root", "h100x8-mig")
    scenario = root / "usr/lib64/nvmlsim.scenario"
    text = scenario.read_text()
    scenario.write_text(text[: text.index(" = 4711")])
    assert main(["doctor", "--root", str(root), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["findings"]
    (what,) = (one["what"] for one in told if one["severity"] == "error")
    assert what == "the process that asks NVML ended with SIGABRT in nvmlInit"


def test_this_machine_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    data = json.loads(capsys.readouterr().out)
    errors = [one for one in data["findings"] if one["severity"] == "error"]
    assert code == (1 if errors else 0)
    assert data["version"] == 1
    assert data["environment"] is None
    assert data["host"]["machine"]["system"]["kernel"]["reading"] == "value"


def test_what_differs_from_a_host_that_was_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, now = (host(tmp_path / name, name) for name in ("trace", "absurd"))
    saved = tmp_path / "saved.json"
    assert main(["doctor", "--root", str(before), "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["doctor", "--root", str(now), "--diff", str(saved)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "WHAT", "node1", "2026-12-01T00:00:00Z", "node1", "2026-12-01T00:00:00Z",
    ]  # fmt: skip
    assert lines[1].split() == ["nvml.gpus.0.ecc.current", "True", "(no-answer)"]
    assert main(["doctor", "--root", str(now), "--diff", str(saved), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["differences"]
    assert rows[0] == {
        "what": "nvml.gpus.0.ecc.current",
        "before": "True",
        "now": "(no-answer)",
        "matters": True,
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("\xff", "it is not JSON"),
        ("[]", "it has no host"),
        ('{"version": 1}', "it has no host"),
        ('{"version": 1, "host": {}}', "Object missing required field `name`"),
        ('{"version": 2, "host": {}}', "it is of version 2"),
    ],
)
def test_a_file_that_holds_no_host(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "saved.json"
    file.write_bytes(text.encode("latin-1"))
    assert main(["doctor", "--diff", str(file)]) == 3
    error = capsys.readouterr().err.splitlines()
    assert error[0].startswith(f"error: {file} is no host that was saved: {told}")
    assert error[1:] == ["hint: envbuild doctor --save FILE writes one"]


def test_half_of_a_saved_host_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "saved.json"
    assert (
        main(["doctor", "--root", str(host(tmp_path / "root", "trace")), "--save", f"{saved}"]) == 0
    )
    text = saved.read_text()
    saved.write_text(text[: len(text) // 2])
    assert main(["doctor", "--diff", str(saved)]) == 3
    data = json.loads(text)
    data["host"]["nvml"]["gpus"][0]["index"] = "first"
    saved.write_text(json.dumps(data))
    assert main(["doctor", "--diff", str(saved)]) == 3
    assert "at `$.nvml.gpus[0].index`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nosuch"], 3, "there is no recipe 'nosuch'"),
        (["no such"], 2, "'no such' is not a name"),
        (["--diff", "/nosuch.json"], 3, "/nosuch.json cannot be read: No such file"),
        (["--root", "/nosuch"], 2, "'/nosuch' does not exist"),
        (["--driver-root", "/nosuch"], 2, "'/nosuch' does not exist"),
        (["--save", "/nosuch/file.json"], 3, "/nosuch/file.json cannot be written"),
    ],
)
def test_words_that_cannot_be(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *words]) == code
    assert told in capsys.readouterr().err


def test_a_recipe_without_a_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.yaml").write_text("name: own\nconda: [libzlib]\n")
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "own.yaml"]) == 3
    error = capsys.readouterr().err.splitlines()
    assert error == ["error: own has neither an environment nor a lock", "hint: envbuild lock own"]
