"""Writing conda archives: the same bytes for the same content, and what is in them."""

import bz2
import hashlib
import io
import json
import os
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
import zstandard

from envbuild.channel import archive, inspect
from envbuild.channel.archive import Member

INDEX = {
    "name": "thing",
    "version": "1.0",
    "build": "0",
    "build_number": 0,
    "depends": [],
    "subdir": "linux-64",
}
MEMBERS = (
    Member(path="bin/thing", content=b"#!/prefix/bin/python\n", mode=0o755, placeholder="/prefix"),
    Member(path="lib/link", content=b"thing.txt", link=True),
    Member(path="lib/thing.txt", content=b"thing"),
)


def tar_of(path: Path, part: str) -> tarfile.TarFile:
    if path.suffix == ".bz2":
        return tarfile.open(fileobj=io.BytesIO(bz2.decompress(path.read_bytes())))
    with zipfile.ZipFile(path) as whole:
        name = next(name for name in whole.namelist() if name.startswith(f"{part}-"))
        data = zstandard.ZstdDecompressor().decompressobj().decompress(whole.read(name))
    return tarfile.open(fileobj=io.BytesIO(data))


@pytest.mark.parametrize("name", ["thing-1.0-0.conda", "thing-1.0-0.tar.bz2"])
def test_same_bytes_whatever_clock_and_umask(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = archive.write(tmp_path / name, MEMBERS, index=INDEX, info={"about.json": "{}"})
    content = (tmp_path / name).read_bytes()
    before = os.umask(0o077)
    try:
        monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
        second = archive.write(tmp_path / name, MEMBERS, index=INDEX, info={"about.json": "{}"})
    finally:
        os.umask(before)
    assert first == second
    assert (tmp_path / name).read_bytes() == content
    assert first.sha256 == hashlib.sha256(content).hexdigest()
    assert first.md5 == hashlib.md5(content, usedforsecurity=False).hexdigest()
    assert first.size == len(content)


@pytest.mark.parametrize("name", ["thing-1.0-0.conda", "thing-1.0-0.tar.bz2"])
def test_what_is_in_an_archive(tmp_path: Path, name: str) -> None:
    archive.write(tmp_path / name, MEMBERS, index=INDEX, info={"about.json": "{}"})

    with tar_of(tmp_path / name, "pkg") as tar:
        found = {member.name: member for member in tar if not member.name.startswith("info/")}
    assert list(found) == [member.path for member in MEMBERS]
    assert found["bin/thing"].mode == 0o755
    assert found["lib/thing.txt"].mode == 0o644
    assert found["lib/link"].linkname == "thing.txt"
    assert {member.uid for member in found.values()} == {0}
    with tar_of(tmp_path / name, "info") as tar:
        paths = json.loads(_text(tar, "info/paths.json"))["paths"]
        assert _text(tar, "info/files").split() == [member.path for member in MEMBERS]
        assert _text(tar, "info/about.json") == "{}"
    assert paths[0] == {
        "_path": "bin/thing",
        "path_type": "hardlink",
        "sha256": hashlib.sha256(MEMBERS[0].content).hexdigest(),
        "size_in_bytes": 21,
        "file_mode": "text",
        "prefix_placeholder": "/prefix",
    }
    assert paths[1] == {"_path": "lib/link", "path_type": "softlink"}
    assert inspect.check(tmp_path / name) == INDEX


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        archive.write(tmp_path / "no" / "thing-1.0-0.conda", (), index=INDEX, info={})


def _text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(name)
    assert file is not None
    return file.read().decode()
