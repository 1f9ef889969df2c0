"""The tutorial: every command of it, in its order, and what the page says that it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_END = "\x1e"
_ANYTHING = "…"


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page's `console` blocks, each with the lines shown below it."""
    found: list[tuple[str, list[str]]] = []
    for kind, block in _BLOCK.findall(text):
        assert kind == "console", f"a block of the tutorial that no test runs: {block}"
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def as_pattern(lines: list[str]) -> str:
    """Return a pattern for shown lines: `…` alone is any lines, within a line any text."""
    parts = [
        r"(?:.*\n)*?"
        if line == _ANYTHING
        else ".*".join(re.escape(part) for part in line.split(_ANYTHING)) + r"\n"
        for line in lines
    ]
    return "".join(parts)


def test_what_is_shown_is_compared() -> None:
    ((command, shown),) = steps("```console\n$ list\nNAME …\na.b  …  c\n…\nend\n```\n")
    assert command == "list"
    pattern = as_pattern(shown)
    assert re.fullmatch(pattern, "NAME X\na.b  1  c\nend\n")
    assert re.fullmatch(pattern, "NAME X\na.b  1  c\nmore\nmore\nend\n")
    assert not re.fullmatch(pattern, "NAME X\naxb  1  c\nend\n")
    assert not re.fullmatch(pattern, "NAME X\na.b  1  c\nend\nmore\n")


@pytest.mark.slow
@pytest.mark.network
def test_every_command_of_the_tutorial_does_what_the_page_says(tmp_path: Path) -> None:
    commands = steps(_TUTORIAL.read_text())
    script = "".join(
        f"{command}\nlast=$?; printf '%s{_END}' $last; (exit $last)\n" for command, _ in commands
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ENVBUILD_", "CONDA_", "PYTHON"))
    }
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
    }
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        ["/bin/bash"],
        input=script,
        cwd=tmp_path / "work",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    answers = done.stdout.split(_END)[:-1]
    assert len(answers) == len(commands), done.stdout
    following = [command for command, _ in commands[1:]] + [""]
    for (command, shown), answer, then in zip(commands, answers, following, strict=True):
        found = re.fullmatch(r"(.*?)(\d+)", answer, re.DOTALL)
        assert found is not None
        assert found[2] == "0" or then == "echo $?", f"{command}\n{answer}"
        if shown:
            told = f"$ {command}\n{found[1]}\n  is not as shown:\n" + "\n".join(shown)
            assert re.fullmatch(as_pattern(shown), found[1]), told
