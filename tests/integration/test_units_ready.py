"""The script that waits until a service answers, as systemd starts it."""

import socket
import subprocess
import sys
from pathlib import Path

from envbuild.store import ready


def _start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", ready.__file__, *words])


def test_it_waits_for_a_port() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        waiting = _start("port", f"{port}")
        try:
            assert not ready.is_open(port)
            assert waiting.poll() is None
            listening.listen()
            assert waiting.wait(timeout=60) == 0
        finally:
            waiting.kill()


def test_it_waits_for_a_command(tmp_path: Path) -> None:
    flag = tmp_path / "ready"
    waiting = _start("command", "/usr/bin/test", "-e", f"{flag}")
    try:
        assert not ready.succeeds(["/usr/bin/test", "-e", f"{flag}"])
        assert waiting.poll() is None
        flag.touch()
        assert waiting.wait(timeout=60) == 0
    finally:
        waiting.kill()


def test_a_command_that_is_not_there_is_an_error() -> None:
    assert _start("command", "/nowhere/x").wait(timeout=60) == 1


def test_it_ends_with_the_service() -> None:
    service = subprocess.Popen(["/usr/bin/sleep", "600"])
    words = [sys.executable, "-I", ready.__file__, "command", "/usr/bin/false"]
    waiting = subprocess.Popen(words, env={"MAINPID": f"{service.pid}"}, stderr=subprocess.PIPE)
    assert waiting.poll() is None
    service.kill()
    service.wait()
    _, told = waiting.communicate(timeout=60)
    assert (waiting.returncode, told) == (1, b"the service ended before it was ready\n")
