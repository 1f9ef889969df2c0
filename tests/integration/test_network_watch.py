"""What ends an engine whose transfers do not go on, and what does not."""

import fcntl
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envbuild.tools.network_watch import SILENT, SLOW, NetworkWatch

CONNECTED = "import fcntl, socket, sys, time; s = socket.create_connection(('127.0.0.1', {port})); "


def judge(does: str, *, silence: bool = True, send: bytes = b"") -> str | None:
    """Let a program connect and do something, and return what the watch says in the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = CONNECTED.format(port=server.getsockname()[1]) + does
        process = subprocess.Popen([sys.executable, "-c", code])
        try:
            peer, _ = server.accept()
            time.sleep(0.3)
            watch = NetworkWatch(1, silence=silence)
            said = watch.look(process.pid)
            for _ in range(4):
                assert said is None
                if send:
                    peer.send(send)
                time.sleep(watch.interval_s)
                said = watch.look(process.pid)
            return said
        finally:
            process.kill()
            process.wait()
            peer.close()


@pytest.mark.parametrize(("silence", "said"), [(True, SILENT), (False, None)])
def test_silence_counts_where_the_engine_would_wait_for_ever(
    *, silence: bool, said: str | None
) -> None:
    assert judge("s.recv(1)", silence=silence) == said


@pytest.mark.parametrize(("send", "said"), [(b"x", SLOW), (b"x" * 10_000, None)])
def test_a_trickle_counts_for_every_engine(send: bytes, said: str | None) -> None:
    assert judge("[s.recv(100000) for _ in range(99)]", silence=False, send=send) == said


def test_a_program_that_computes_is_let_alone() -> None:
    assert judge("exec('while True: pass')") is None


def test_a_program_that_waits_for_a_lock_is_let_alone(tmp_path: Path) -> None:
    held = tmp_path / "lock"
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert judge(f"fcntl.flock(open({str(held)!r}, 'w'), fcntl.LOCK_EX)") is None


def test_a_program_without_connections_is_let_alone() -> None:
    assert judge("s.close(); time.sleep(60)") is None


def test_a_program_that_has_ended_is_let_alone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert NetworkWatch(1, silence=True).look(process.pid) is None
