import base64
import hashlib
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from envbuild.errors import ToolFailed
from envbuild.native.inspect import inspect
from envbuild.rebuild import archive

_WHEEL = "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"


def _wheel(folder: Path, *, backwards: bool = False, version: str = "1.0") -> Path:
    folder.mkdir()
    members = {
        "demo/a,b.py": "x = 1\n",
        "demo/run.sh": "#!/bin/sh\n",
        f"demo-{version}.data/scripts/go": "#!python\n",
        f"demo-{version}.dist-info/METADATA": f"Name: demo\nVersion: {version}\n\nVersion: 9\n",
        f"demo-{version}.dist-info/WHEEL": _WHEEL,
        f"demo-{version}.dist-info/RECORD": "stale\n",
    }
    path = folder / f"demo-{version}-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name in sorted(members, reverse=backwards):
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 1 + backwards))
            info.external_attr = (0o100755 if name.endswith(".sh") else 0o100600) << 16
            made.writestr(info, members[name])
    return path


def test_the_same_members_give_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for backwards in (False, True):
        wheel = _wheel(tmp_path / f"{backwards}", backwards=backwards)
        out = tmp_path / f"out{backwards}"
        out.mkdir()
        made.append(archive.rewrite(wheel, out, local="gcc12", epoch=1_700_000_000))
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[0].name == "demo-1.0+gcc12-cp311-cp311-linux_x86_64.whl"


def test_the_local_version_is_everywhere(tmp_path: Path) -> None:
    new = archive.rewrite(_wheel(tmp_path / "in"), tmp_path, local="gcc12", epoch=0)
    with zipfile.ZipFile(new) as opened:
        names = opened.namelist()
        metadata = opened.read("demo-1.0+gcc12.dist-info/METADATA").decode()
        record = opened.read("demo-1.0+gcc12.dist-info/RECORD").decode()
        times = {info.date_time for info in opened.infolist()}
        modes = {info.filename: info.external_attr >> 16 for info in opened.infolist()}
    assert metadata == "Name: demo\nVersion: 1.0+gcc12\n\nVersion: 9\n"
    assert names[-1] == "demo-1.0+gcc12.dist-info/RECORD"
    assert "demo-1.0+gcc12.data/scripts/go" in names
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    assert f'"demo/a,b.py",sha256={digest},6\n' in record
    assert "demo-1.0+gcc12.dist-info/RECORD,,\n" in record
    assert times == {(1980, 1, 1, 0, 0, 0)}
    assert (modes["demo/run.sh"], modes["demo/a,b.py"]) == (0o100755, 0o100644)
    package = inspect(new).package
    assert package is not None
    assert package.record == ()


def test_a_local_version_that_is_there_stays_before_ours(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "in", version="1.0+cu124")
    new = archive.rewrite(wheel, tmp_path, local="gcc12", epoch=0)
    assert new.name.startswith("demo-1.0+cu124.gcc12-cp311")


def test_a_build_tag_is_in_the_name_and_in_the_wheel(tmp_path: Path) -> None:
    new = archive.rewrite(_wheel(tmp_path / "in"), tmp_path, local="gcc12", epoch=0, build=2)
    assert new.name == "demo-1.0+gcc12-2-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(new) as opened:
        assert opened.read("demo-1.0+gcc12.dist-info/WHEEL").decode() == f"{_WHEEL}Build: 2\n"


def test_a_large_wheel_is_never_in_memory(tmp_path: Path) -> None:
    content = os.urandom(16 << 20)
    size = len(content)
    wheel = _wheel(tmp_path / "in")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_STORED) as made:
        made.writestr("demo/large.so", content)
    digest = hashlib.sha256(content).digest()
    del content
    tracemalloc.start()
    try:
        new = archive.rewrite(wheel, tmp_path, local="gcc12", epoch=0)
        assert "demo/large.so" not in archive.differences(wheel, new)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 2
    with zipfile.ZipFile(new) as opened:
        assert hashlib.sha256(opened.read("demo/large.so")).digest() == digest
        record = opened.read("demo-1.0+gcc12.dist-info/RECORD").decode()
    text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert f"demo/large.so,sha256={text},{size}\n" in record


def test_a_wheel_with_a_damaged_member_leaves_nothing(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "in")
    wheel.write_bytes(wheel.read_bytes().replace(b"x = 1", b"x = 2"))
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ToolFailed, match="what was built is no wheel"):
        archive.rewrite(wheel, out, local="gcc12", epoch=0)
    assert not list(out.iterdir())


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(b"no")
    with pytest.raises(ToolFailed, match="what was built is no wheel"):
        archive.rewrite(path, tmp_path / "out", local="gcc12", epoch=0)


def test_the_label_names_compiler_code_and_an_old_abi() -> None:
    assert archive.label("gcc", "12.2.0", (), None) == "gcc12"
    assert archive.label("gcc", "12.2.0", ("9.0+PTX", "8.9"), "old") == "gcc12.sm89.sm90.oldabi"
