"""`envbuild triangle` as it is typed."""

import json
import shlex

import pytest

from envbuild.cli.main import main


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "list", "--gpu", "h100", "--framework", "pytorch==2.4.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        *("pytorch", "2.4.0", "12.4", "9.1.0.70", ">=525.60.13", "3.8", "to", "3.12"),
        *("native", "cu124"),
    ]
    assert main(["triangle", "list", "--gpu", "b200", "--framework", "torch 2.4.0"]) == 1
    assert capsys.readouterr().out == ""


def test_what_is_next_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "b200", "--gpu", "9.0", "--framework", "torch 2.4.0", "--driver", "570"]
    assert main(["triangle", "list", *words, "--platform", "linux-aarch64"]) == 1
    _, following = capsys.readouterr().err.splitlines()
    typed = shlex.split(following)
    asked = typed[typed.index("triangle") :]
    assert asked == ["triangle", "why", *words, "--platform", "linux-aarch64"]
    assert main(asked) == 1
    assert capsys.readouterr().out.startswith("does not work:\n")


def test_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "why", "--gpu", "b200", "--framework", "pytorch==2.4.0"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("does not work:\n")
    assert "it has no code for 10.0: it holds sm_50" in told
    assert "source: pytorch/builder release/2.4, manywheel/build_cuda.sh" in told
    assert "the first with code for it: torch 2.7.0, CUDA 12.8" in told
    assert "nearest that work:" in told


def test_why(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "why", "--gpu", "h100", "--driver", "550.54.15", "--cuda", "12.4"]
    assert main([*words, "--framework", "pytorch==2.4.0", "--python", "3.11", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["works"] is True
    assert [(one["version"], one["origin"]) for one in told["sets"]] == [
        ("2.4.0", "cu124"),
        ("2.4.0", "pytorch"),
    ]
    assert told["against"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gpu", "h1000"], "did you mean h100?"),
        (["--gpu", "9.7"], "no card or compute capability '9.7'"),
        (["--driver", "new"], "--driver: 'new' is not a version"),
        (["--framework", "pytroch"], "did you mean pytorch?"),
        (["--framework", "pytorch>>2"], "'>>2' is no version specifier"),
    ],
)
def test_bad_input_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["triangle", "list", *words]) == 2
    assert told in capsys.readouterr().err
