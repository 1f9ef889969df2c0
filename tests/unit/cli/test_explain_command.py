"""`envbuild explain` as it is typed."""

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from envbuild.cli.main import commands, main
from envbuild.pipeline import pages


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["explain", *words]) == 0
    return " ".join(capsys.readouterr().out.split())


def told_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    assert main(["explain", *words, "--json"]) == 0
    found: dict[str, str] = json.loads(capsys.readouterr().out)
    return found


def test_a_package_of_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "pytorch", "2.4.0")
    assert "torch 2.4.0 cu124 of PyTorch's index is built with CUDA 12.4" in text
    assert "source: METADATA and torch/version.py of the wheel" in text
    assert told(capsys, "pytorch 2.4.0") == text
    assert "see: envbuild triangle list --framework 'pytorch==2.4.0'" in text


def test_what_people_say(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "cudnn 9", "cuda 12.4")
    assert "must never be mixed. False: it depends on what the framework was built for" in text
    assert "source: " in text


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("conv2d_benchmark", "False: there is no such attribute"),
        ("torch.backends.cudnn.conv2d_benchmark", "False: there is no such attribute"),
        ("suppress_errors", "True: it is off by default"),
        ("/proc/sys/dev/nvidia", "False: there is no such path"),
    ],
)
def test_what_people_write(words: str, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict in told(capsys, words)


@pytest.mark.parametrize("code", pages.codes(pages.FINDINGS))
def test_every_finding(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = told_json(capsys, code)
    assert (found["name"], found["kind"]) == (code, "finding")
    for heading in ("Why:\n", "What to do:\n", f"[{code}]\n"):
        assert heading in found["text"]
    assert "```" not in found["text"]
    assert "](" not in found["text"]


@pytest.mark.parametrize("words", ["6", "exit 6", "exit code 6"])
def test_an_exit_code(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the disk or the quota is full" in told(capsys, words).lower()


@pytest.mark.parametrize(
    "name", ["h100", "xid 79", "exit 70", "no-gpu-code", "ptx", "driver 550", "jax-cudnn-9"]
)
def test_names_are_listed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in told(capsys)
    assert {row["name"] for row in told_json(capsys)["names"]} >= {name}  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("h1000", "did you mean 'h100'?"),
        ("pytroch 2.4", "did you mean 'pytorch'?"),
        ("pytorch 9.9", "did you mean 'pytorch 2.15.0'?"),
        ("torch 2.4.7", "did you mean 'torch 2.4.1'?"),
        ("cuda 12.7", "did you mean 'cuda 12.6'?"),
        ("driver 999", "did you mean 'driver 620'?"),
        ("driver 551", "did you mean 'driver 5"),
        ("no-gpu-cod", "did you mean 'no-gpu-code'?"),
        ("☃", "see: envbuild explain"),
    ],
)
def test_what_nobody_knows(words: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words.split()]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error == f"error: nothing is known about {words!r}"
    assert near in hint


def test_a_site_s_row_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics.toml").write_text(
        '[sources]\nwiki = "our wiki"\n[[topic]]\nid = "queue"\ntitle = "Our queue"\n'
        'text = "It takes a night."\nsources = ["wiki"]\nread = "2026-12-01"\nconfidence = "low"\n'
    )
    monkeypatch.setenv("ENVBUILD_FACTS", str(tmp_path))
    text = told(capsys, "queue")
    assert "Our queue. It takes a night. source: our wiki; the site's own facts" in text
    assert "confidence low" in text


def test_words_are_completed() -> None:
    shell = ShellComplete(commands, {}, "envbuild", "_ENVBUILD_COMPLETE")

    def offered(*words: str, begun: str) -> set[str]:
        return {item.value for item in shell.get_completions(list(words), begun)}

    assert offered("explain", begun="h1") == {"h100", "h100-pcie", "h100-nvl"}
    assert "no-gpu-code" in offered("explain", begun="no-")
    assert offered("explain", "pytorch", begun="h1") == set()
