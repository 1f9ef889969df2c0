"""Which manager is reached, from what a host has."""

import os
from pathlib import Path

import pytest

from envbuild.errors import HostError
from envbuild.tools import systemd


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that systemd runs; this user's folder is not there yet."""
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)
    monkeypatch.setattr(systemd, "RUNTIME", tmp_path / "user")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path / f"user/{os.geteuid()}"


def test_the_users_manager_is_found_by_their_number(runtime: Path) -> None:
    """As after sudo -u: there is no XDG_RUNTIME_DIR, and the bus is there."""
    runtime.mkdir(parents=True)
    (runtime / "bus").touch()
    found = systemd.connect("user").environment
    assert found["XDG_RUNTIME_DIR"] == f"{runtime}"
    assert found["DBUS_SESSION_BUS_ADDRESS"] == f"unix:path={runtime}/bus"


def test_without_it_lingering_is_named(runtime: Path) -> None:
    with pytest.raises(HostError) as refused:
        systemd.connect("user")
    assert f"there is no {runtime}/bus" in refused.value.message
    assert refused.value.hint == (
        f"let it run without a login: loginctl enable-linger {os.geteuid()}"
    )


def test_a_host_that_systemd_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder decides, whether systemctl is installed or not."""
    monkeypatch.setattr(systemd, "BOOTED", tmp_path / "none")
    scopes: tuple[systemd.Scope, ...] = ("system", "user")
    for scope in scopes:
        with pytest.raises(HostError, match="systemd does not run this machine"):
            systemd.connect(scope)
