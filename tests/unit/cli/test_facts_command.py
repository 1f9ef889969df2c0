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
    assert main(["facts", "list", "voodoo"]) == 0
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


def test_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["facts", "show", "gpu", "h1000"]) == 3
    assert "did you mean 'gpu h100'?" in capsys.readouterr().err
    assert main(["facts", "show", "pytorch", "2.4.0"]) == 3
    assert "6 facts have" in capsys.readouterr().err


def test_a_site_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVBUILD_FACTS", f"{tmp_path}")
    (tmp_path / "gpus.toml").write_text("[[gpu]]\nid = 'x'\n")
    assert main(["facts", "list"]) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path}/gpus.toml:1: ")
