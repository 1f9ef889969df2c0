"""The fabric manager that runs is asked for its version: a program of that name, really started."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envbuild.host import daemons, processes
from envbuild.host.machine import Daemon
from envbuild.host.readings import NoAnswer, Value
from envbuild.host.tree import Tree

_PROGRAM = """\
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "--version") == 0)
        return printf("\\n\\n\\tFabric Manager version is : %s\\n\\n", VERSION) < 0;
    pause();
    return 0;
}
"""
_NAME = "nv-fabricmanager"


def _built(folder: Path, version: str, program: Callable[[str], str]) -> Path:
    """Build a program that answers as nv-fabricmanager 535 does."""
    folder.mkdir()
    words = [program("cc"), "-x", "c", "-", f'-DVERSION="{version}"', "-o", f"{folder / _NAME}"]
    subprocess.run(words, input=_PROGRAM, text=True, check=True)
    return folder / _NAME


@contextlib.contextmanager
def _running(path: Path) -> Iterator[int]:
    if _seen().running == Value(value=True):
        pytest.skip("a fabric manager runs here")
    process = subprocess.Popen([path])
    try:
        while _seen().running != Value(value=True):
            assert process.poll() is None
            time.sleep(0.02)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _seen() -> Daemon:
    found = daemons.read(Tree(), Tree(), processes.read(Tree()))
    return next(one for one in found if one.name == _NAME)


def test_the_version_of_the_running_program(tmp_path: Path, program: Callable[[str], str]) -> None:
    old = _built(tmp_path / "old", "550.54.14", program)
    new = _built(tmp_path / "new", "550.54.15", program)
    with _running(old):
        assert (_seen().runs, _seen().replaced) == (Value("550.54.14"), Value(value=False))
        new.replace(old)  # an upgrade: what runs is still the old one
        assert (_seen().runs, _seen().replaced) == (Value("550.54.14"), Value(value=True))


@pytest.mark.parametrize("why", ["others may write it", "it has another name"])
def test_a_program_that_is_not_to_be_trusted_is_not_started(
    why: str, tmp_path: Path, program: Callable[[str], str]
) -> None:
    path = _built(tmp_path / "bin", "550.54.14", program)
    if why == "others may write it":
        path.chmod(0o777)
    else:
        path.rename(tmp_path / "other")
        path.symlink_to(tmp_path / "other")
    with _running(path) as number:
        text = f"/proc/{number}/exe is no program that only root can have written"
        assert _seen().runs == NoAnswer(text)
