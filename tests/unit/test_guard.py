"""The guard of the unit tests really guards."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def _connect() -> None:
    with socket.socket() as made:
        made.connect(("127.0.0.1", 9))


def _spawn() -> None:
    subprocess.run([sys.executable, "-c", ""], check=False)


def _write() -> None:
    Path("~root/envbuild-guard").expanduser().write_text("")


@pytest.mark.parametrize("reach", [_connect, _spawn])
def test_reaching_outside_fails(reach: Callable[[], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test reached"):
        reach()


@pytest.mark.skipif(os.geteuid() != 0, reason="the home directory tried is root's")
def test_writing_at_home_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="home directory"):
        _write()


def test_home_is_nowhere() -> None:
    assert not Path.home().is_dir()
