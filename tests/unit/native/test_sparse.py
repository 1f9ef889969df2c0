"""ELF files kept without their GPU code: what is read of them is what they hold."""

import io
import zipfile
import zlib
from pathlib import Path

import pytest
from unit.native.test_fatbin import container, entry

from envbuild.native import inflate
from envbuild.native.fatbin import entries
from envbuild.native.sparse import Sparse

CODE = container(entry(80, 0x11, payload=b"x" * 9000), entry(90, 0x11, payload=b"y" * 5001))
DATA = b"\x7fELF" + bytes(100) + CODE + bytes(7) + b"tables" * 50


def kept(data: bytes, step: int) -> tuple[Sparse, io.BytesIO, list[int]]:
    file, again = io.BytesIO(), list[int]()

    def pieces() -> list[bytes]:
        again.append(1)
        return [data]

    sparse = Sparse(file, pieces)
    for at in range(0, len(data), step):
        sparse.write(data[at : at + step])
    sparse.finish()
    return sparse, file, again


@pytest.mark.parametrize("step", [1, 7, 64, 1000, 1 << 20])
def test_headers_and_tables_are_kept_and_gpu_code_is_not(step: int) -> None:
    sparse, file, again = kept(DATA, step)
    assert sparse.seek(0, 2) == len(DATA)
    found = list(entries(sparse, offset=104, size=len(CODE)))  # type: ignore[arg-type]
    assert [str(one.code) for one in found] == ["sm_80", "sm_90"]
    sparse.seek(104 + len(CODE))
    assert sparse.read(1 << 20) == DATA[104 + len(CODE) :]
    assert len(file.getvalue()) == len(DATA) - 14001
    assert not again


def test_what_was_left_out_is_read_once_more_where_it_is_asked_for() -> None:
    sparse, _, again = kept(DATA, 500)
    for at in (0, 200, 5000, 12000):
        sparse.seek(at)
        assert sparse.read(3000) == DATA[at : at + 3000]
    assert again == [1]


def test_a_large_member_is_read_as_zipfile_reads_it(tmp_path: Path) -> None:
    data = bytes(range(256)) * (20 << 10)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", data)
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        info = archive.getinfo("a")
        with inflate.opened(archive, stream, info) as member:
            assert b"".join(iter(lambda: member.read(1 << 20), b"")) == data
        info.CRC ^= 1
        with (
            inflate.opened(archive, stream, info) as member,
            pytest.raises((zipfile.BadZipFile, zlib.error)),
        ):
            list(iter(lambda: member.read(1 << 20), b""))
