"""`envbuild slice` as it is typed, on cards that NVML's simulator plays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvmlsim.simulator import place

from envbuild.cli.main import main

Run = Callable[..., tuple[int, str, str]]

_ONE = "system.gpus = 1"


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
