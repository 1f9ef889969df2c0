"""`envbuild facts` as it is typed."""

import json
from pathlib import Path

import pytest

from envbuild.cli.main import main


def test_listing_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["facts", "list", "pytorch", "2.4.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split("  ")[0].removeprefix("pytorch 2.4.0 ") for line in lines[1:]]
    variants = ["pypi", "pypi linux-aarch64", "cu118", "cu121", "cu124"]
    assert named == [*variants, "pytorch *_cuda12.4_cudnn9.1.0_0"]
    assert main(["facts", "list", "--json", "--confidence", "low"]) == 0
    assert {row["confidence"] for row in json.loads(capsys.readouterr().out)["facts"]} <= {"low"}
    assert main(["facts", "list", "voodoo"]) == 1
    assert "no fact has 'voodoo'" in capsys.readouterr().err


def test_showing_one_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["facts", "show", "gpu", "h100"]) == 0
    told = capsys.readouterr().out
    assert "capability: 9.0" in told
    assert "7 x 1g.10gb" in told
    assert "source: NVIDIA MIG User Guide" in told
    assert "read: 2026-12-01, confidence high" in told
    assert main(["facts", "show", "pytorch 2.4.0 cu124", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cudnn"] == "9.1.0.70"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["show", "gpu", "h1000"], 2, "did you mean 'gpu h100'?"),
        (["show", "pytorch", "2.4.0"], 2, "6 facts have 'pytorch 2.4.0' in their names"),
        (["show", "pytorch", "2.4.0"], 2, "all: envbuild facts list pytorch 2.4.0"),
        (["verify", "h1000"], 2, "did you mean 'gpu h100'?"),
        (["verify", "\u2603"], 2, "see: envbuild facts list"),
        (["list", "h1000"], 1, "no fact has 'h1000' in its name; did you mean 'gpu h100'?"),
        (["list", "h1000", "--json"], 1, ""),
        (["list", "--confidence", "sure"], 2, "'sure' is not one of 'high', 'medium', 'low'"),
        (["derive", "torch==2.4"], 2, "did you mean pytorch?"),
        (["derive", "pytorch==new"], 2, "write pytorch==2.9.1"),
    ],
)
def test_what_is_not_known(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts", *words]) == code
    assert told in capsys.readouterr().err


BROKEN = """\
[sources]
wiki = "our wiki"

[[gpu]]
id = "x100"
title = "X100"
capability = "9.0"
sources = ["wiki"]
read = "2026-12-01"
confidence = "hihg"
"""


@pytest.mark.parametrize(
    "words",
    [
        ["facts", "list"],
        ["facts", "show", "gpu h100"],
        ["facts", "verify", "gpu"],
        ["triangle", "list", "--gpu", "h100"],
        ["triangle", "why", "--gpu", "h100"],
        ["triangle", "plot", "--output", "x.svg"],
        ["explain"],
        ["explain", "h100"],
        ["check", "h100-pt24"],
    ],
)
def test_a_broken_file_of_a_site_ends_every_command_that_asks_it(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/gpus.toml").write_text(BROKEN)
    monkeypatch.setenv("ENVBUILD_FACTS", "facts")
    monkeypatch.chdir(tmp_path)
    assert main(words) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "error: facts/gpus.toml:4: confidence: 'hihg' is none of high, medium, low",
        "hint: did you mean 'high'?",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["facts"]


def test_an_error_is_json_where_json_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVBUILD_FACTS", f"{tmp_path}/none")
    assert main(["triangle", "list", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["exit_code"]) == ("FactsError", 3)
    assert "no folder of facts can be read there: No such file" in error["message"]
