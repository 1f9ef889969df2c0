"""Which file counts, and how variables, files and other tools' settings come together."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from envbuild.config.keys import Setting, Value
from envbuild.config.origins import effective
from envbuild.config.settings import index_addresses, load, own_files, with_files
from envbuild.errors import InputError, UsageProblem


def _rows(**values: Value) -> list[Setting]:
    names = {key.replace("__", ".").replace("_", "-"): value for key, value in values.items()}
    return [Setting(key=key, value=value, source="/f") for key, value in names.items()]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_users_file_comes_before_the_systems(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert own_files({}, home, root=tmp_path) == []
    system = _write(tmp_path / "etc/envbuild/config.toml", 'keep = 1\nrecipes = ["/s"]\n')
    own = _write(home / ".config/envbuild/config.toml", 'keep = 2\nrecipes = ["/u"]\n')
    xdg = _write(tmp_path / "x/envbuild/config.toml", "keep = 3\n")
    assert own_files({}, home, root=tmp_path) == [own, system]
    assert own_files({"XDG_CONFIG_HOME": str(tmp_path / "x")}, home, root=tmp_path) == [xdg, system]
    assert own_files({"XDG_CONFIG_HOME": "relative"}, home, root=tmp_path) == [own, system]
    assert own_files({"ENVBUILD_CONFIG_FILE": str(xdg)}, home, root=tmp_path) == [xdg]
    assert own_files({"ENVBUILD_CONFIG_FILE": "/dev/null"}, home, root=tmp_path) == []
    with pytest.raises(InputError, match="no such configuration file"):
        own_files({"ENVBUILD_CONFIG_FILE": "/nowhere"}, home, root=tmp_path)
    found = load([own, system], home=home)
    assert with_files({}, found.rows) == {"ENVBUILD_KEEP": "2"}
    assert found.paths("recipes") == ("/u", "/s")


@pytest.mark.parametrize(
    ("environ", "rows", "told"),
    [
        ({"ENVBUILD_KEEP": "1"}, _rows(keep=2), {}),
        ({"ENVBUILD_KEEP": ""}, _rows(keep=2), {"ENVBUILD_KEEP": "2"}),
        (
            {},
            _rows(offline=True, compile=False),
            {"ENVBUILD_OFFLINE": "1", "ENVBUILD_COMPILE": "0"},
        ),
        ({"HTTPS_PROXY": "http://e"}, _rows(proxy__https="http://f"), {}),
        ({}, _rows(proxy__bypass="a,b"), {"no_proxy": "a,b"}),
        ({"REQUESTS_CA_BUNDLE": "/e"}, _rows(certificates="/f"), {}),
        ({"NO_COLOR": "1"}, _rows(color="always"), {}),
        ({}, _rows(recipes=("/a",)), {}),
        ({}, _rows(lock_timeout=1.5), {"ENVBUILD_LOCK_TIMEOUT": "1.5"}),
    ],
)
def test_variables_win(
    environ: Mapping[str, str], rows: list[Setting], told: Mapping[str, str]
) -> None:
    assert with_files(environ, rows) == {**environ, **told}


def test_mirrors_and_indexes_come_together_name_by_name() -> None:
    variable = "ENVBUILD_CHANNEL_MIRRORS"
    rows = [
        *_rows(mirrors__a=("http://f/a", "http://g/a"), mirrors__b=("http://f/b",)),
        *_rows(mirrors__a=("http://s/a",), mirrors__c=("http://s/c",)),
        *_rows(index__corp="http://f/corp", index__default="http://d"),
    ]
    found = with_files({variable: "b=http://e/b"}, rows)
    assert found[variable].split() == [
        "c=http://s/c",
        "a=http://f/a",
        "a=http://g/a",
        "b=http://e/b",
    ]
    assert index_addresses(found) == {"corp": "http://f/corp"}
    assert found["ENVBUILD_DEFAULT_INDEX"] == "http://d"
    assert index_addresses({}) == {}


def test_an_index_that_is_none() -> None:
    with pytest.raises(UsageProblem, match="ENVBUILD_INDEXES"):
        index_addresses({"ENVBUILD_INDEXES": "corp"})


def test_every_setting_has_an_origin() -> None:
    files = [
        Setting(key="keep", value=5, source="/u", line=3),
        Setting(key="recipes", value=("/u/r",), source="/u", line=4),
        Setting(key="keep", value=6, source="/s", line=1),
        Setting(key="mirrors.a", value=("http://a",), source="/c", line=2, tool="conda"),
    ]
    environ = {
        "ENVBUILD_RECIPES": "/v:/w",
        "NO_COLOR": "1",
        "ENVBUILD_CHANNEL_MIRRORS": "b=http://x b=http://y",
    }
    found = {row.key: row for row in effective({"store": "/o"}, environ, files)}
    assert {
        key: (row.value, row.origin) for key, row in found.items() if row.source != "default"
    } == {
        "store": ("/o", "--store"),
        "keep": (5, "/u:3"),
        "recipes": (("/v", "/w", "/u/r"), "ENVBUILD_RECIPES"),
        "color": ("never", "NO_COLOR"),
        "mirrors.a": (("http://a",), "/c:2 (conda)"),
        "mirrors.b": (("http://x", "http://y"), "ENVBUILD_CHANNEL_MIRRORS"),
    }
