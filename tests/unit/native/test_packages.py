"""Packages from strangers: their own lists, odd members, archives that no tool makes."""

import base64
import hashlib
import io
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

from envbuild.native import judge, tar
from envbuild.native.inspect import inspect
from envbuild.native.mangled import abi_of
from envbuild.native.tree import Unreadable

WHEEL = "Wheel-Version: 1.0\nTag: py3-none-any\n"


def row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def wheel(
    folder: Path, files: dict[str, bytes], record: str | None = None, tag: str = "py3-none-any"
) -> Path:
    path = folder / f"a-1-{tag}.whl"
    every = {**files, "a-1.dist-info/WHEEL": WHEEL.encode()}
    listed = "".join(row(name, data) for name, data in every.items()) if record is None else record
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in every.items():
            archive.writestr(name, data)
        archive.writestr("a-1.dist-info/RECORD", f"{listed}a-1.dist-info/RECORD,,\n")
    return path


def told(path: Path) -> list[tuple[str, str]]:
    return [(one.code, one.what) for one in judge.findings(inspect(path))]


def test_a_wheel_that_agrees_with_itself(tmp_path: Path) -> None:
    assert told(wheel(tmp_path, {"a/__init__.py": b"x = 1\n"})) == []


def test_what_contradicts_record(tmp_path: Path) -> None:
    own = row("a-1.dist-info/WHEEL", WHEEL.encode())
    record = own + row("a.py", b"x = 1\n") + "b.py,md5=abc,2\n" + row("c.py", b"")
    found = told(wheel(tmp_path, {"a.py": b"x = 2\n", "b.py": b"ok", "d.py": b""}, record))
    assert [code for code, _ in found] == ["record-contradicted"] * 3 + ["record-unlisted"]
    assert "its hash differs" in found[0][1]
    assert "md5" in found[1][1]
    assert "not there" in found[2][1]


def test_a_list_and_its_signatures_need_no_hash(tmp_path: Path) -> None:
    signatures = {f"a-1.dist-info/RECORD.{end}": b"signed" for end in ("jws", "p7s")}
    own = row("a-1.dist-info/WHEEL", WHEEL.encode())
    bare = "".join(f"{name},,\n" for name in signatures)
    for record in (own, own + bare):
        assert told(wheel(tmp_path, signatures, record)) == []
    assert told(wheel(tmp_path, {"a.py": b""}, f"{own}a.py,,\n")) == [
        ("record-contradicted", "RECORD has no hash for it")
    ]


def test_tags_that_differ(tmp_path: Path) -> None:
    ((code, what),) = told(wheel(tmp_path, {}, tag="cp310-abi3-manylinux2014_x86_64"))
    assert code == "wheel-tags-differ"
    assert "py3-none-any" in what


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    assert ("odd-member", "a name that leads out of the package") in told(
        wheel(tmp_path, {name: b"x"})
    )


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"a.py": b"x"})
    with zipfile.ZipFile(path) as archive:
        at = archive.start_dir + 8
    data = bytearray(path.read_bytes())
    data[at] |= 1
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=r"refused: a\.py is encrypted"):
        inspect(path)


def test_links_and_a_name_twice(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"a.py": b""})
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(link, "/etc/passwd")
        archive.writestr("a.py", b"")
    odd = [what for code, what in told(path) if code == "odd-member"]
    assert odd == ["a symbolic link, which a wheel cannot hold", "twice in the archive"]


def _claim(path: Path, *, at: int, size: int) -> None:
    """Change a number of the first row of the central directory."""
    data = bytearray(path.read_bytes())
    row_at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, row_at + at, size)
    path.write_bytes(bytes(data))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"a": b""})
    _claim(path, at=24, size=0xFFFFFFF0)
    with pytest.raises(Unreadable, match="it unpacks to"):
        inspect(path)


def test_a_size_that_lies_is_an_error(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"a": b"x" * 100})
    _claim(path, at=24, size=50)
    with pytest.raises(Unreadable, match="not a whole archive"):
        inspect(path)


def test_members_that_overlap(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"a": b"x", "b": b"y"})
    data = path.read_bytes()
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    changed = bytearray(data)
    struct.pack_into("<I", changed, second + 42, 0)
    path.write_bytes(bytes(changed))
    with pytest.raises(Unreadable, match="overlaps"):
        inspect(path)


def test_a_tar_header_that_claims_gigabytes_of_name() -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 8 << 30
    with pytest.raises(tar.BrokenTar, match="a header of"):
        list(tar.members(io.BytesIO(info.tobuf(tarfile.GNU_FORMAT))))


@pytest.mark.parametrize(
    ("name", "abi"),
    [
        (b"_ZNSs6appendEPKcm", "old"),
        (b"_Z3fooRKSs", "old"),
        (b"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm", "new"),
        (b"_Z3barB5cxx11v", "new"),
        (b"_ZN9addressSs3fooEv", None),
        (b"_ZN4ABSs1xEv", None),
        (b"addressSs", None),
        (b"_Z3fooi", None),
    ],
)
def test_the_string_abi_of_a_name(name: bytes, abi: str | None) -> None:
    assert abi_of(name) == abi
