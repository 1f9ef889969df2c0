"""Settings as a user has them: files, variables, other tools' files; and a lock through each."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.channel_server import SNAPSHOT, ChannelServer, serve
from integration.index_server import serving
from integration.locking import SMALL, Locker, envbuild, wheels

_LOGIN = "bob:s3cret"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    """A project whose channels want a login, and a home without any setting."""
    index = wheels()
    with serve(SNAPSHOT) as channels, serving(main=index) as server:
        channels.login = _LOGIN
        found = Locker(root=tmp_path, channels=channels, server=server, index=index)
        home = tmp_path / "home"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
        for name in ("XDG_CONFIG_HOME", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_CONFIG_FILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.chdir(tmp_path)
        found.write(SMALL)
        yield found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _lock(at: Locker) -> dict[str, bytes]:
    before = len(at.channels.log)
    assert envbuild("lock", "small", "--exclude-newer", "2026-11-01") == 0
    assert len(at.channels.log) > before
    found = at.files("small")
    for name in found:
        (at.root / "lockfiles/small" / name).unlink()
    for text in found.values():
        assert b"s3cret" not in text
    return found


def _ours(at: Locker, channels: ChannelServer) -> None:
    text = f"""[mirrors]
"*" = "{channels.with_login(_LOGIN)}"
[index]
default = "{at.server.url("main")}"
"""
    _write(at.root / "home/.config/envbuild/config.toml", text)


def _condas(at: Locker, channels: ChannelServer) -> None:
    _write(at.root / "home/.condarc", f"channel_alias: {channels.url}\n")
    host = channels.url.partition("://")[2].partition(":")[0]
    logins = {host: {"BasicHTTP": {"username": "bob", "password": "s3cret"}}}
    _write(at.root / "home/.rattler/credentials.json", json.dumps(logins))
    uv = f'[[index]]\nurl = "{at.server.url("main")}"\ndefault = true\n'
    _write(at.root / "home/.config/uv/uv.toml", uv)


def test_a_lock_is_the_same_wherever_the_settings_stand(
    at: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    _ours(at, at.channels)
    first = _lock(at)
    (at.root / "home/.config/envbuild/config.toml").unlink()
    (at.root / "store").rename(at.root / "old-store")
    _condas(at, at.channels)
    assert _lock(at) == first
    assert envbuild("config", "-q") == 0
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
    assert f"{at.root}/home/.condarc:1 (conda)" in said.out
    assert f"{at.root}/home/.rattler/credentials.json (rattler)" in said.out


def test_no_config_reads_none(at: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    _ours(at, at.channels)
    _condas(at, at.channels)
    assert envbuild("config", "--json", "--no-config") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == []
    origins = {row["key"]: row["from"] for row in told["settings"]}
    assert origins["store"] == "ENVBUILD_STORE"
    assert origins["index.default"] == "default"
    assert not any(key.startswith("mirrors.") for key in origins)


def test_option_variable_file(
    at: Locker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = at.root / "own.toml"
    file.write_text('# a site\nstore = "st"\ncolor = "always"\n')
    words = ["config", "get", "store", "--json", "--config-file", str(file)]

    def told(*more: str) -> tuple[str, str, int | None]:
        assert envbuild(*words, *more) == 0
        row = json.loads(capsys.readouterr().out)["setting"]
        return row["value"], row["from"], row["line"]

    assert told("--store", "/o") == ("/o", "--store", None)
    assert told() == (str(at.root / "store"), "ENVBUILD_STORE", None)
    monkeypatch.delenv("ENVBUILD_STORE")
    assert told() == (str(at.root / "st"), str(file), 2)
    assert envbuild("list", "--config-file", str(file)) == 0
    assert str(at.root / "st") in capsys.readouterr().err
    assert envbuild("config", "get", "netrc", "--no-config") == 0
    assert envbuild("config", "get", "proxy.all", "--no-config") == 1
    assert envbuild("config", "get", "stroe") == 2
    assert "'store'" in capsys.readouterr().err


def test_a_wrong_file_stops_every_command_but_help(
    at: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    path = at.root / "home/.config/envbuild/config.toml"
    _write(path, "\nstroe = 1\n")
    for words in (["list"], ["config"], ["create", "small"], ["gc", "-n"]):
        assert envbuild(*words) == 3, words
        error = capsys.readouterr().err
        assert f"{path}:2:1: stroe: there is no such setting; did you mean store?" in error
    assert envbuild("run", "small", "--", "true") == 125
    assert envbuild("list", "--help") == 0
    assert envbuild("list", "--no-config") == 0
    assert envbuild("list", "--no-config", "--config-file", "x") == 2
    assert envbuild("list", "--config-file", "/nowhere") == 3


def test_self_check_asks_what_is_set_when_it_is_told_to(
    at: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    host = at.channels.with_login(_LOGIN)
    text = f"""[mirrors]
conda-forge = "{host}/conda-forge"
gone = "{host}/gone"
[index]
default = "{at.server.url("main")}"
"""
    _write(at.root / "home/.config/envbuild/config.toml", text)
    assert envbuild("self", "check", "--json") == 0
    assert json.loads(capsys.readouterr().out)["network"] is None
    assert at.channels.log == []
    assert envbuild("self", "check", "--json", "--network") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["network"][f"{at.channels.url}/conda-forge"] == ""
    assert told["network"][at.server.url("main")] == ""
    (found,) = told["findings"]
    assert (found["code"], found["where"]) == ("network-unreachable", f"{at.channels.url}/gone")
    assert envbuild("self", "check", "--network") == 1
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
