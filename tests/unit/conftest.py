"""The guard of the unit tests: no network, no program, nothing in the home directory."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_FORBIDDEN = {
    "os.exec": "a program",
    "os.posix_spawn": "a program",
    "os.system": "a program",
    "socket.connect": "the network",
    "socket.getaddrinfo": "the network",
    "subprocess.Popen": "a program",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HOME = os.path.expanduser("~")  # noqa: PTH111
_OURS = tuple({str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix})


class _Guard:
    """Fails the test that reaches outside; audit hooks stay for ever, so it can be off."""

    def __init__(self) -> None:
        self.on = False
        sys.addaudithook(self.look)

    def look(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event in _FORBIDDEN:
            pytest.fail(f"a unit test reached {_FORBIDDEN[event]}: {event} {arguments[:2]}")
        if event == "open" and _writes_at_home(*arguments):
            pytest.fail(f"a unit test wrote into the home directory: {arguments[0]}")


def _writes_at_home(path: object, _: object, flags: object) -> bool:
    if not isinstance(path, str | os.PathLike) or not isinstance(flags, int):
        return False
    if not flags & _WRITES:
        return False
    text = os.path.abspath(os.fspath(path))  # noqa: PTH100
    return text.startswith(f"{_HOME}/") and not text.startswith(_OURS)


_GUARD = _Guard()


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let nothing of the user in, and the test not out."""
    for name in list(os.environ):
        if name.startswith(("ENVBUILD_", "XDG_", "UV_", "PIP_", "CONDA_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/dev/null")
    _GUARD.on = True
    yield
    _GUARD.on = False
