"""A folder of archives as a channel, and the store's own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from envbuild.channel import archive, local
from envbuild.channel.archive import Member
from envbuild.errors import InputError, StoreError


def make(folder: Path, name: str, content: bytes = b"x", **index: Any) -> Path:  # noqa: ANN401
    """Write a package and return its archive."""
    kind = str(index.pop("kind", "conda"))
    fields = {
        "name": name,
        "version": "1.0",
        "build": "0",
        "build_number": 0,
        "depends": ["zlib >=1"],
        "subdir": "linux-64",
        "timestamp": 1_700_000_000_000,
        **index,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-0.{kind}"
    member = Member(path=f"share/{name}", content=content)
    archive.write(path, [member], index=fields, info={})
    return path


def test_index_says_what_the_archives_say(tmp_path: Path) -> None:
    new = make(tmp_path / "linux-64", "new")
    make(tmp_path / "linux-64", "old", kind="tar.bz2")
    make(tmp_path / "noarch", "any", subdir="noarch", noarch="generic")
    (tmp_path / "linux-aarch64").mkdir()
    (tmp_path / "notes").mkdir()

    written = local.index(tmp_path)

    assert [path.parent.name for path in written] == ["linux-64", "linux-aarch64", "noarch"]
    data = json.loads((tmp_path / "linux-64/repodata.json").read_text())
    assert data["info"] == {"subdir": "linux-64"}
    assert list(data["packages"]) == ["old-1.0-0.tar.bz2"]
    record = data["packages.conda"]["new-1.0-0.conda"]
    digests = archive.digests(new)
    assert record["depends"] == ["zlib >=1"]
    assert (record["sha256"], record["md5"]) == (digests.sha256, digests.md5)
    assert record["size"] == new.stat().st_size
    empty = json.loads((tmp_path / "linux-aarch64/repodata.json").read_text())
    assert not empty["packages"]
    assert not empty["packages.conda"]


def test_index_is_the_same_in_another_place_and_order(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make(tmp_path / "one/linux-64", name)
    for name in ("c", "b", "a"):
        make(tmp_path / "two/linux-64", name)
    local.index(tmp_path / "one")
    local.index(tmp_path / "two")
    first = (tmp_path / "one/linux-64/repodata.json").read_bytes()
    assert first == (tmp_path / "two/linux-64/repodata.json").read_bytes()
    local.index(tmp_path / "one")
    assert (tmp_path / "one/linux-64/repodata.json").read_bytes() == first


def test_noarch_is_always_there(tmp_path: Path) -> None:
    local.index(tmp_path)
    assert json.loads((tmp_path / "noarch/repodata.json").read_text())["packages"] == {}


def test_index_names_every_bad_archive_and_writes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "linux-64", "good")
    for name in ("bad", "worse"):
        (tmp_path / f"linux-64/{name}-1.0-0.conda").write_bytes(b"no")
    with pytest.raises(InputError) as caught:
        local.index(tmp_path)
    assert "bad-1.0-0.conda" in caught.value.details
    assert "worse-1.0-0.conda" in caught.value.details
    assert not list(tmp_path.rglob("repodata.json"))


def test_index_refuses_an_archive_of_another_subdir(tmp_path: Path) -> None:
    make(tmp_path / "noarch", "thing")
    with pytest.raises(InputError, match="it belongs to linux-64"):
        local.index(tmp_path)


def test_index_of_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        local.index(tmp_path / "no")


def test_add_copies_and_indexes(tmp_path: Path) -> None:
    one = make(tmp_path / "from", "one")
    two = make(tmp_path / "from", "two", subdir="noarch")
    channels = tmp_path / "channels"

    taken = local.add([one, two], channels)

    assert taken == (channels / "local/linux-64" / one.name, channels / "local/noarch" / two.name)
    assert taken[0].read_bytes() == one.read_bytes()
    assert one.name in (channels / "local/linux-64/repodata.json").read_text()
    assert local.add([one], channels) == taken[:1]
    assert [(held.channel, held.subdir, held.name) for held in local.held(channels)] == [
        ("local", "linux-64", "one"),
        ("local", "noarch", "two"),
    ]


def test_add_takes_all_or_nothing(tmp_path: Path) -> None:
    good = make(tmp_path / "from", "good")
    bad = tmp_path / "from/bad-1.0-0.conda"
    bad.write_bytes(b"no")
    with pytest.raises(InputError, match="bad-1"):
        local.add([good, bad], tmp_path / "channels")
    assert local.held(tmp_path / "channels") == ()


def test_add_never_replaces_other_content(tmp_path: Path) -> None:
    one = make(tmp_path / "from", "one")
    local.add([one], tmp_path / "channels")
    other = make(tmp_path / "other", "one", content=b"other")
    with pytest.raises(StoreError, match="with other content"):
        local.add([other], tmp_path / "channels")


def test_a_damaged_archive_in_the_store_is_named(tmp_path: Path) -> None:
    (taken,) = local.add([make(tmp_path / "from", "one")], tmp_path / "channels")
    taken.write_bytes(b"no")
    with pytest.raises(InputError, match="one-1"):
        local.held(tmp_path / "channels")


def test_nothing_held(tmp_path: Path) -> None:
    assert local.held(tmp_path / "no") == ()
    shutil.rmtree(tmp_path)
