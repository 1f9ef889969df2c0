"""The installed command as a process: start-up, pipes, signals, completion in real shells."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_SCRIPT = Path(sys.executable).with_name("envbuild")


def _envbuild(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [_SCRIPT, *words],
        env={"PATH": os.environ["PATH"], "HOME": "/dev/null", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _imported(*words: str) -> set[str]:
    """Return the modules that a command line imports."""
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", _SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stderr
    return set(re.findall(r"\| +([\w.]+)$", seen, re.MULTILINE))


def test_version_imports_click_and_little_else() -> None:
    loaded = _imported("--version")
    assert "click" in loaded
    assert {name for name in loaded if name.startswith("envbuild")} == {
        "envbuild",
        "envbuild.cli",
        "envbuild.cli.complete",
        "envbuild.cli.context",
        "envbuild.cli.main",
        "envbuild.cli.options",
        "envbuild.cli.signals",
        "envbuild.cli.table",
        "envbuild.tools",
        "envbuild.tools.interrupts",
    }
    assert not loaded & {"importlib.metadata", "pydantic", "rattler", "rich", "json", "subprocess"}


def test_settings_are_not_parsed_where_there_is_no_file() -> None:
    loaded = _imported("list", "--store", "/nonexistent")
    assert "envbuild.config.settings" in loaded
    assert not loaded & {"tomllib", "envbuild.config.files", "envbuild.config.foreign"}


def test_module_and_script_are_the_same() -> None:
    module = subprocess.run(
        [sys.executable, "-m", "envbuild", "--help"], capture_output=True, text=True, check=True
    )
    assert module.stdout == _envbuild("--help").stdout


def test_a_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [_SCRIPT, "completion", "bash"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [_SCRIPT, "completion", "bash"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 6
    assert b"No space left on device" in ended.stderr


def test_a_closed_stdout_is_no_crash() -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f"exec {_SCRIPT} --version >&-"], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_ctrl_c_is_130(tmp_path: Path) -> None:
    fifo = tmp_path / "recipe.yaml"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [_SCRIPT, "lock", "--check", fifo],
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path)},
    )
    with fifo.open("wb"):  # once the command has opened it to read, where it waits
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"interrupted\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(shell: str, program: Callable[[str], str]) -> None:
    path = program(shell)
    script = _envbuild("completion", shell).stdout
    assert "_ENVBUILD_COMPLETE" in script
    checked = subprocess.run(
        [path, "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def _complete(words: str, **environment: str) -> list[str]:
    """Return what bash's completion offers for the last word."""
    answer = _envbuild(
        _ENVBUILD_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
        **environment,
    )
    assert answer.stderr == ""
    return [line.partition(",")[2] for line in answer.stdout.splitlines() if line]


def test_commands_and_options_are_completed() -> None:
    assert _complete("envbuild comp") == ["completion"]
    assert _complete("envbuild ro") == ["rollback"]
    assert _complete("envbuild completion ") == ["bash", "zsh", "fish"]
    assert _complete("envbuild completion --no-p") == ["--no-progress"]


def test_names_are_completed(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/trainer.yaml").touch()
    for generation in ("0123456789abcdef", "fedcba9876543210"):
        (tmp_path / "store/envs/served/generations" / generation).mkdir(parents=True)
    places = {
        "ENVBUILD_RECIPES": str(tmp_path / "recipes"),
        "ENVBUILD_STORE": str(tmp_path / "store"),
    }
    assert "trainer" in _complete("envbuild lock ", **places)
    assert "quickstart" in _complete("envbuild lock ", **places)
    assert _complete("envbuild run ser", **places) == ["served"]
    assert _complete("envbuild --store /nowhere run ser", **places) == []
    assert _complete("envbuild create tr", **places) == ["trainer"]
    assert _complete("envbuild switch served f", **places) == ["fedcba9876543210"]


def test_completion_is_quick() -> None:
    loaded = _imported_by_completion()
    assert not loaded & {"pydantic", "ruamel", "rattler", "rich", "requests"}


def _imported_by_completion() -> set[str]:
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", _SCRIPT],
        env={
            "PATH": os.environ["PATH"],
            "_ENVBUILD_COMPLETE": "bash_complete",
            "COMP_WORDS": "envbuild lock q",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    return set(re.findall(r"\| +([\w.]+)$", seen, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "environment", "colored"),
    [
        (["nope"], {}, False),
        (["nope"], {"FORCE_COLOR": "1"}, True),
        (["nope"], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always", "nope"], {"NO_COLOR": "1"}, True),
        (["--color", "never", "nope"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(words: list[str], environment: dict[str, str], *, colored: bool) -> None:
    ended = _envbuild(*words, **environment)
    assert ended.returncode == 2
    assert ("\x1b[" in ended.stderr) is colored
