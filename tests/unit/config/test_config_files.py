"""Our configuration files: what they may say, and where complaints point."""

from pathlib import Path

import pytest

from envbuild.config.files import read
from envbuild.config.keys import KEYS, Key, Kind, Value
from envbuild.errors import InputError

HOME = Path("/home/me")


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def _values(folder: Path, text: str) -> dict[str, Value]:
    return {row.key: row.value for row in read(_file(folder, text), home=HOME)}


def _complaint(folder: Path, text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(_file(folder, text), home=HOME)
    return caught.value


def test_every_kind(tmp_path: Path) -> None:
    text = (
        """
store = "~/st"
cOLOR = "x"
""".replace('cOLOR = "x"', 'color = "never"')
        + """
recipes = ["/a", "b"]
lockfiles = "~"
compile = false
keep = 0
lock-timeout = 1.5
proxy.bypass = "localhost"
[index]
default = "https://u:p@host/simple"
corp = "http://h/s"
[mirrors]
conda-forge = "http://m/cf"
"nvidia/label/cuda-12.4.0" = ["http://a/n", "http://b/n"]
"*" = "http://m"
"""
    )
    assert _values(tmp_path, text) == {
        "store": "/home/me/st",
        "color": "never",
        "recipes": ("/a", f"{tmp_path}/b"),
        "lockfiles": ("/home/me",),
        "compile": False,
        "keep": 0,
        "lock-timeout": 1.5,
        "proxy.bypass": "localhost",
        "index.default": "https://u:p@host/simple",
        "index.corp": "http://h/s",
        "mirrors.conda-forge": ("http://m/cf",),
        "mirrors.nvidia/label/cuda-12.4.0": ("http://a/n", "http://b/n"),
        "mirrors.*": ("http://m",),
    }
    assert _values(tmp_path, "") == {}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
@pytest.mark.parametrize("value", ["{ a = 1 }", "[1]", "-1", "nan", "true", '""', "1979-05-27"])
def test_what_a_setting_cannot_be(tmp_path: Path, key: Key, value: str) -> None:
    name = key.name.replace("*", "x")
    if (key.kind, value) == (Kind.SWITCH, "true"):
        assert _values(tmp_path, f"{name} = {value}") == {name: True}
        return
    error = _complaint(tmp_path, f"# first\n{name} = {value}\n")
    assert error.exit_code == 3
    assert f"{tmp_path}/config.toml:2:" in str(error)
    assert name in str(error)


def test_all_problems_at_once_each_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    text = 'recipes = [\n  "/a",\n]\nstroe = "/x"\nkeep = "3"\n\n[proxy]\nhtps = "http://p"\n'
    error = _complaint(tmp_path, text)
    path = f"{tmp_path}/config.toml"
    assert error.problems == (
        f"{path}:4:1: stroe: there is no such setting; did you mean store?",
        f"{path}:5:1: keep: is to be a whole number from 0 on",
        f"{path}:8:1: proxy.htps: there is no such setting; did you mean proxy.https?",
    )


def test_a_number_that_is_too_small(tmp_path: Path) -> None:
    assert "a whole number from 1 on" in str(_complaint(tmp_path, "http-timeout = 0\n"))


def test_a_table_that_is_none_of_ours(tmp_path: Path) -> None:
    assert "config.toml:2:" in str(_complaint(tmp_path, "\n[pypi]\nurl = 1\n"))
    assert "is a table" in str(_complaint(tmp_path, 'mirrors = "http://m"\n'))


@pytest.mark.parametrize(
    ("text", "place"), [("a = 1\nstore =\n", ":2:8: not TOML"), ("keep = 1\nkeep = 2\n", ":2:")]
)
def test_what_is_no_toml(tmp_path: Path, text: str, place: str) -> None:
    assert f"{tmp_path}/config.toml{place}" in _complaint(tmp_path, text).message


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'store = "\xff"')
    with pytest.raises(InputError, match="not UTF-8 text: byte 0xff"):
        read(path, home=HOME)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="cannot be read") as caught:
        read(path, home=HOME)
    assert "--no-config" in str(caught.value.hint)


def test_lines(tmp_path: Path) -> None:
    text = (
        '# one\nstore = "/s"\n[mirrors]\n# two\nconda-forge = [\n  "http://a",\n]\nx = "http://x"\n'
    )
    rows = read(_file(tmp_path, text), home=HOME, lines=True)
    assert [(row.key, row.line) for row in rows] == [
        ("store", 2),
        ("mirrors.conda-forge", 5),
        ("mirrors.x", 8),
    ]
    assert rows[0].origin == f"{tmp_path}/config.toml:2"
