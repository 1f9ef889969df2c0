"""`envbuild slice` as it is typed, on cards that NVML's simulator plays."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration import tracing
from nvmlsim.simulator import place

from envbuild.cli.main import main
from envbuild.host.gpus import read_nvml
from envbuild.host.readings import Value

Run = Callable[..., tuple[int, str, str]]

_ALL = os.environ.get("ENVBUILD_KILLS") == "all"
_FIRST = 0 if _ALL else int(time.time() // 86400) % 10
_STEP = 1 if _ALL else 20
"""Where a run is killed: at all of its calls, or at some, others each day."""


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        code = main(["slice", *map(str, words)])
        seen = capfd.readouterr()
        return code, seen.out, seen.err

    return call


def _json(run: Run, *words: object) -> dict[str, Any]:
    _, out, _ = run(*words, "--json")
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_plan_as_a_picture(run: Run) -> None:
    code, out, err = run("plan", "h100-share", "--gpu", "h100")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:5] == [
        "card 0  H100 80GB SXM5, 80G: MPS, memory limited, multiprocessors a ceiling",
        f"  [{'a' * 32}{'b' * 6}{'·' * 26}]",
        "  a h100-share.finetune     40G     80% SM  PCIe 12G/s",
        "  b h100-share.serve         8G     30% SM  PCIe 3G/s",
        "  together 48G of 80G, 110% ceilings",
    ]
    assert [line[:12] for line in lines[5:]] == ["note: under ", "note: no ker"]


def test_a_plan_of_instances_as_a_picture_and_as_json(run: Run) -> None:
    words = ["plan", "--gpu", "a30", "--wish", "x,memory=50%,isolation=mig"]
    words += ["--wish", "y,memory=6G,isolation=mig"]
    assert run(*words)[1].splitlines() == [
        "card 0  A30, 24G: MIG, each part reserved",
        f"  [{'a' * 32}{'b' * 16}{'·' * 16}]",
        "  a x     12G     50% SM  2g.12gb in slices 0-1",
        "  b y      6G     25% SM  1g.6gb in slice 2",
    ]
    parts = {part["job"]: part for part in _json(run, *words)["cards"][0]["parts"]}
    assert (parts["x"]["profile"], parts["x"]["size"], parts["x"]["sm_is"]) == (
        "2g.12gb",
        2,
        "reserved",
    )
    assert (parts["y"]["profile"], parts["y"]["memory_mib"]) == ("1g.6gb", 6144)


def test_what_cannot_be_is_an_answer_of_no(run: Run) -> None:
    words = ["plan", "--gpu", "h100", "--wish", "a,memory=60G", "--wish", "b,memory=40G"]
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: b: there is no room for 40G beside a",
        "hint: the nearest that can be for b: 20G",
    ]
    assert _json(run, *words)["refusal"] == {
        "job": "b",
        "why": "there is no room for 40G beside a",
        "nearest": "20G",
        "certain": True,
    }


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        ("memory=8G", "has no name"),
        ("a,memory=8X", "memory: expected a size"),
        ("a,sm=0%", "sm_share: expected a share"),
        ("a,isolation=vgpu", "isolation: "),
        ("a,weight=3", "weight: "),
    ],
)
def test_wishes_that_are_none(run: Run, wish: str, what: str) -> None:
    code, _, err = run("plan", "--gpu", "h100", "--wish", wish)
    assert code == 2
    assert what in err


def test_names_that_nobody_knows(run: Run) -> None:
    assert run("plan", "--gpu", "h10", "--wish", "a")[0] == 2
    assert run("plan", "nowhere")[0] == 3
    assert run("plan", "--gpu", "h100", "--wish", "a", "--wish", "a")[0] == 2
    assert run("plan", "--gpu", "h100")[0] == 3
    assert "no service of cpu-arm" in run("plan", "cpu-arm")[2]


def test_a_plan_for_the_cards_of_this_host(run: Run, tmp_path: Path) -> None:
    place(tmp_path, "h100x8-mig")
    words = ["plan", "--driver-root", tmp_path, "--wish", "a,memory=8G,isolation=mig"]
    found = _json(run, *words, "--wish", "b,memory=8G", "--wish", "c,cards=4")
    parts = {
        part["job"]: (card["index"], part) for card in found["cards"] for part in card["parts"]
    }
    # Card 0 is full of others' instances, card 1 has one in slice 0, card 2 is in use.
    assert (parts["a"][0], parts["a"][1]["start"]) == (1, 1)
    assert parts["b"][0] not in {0, 1, 2, 4}
    assert parts["c"][0] == 4
    assert found["cards"][2]["closed"] == "in use by process 5150, 5151, 5152"


def test_a_host_without_a_driver(run: Run, tmp_path: Path) -> None:
    code, _, err = run("plan", "--driver-root", tmp_path, "--wish", "a,memory=8G")
    assert code == 7
    assert "NVML does not answer" in err
    code, _, err = run("plan", "h100-share", "--driver-root", tmp_path)
    assert code == 0
    assert err == "no card here: a plan for the first that h100-share is for\n"


_TWO = ["--wish", "a,memory=40G,isolation=mig", "--wish", "b,memory=20G,isolation=mig"]


def _made(run: Run, host: list[object]) -> dict[str, tuple[str, int, bool]]:
    found = _json(run, "show", *host)["instances"]
    return {one["job"]: (one["profile"], one["start"], one["there"]) for one in found}


@pytest.fixture
def host(tmp_path: Path) -> list[object]:
    place(tmp_path, "h100x8-idle", "system.gpus = 2")
    return ["--driver-root", tmp_path, "--root", tmp_path]


def test_instances_are_made_once_and_again_after_a_boot(
    run: Run, host: list[object], tmp_path: Path
) -> None:
    assert run("apply", *_TWO, *host) == (
        0,
        "a: its instance is made\nb: its instance is made\n",
        "",
    )
    there = {"a": ("3g.40gb", 4, True), "b": ("1g.20gb", 0, True)}
    assert _made(run, host) == there
    before = (tmp_path / "run/envbuild/instances.json").read_text()
    made = {one["job"]: one for one in json.loads(before)}
    assert made["a"]["uuid"].startswith("MIG-")
    assert (made["a"]["minor"], made["a"]["address"]) == (0, "0000:1b:00.0")
    nothing = (0, "nothing to do: every instance is as it shall be\n", "")
    assert run("apply", *_TWO, *host) == nothing
    assert run("apply", "--again", *host) == nothing
    (tmp_path / "usr/lib64/nvmlsim.state").unlink()  # a boot: instances and MIG mode are gone
    assert {one[2] for one in _made(run, host).values()} == {False}
    assert run("show", *host)[0] == 1
    assert run("apply", "--again", *host)[1].count("is made") == 2
    assert _made(run, host) == there
    assert (tmp_path / "run/envbuild/instances.json").read_text() == before


def test_what_is_no_longer_wanted_goes_and_what_stays_is_not_moved(
    run: Run, host: list[object]
) -> None:
    run("apply", *_TWO, *host)
    words = ["--wish", "b,memory=20G,isolation=mig", "--wish", "c,memory=10G,isolation=mig"]
    assert run("apply", *words, *host)[1] == (
        "a: its instance is removed\nc: its instance is made\n"
    )
    assert _made(run, host)["b"] == ("1g.20gb", 0, True)
    assert set(_made(run, host)) == {"b", "c"}


def test_release_sets_back_what_was_changed(run: Run, host: list[object], tmp_path: Path) -> None:
    run("apply", *_TWO, *host)
    assert run("release", "other", *host)[1].startswith("nothing to do")
    assert run("release", "-", *host)[1] == (
        "a: its instance is removed\nb: its instance is removed\n"
    )
    assert run("show", *host)[1] == "no instance was made, and no unit holds a card\n"
    assert [gpu.mig.current for gpu in read_nvml(tmp_path).gpus] == [Value(value=False)] * 2


def test_others_instances_and_cards_in_use_are_not_touched(run: Run, tmp_path: Path) -> None:
    place(tmp_path, "h100x8-mig", "system.gpus = 3")
    host = ["--driver-root", tmp_path, "--root", tmp_path]
    before = [gpu.mig for gpu in read_nvml(tmp_path).gpus]
    words = ["--wish", "a,memory=20G,isolation=mig"]
    assert run("apply", *words, *host)[0] == 0
    assert _json(run, "show", *host)["instances"][0]["card"].endswith("1")
    assert run("apply", "--wish", "b,memory=80G,isolation=mig", *host)[0] == 1
    assert run("release", "-", *host)[0] == 0
    assert [gpu.mig for gpu in read_nvml(tmp_path).gpus] == before


def test_an_instance_in_use_stays(run: Run, host: list[object], tmp_path: Path) -> None:
    run("apply", *_TWO, *host)
    (device,) = (
        one
        for one in json.loads((tmp_path / "run/envbuild/instances.json").read_text())
        if one["job"] == "a"
    )
    state = tmp_path / "usr/lib64/nvmlsim.state"
    with state.open("a") as file:
        file.write(f"gpu.0.compute.0 = 4711 1048576 {device['gpu_instance']} 0\n")
    before = state.read_bytes()
    code, _, err = run("release", "-", *host)
    assert code == 1
    assert "the instance of a on card 0 stays; in use by process 4711" in err
    assert state.read_bytes() == before


def test_another_layout_in_the_place_is_an_error(
    run: Run, host: list[object], tmp_path: Path
) -> None:
    run("apply", *_TWO, *host)
    state = tmp_path / "usr/lib64/nvmlsim.state"
    state.write_text("gpu.0.mig.current = 1\ngpu.0.instance.5 = 0 0 8\n")
    code, _, err = run("apply", "--again", *host)
    assert code == 1
    assert "instance 5, which is not of the ledger, lies where" in err
    assert "gpu.0.instance.5 = -" not in state.read_text()


@pytest.mark.skipif(tracing.missing() is not None, reason=f"{tracing.missing()}")
def test_killed_anywhere_the_next_run_finishes(
    run: Run, host: list[object], tmp_path: Path
) -> None:
    argv = [sys.executable, "-I", "-m", "envbuild", "slice", "apply", *_TWO, *map(str, host)]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    state = tmp_path / "usr/lib64/nvmlsim.state"
    calls = len(tracing.run(argv, root=tmp_path, env=env).calls)
    for at in range(_FIRST, calls, _STEP):
        for path in (state, tmp_path / "var/lib/envbuild-shares/ledger.json"):
            path.unlink(missing_ok=True)
        ended = tracing.run(argv, root=tmp_path, env=env, at=at, how="group")
        if ended.signalled_at is None:  # folders that were there already
            break
        assert run("apply", *_TWO, *host)[0] == 0
        assert set(_made(run, host).values()) == {("3g.40gb", 4, True), ("1g.20gb", 0, True)}
        instances = read_nvml(tmp_path).gpus[0].mig.instances
        assert isinstance(instances, Value)
        assert len(instances.value) == 2
        assert run("release", "-", *host)[0] == 0
        assert [gpu.mig.current for gpu in read_nvml(tmp_path).gpus] == [Value(value=False)] * 2


def test_one_command_as_a_transient_unit(run: Run) -> None:
    words = ["--mem", "8G", "--sm", "30%", "--pcie", "3G", "--as", "trainer", "-n"]
    code, out, _ = run("run", *words, "--", "python", "serve.py", "--x", "100%")
    assert code == 0
    argv = shlex.split(out)
    assert argv[0] == "systemd-run"
    assert argv[argv.index("--") + 1 :] == ["python", "serve.py", "--x", "100%"]
    unit = f"envbuild-run-{os.getpid()}.service"
    server = "envbuild-run-trainer._mps-any.service"
    assert {f"--unit={unit}", "--uid=trainer", "--slice=envbuild.slice"} <= set(argv)
    assert {f"BindsTo={server}", f"After={server}", "DevicePolicy=closed"} <= set(argv)
    assert "Wants=envbuild-gpu-pcie.service" in argv
    assert "--setenv=CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30" in argv
    (taken,) = (word for word in argv if word.startswith("ExecStartPre="))
    assert f"cards.sh {sys.prefix}/bin/python {unit} " in taken
    assert "--memory 8G --sm " in taken
    assert "%%" not in taken


def test_one_command_with_an_instance_or_a_whole_card(run: Run) -> None:
    argv = shlex.split(run("run", "--mem", "50%", "--isolation", "mig", "-n", "--", "x")[1])
    assert "Requires=envbuild-gpu-shares.service" in argv
    assert not [word for word in argv if word.startswith("BindsTo=")]
    argv = shlex.split(run("run", "--card", "1", "-n", "--", "x")[1])
    (taken,) = (word for word in argv if word.startswith("ExecStartPre="))
    assert taken.endswith("--mode whole --affinity auto --count 1 --card 1")


def test_one_command_that_cannot_be(run: Run) -> None:
    assert run("run", "--mem", "8X", "-n", "--", "x")[0] == 3
    if not Path("/run/systemd/system").is_dir():
        code, _, err = run("run", "--mem", "8G", "--", "x")
        assert code == 7
        assert "needs a running systemd" in err
