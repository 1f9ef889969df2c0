"""`Here`: options before variables before defaults."""

import os
import pwd
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import pytest

import envbuild
from envbuild.cli.context import Here
from envbuild.errors import HostError, UsageProblem

_PACKAGE = Path(envbuild.__file__).parent


def _here(**environment: str) -> Here:
    return Here({"HOME": "/home/me", **environment})


@pytest.mark.parametrize(
    ("user", "environment", "store"),
    [
        (0, {}, "/var/lib/envbuild"),
        (1000, {}, "/home/me/.local/share/envbuild"),
        (1000, {"XDG_DATA_HOME": "/data"}, "/data/envbuild"),
        (1000, {"XDG_DATA_HOME": "relative"}, "/home/me/.local/share/envbuild"),
        (0, {"XDG_DATA_HOME": "/data"}, "/var/lib/envbuild"),
        (0, {"ENVBUILD_STORE": "/store"}, "/store"),
        (1000, {"ENVBUILD_STORE": ""}, "/home/me/.local/share/envbuild"),
    ],
)
def test_store(
    monkeypatch: pytest.MonkeyPatch, user: int, environment: Mapping[str, str], store: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert _here(**environment).store.root == Path(store)


def test_the_option_wins_and_is_made_absolute() -> None:
    here = _here(ENVBUILD_STORE="/store")
    here.store_option = "mine"
    assert here.store.root == Path.cwd() / "mine"


def test_without_home_it_is_what_the_user_database_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _here().home == Path("/home/me")
    assert Here({}).home == Path(pwd.getpwuid(os.getuid()).pw_dir)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert Here({"HOME": ""}).home == Path("/nonexistent")


def test_folders_in_order() -> None:
    here = _here(ENVBUILD_RECIPES="/a:/b", ENVBUILD_LOCKFILES="/l")
    assert here.recipe_folders == (
        Path("/a"),
        Path("/b"),
        Path("recipes"),
        _PACKAGE / "recipes",
    )
    here.recipes_option = "/o"
    assert here.recipe_folders[:2] == (Path("/o"), Path("/a"))
    assert here.lock_folders == (Path("/l"), Path("lockfiles"), _PACKAGE / "lockfiles")
    assert here.lock_output == Path("/l")
    here.locks_option = "/mine"
    assert here.lock_output == Path("/mine")
    assert _here().lock_output == Path("lockfiles")


def test_the_first_lock_is_taken(tmp_path: Path) -> None:
    here = _here(ENVBUILD_LOCKFILES=f"{tmp_path}/a:{tmp_path}/b")
    assert here.lock_folder("x") is None
    for folder in ("a", "b"):
        (tmp_path / folder / "x").mkdir(parents=True)
    (tmp_path / "b/x/conda-lock.yml").touch()
    assert here.lock_folder("x") == tmp_path / "b/x"
    (tmp_path / "a/x/conda-lock.yml").touch()
    assert here.lock_folder("x") == tmp_path / "a/x"


@pytest.mark.parametrize(
    ("value", "answer"), [("1", True), ("True", True), ("on", True), ("0", False), ("", False)]
)
def test_flags(value: str, *, answer: bool) -> None:
    assert _here(ENVBUILD_OFFLINE=value).offline is answer
    assert _here(ENVBUILD_COMPILE=value).compile_default is answer


def test_a_flag_that_is_neither_is_an_error() -> None:
    with pytest.raises(UsageProblem, match="ENVBUILD_FROZEN is 'maybe'"):
        _ = _here(ENVBUILD_FROZEN="maybe").frozen


def test_locked_and_frozen() -> None:
    assert _here(ENVBUILD_LOCKED="1").locked
    assert _here(ENVBUILD_FROZEN="1").frozen
    with pytest.raises(UsageProblem):
        _ = _here(ENVBUILD_LOCKED="1", ENVBUILD_FROZEN="1").locked
    here = _here(ENVBUILD_LOCKED="1")
    here.frozen_option = True
    assert (here.locked, here.frozen) == (False, True)


@pytest.mark.parametrize(("user", "answer"), [(0, True), (1000, False)])
def test_only_roots_store_compiles_by_default(
    monkeypatch: pytest.MonkeyPatch, user: int, *, answer: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert _here().compile_default is answer


@pytest.mark.parametrize(
    ("option", "environment", "answer"),
    [
        ("auto", {}, None),
        ("auto", {"NO_COLOR": ""}, None),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, None),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(option: str, environment: Mapping[str, str], *, answer: bool | None) -> None:
    here = _here(**environment)
    here.color = option
    assert here.forced_color() is answer


@pytest.mark.parametrize(
    ("machine", "platform"), [("x86_64", "linux-64"), ("aarch64", "linux-aarch64")]
)
def test_platform(monkeypatch: pytest.MonkeyPatch, machine: str, platform: str) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "v", machine)))
    assert _here().platform == platform
    assert _here().host == "h"


def test_other_machines_have_no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "v", "riscv64")))
    with pytest.raises(HostError, match="riscv64"):
        _ = _here().platform


def test_user(monkeypatch: pytest.MonkeyPatch) -> None:
    name = _here().user
    assert _here(SUDO_USER="ann").user == f"{name} (ann)"
    assert _here(SUDO_USER=name).user == name
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert _here().user == str(2**31 - 7)


def test_now_is_utc() -> None:
    assert _here().now().tzinfo is UTC


def test_python() -> None:
    assert _here().python is None
    assert _here(ENVBUILD_PYTHON="/usr/bin/python3").python == "/usr/bin/python3"
