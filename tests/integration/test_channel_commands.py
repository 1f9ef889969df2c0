"""`envbuild channel`: what each command does, prints and exits with."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuild.channel import archive, host, local
from envbuild.channel.archive import Member
from envbuild.channel.host import Wish
from envbuild.cli.main import main
from envbuild.errors import HostError

INDEX = {
    "name": "thing",
    "version": "1.0",
    "build": "0",
    "build_number": 0,
    "depends": [],
    "subdir": "noarch",
}

Call = Callable[..., int]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return what runs `envbuild channel` with a store of the test's own."""
    monkeypatch.delenv("ENVBUILD_PYTHON", raising=False)
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))

    def run(*words: str | Path) -> int:
        return main(["channel", *(str(word) for word in words)])

    return run


def make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "thing-1.0-0.conda"
    archive.write(path, [Member(path="share/thing", content=b"x")], index=INDEX, info={})
    return path


def test_an_added_python_is_listed_and_taken(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("add-python") == 0
    packed = Path(capsys.readouterr().out.strip())
    assert packed.is_file()
    assert call("add-python", sys.executable, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["archive"]) == (1, str(packed))
    assert told["python"] == ".".join(str(part) for part in sys.version_info[:3])

    assert call("list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["packages"]
    assert (listed["channel"], listed["name"]) == ("host", "python")
    assert listed["made_of"] == told["path"]
    assert call("list") == 0
    assert packed.name.split("-")[2].removesuffix(".conda") in capsys.readouterr().out

    wish = Wish(channels=tmp_path / "store/channels")
    found = host.choose("", wish)
    assert found.archive == packed
    assert host.digest(found) == told["digest"]
    record, where = host.pack(found, tmp_path / "other")
    assert where == packed
    assert record.sha256 == archive.digests(packed).sha256
    packed.write_bytes(b"damaged")
    with pytest.raises(HostError, match="is not the package"):
        host.pack(found, tmp_path / "other")


def test_a_python_that_does_not_fit(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("add-python", "/bin/true") == 7
    told = capsys.readouterr().err
    assert "/bin/true: it answers like no Python" in told
    assert "hint:" in told


def test_archives_are_added(call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list") == 0
    assert "empty" in capsys.readouterr().err
    assert call("add", make(tmp_path)) == 0
    place = tmp_path / "store/channels/local/noarch"
    assert capsys.readouterr().out.strip() == str(place / "thing-1.0-0.conda")
    assert json.loads((place / "repodata.json").read_text())["packages.conda"]
    assert call("add", make(tmp_path), "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["added"]) == 1
    assert call("list") == 0
    assert "thing" in capsys.readouterr().out


def test_a_bad_archive_is_named(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad-1.0-0.conda"
    bad.write_bytes(b"no")
    assert call("add", bad) == 3
    assert str(bad) in capsys.readouterr().err
    assert call("add", tmp_path / "no.conda") == 2


def test_a_folder_is_indexed(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "channel/noarch")
    assert call("index", tmp_path / "channel") == 0
    written = Path(capsys.readouterr().out.strip())
    assert written == tmp_path / "channel/noarch/repodata.json"
    before = written.read_bytes()
    assert call("index", tmp_path / "channel", "--json") == 0
    assert json.loads(capsys.readouterr().out)["written"] == [str(written)]
    assert written.read_bytes() == before
    assert call("index", tmp_path / "no") == 2


SHARED = Path(__file__).parents[3] / "shared" / "packages"


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/packages is not there")
def test_real_packages_of_others() -> None:
    """Both archives of one build of zlib are broken, and two archives have no list of files."""
    from envbuild.channel import inspect
    from envbuild.errors import InputError

    refused = set()
    for path in sorted(SHARED.glob("*/*")):
        if path.name.endswith(inspect.SUFFIXES):
            try:
                inspect.check(path)
            except InputError:
                refused.add(path.name)
    assert refused == {
        "symlink-test-1.0.0-0.conda",
        "zip64-test-1.0.0-0.conda",
        "zlib-1.2.11-h7b6447c_3.conda",
        "zlib-1.2.11-h7b6447c_3.tar.bz2",
    }
    assert local.held(SHARED) == ()
