import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuild.errors import InputError
from envbuild.rebuild.sources import Fetched, place
from envbuild.rebuild.unpack import newest, set_times, unpack


def _file(name: str, data: bytes = b"x", mode: int = 0o600) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, 1_600_000_000
    return info


def _link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def _tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x") if member.isreg() else None)
    return path


def test_files_links_and_modes_arrive(tmp_path: Path) -> None:
    archive = _tar(
        tmp_path / "a.tar.gz",
        _file("p/run", mode=0o700),
        _link("p/again", "run"),
        _link("p/hard", "p/run", tarfile.LNKTYPE),
    )
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out/p/run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out/p/again").readlink() == Path("run")
    assert (tmp_path / "out/p/hard").read_bytes() == b"x"
    assert newest(tmp_path / "out") == 1_600_000_000
    set_times(tmp_path / "out", 1_500_000_000)
    assert newest(tmp_path / "out") == 1_500_000_000


@pytest.mark.parametrize(
    "members",
    [
        (_file("../evil"),),
        (_file("/evil"),),
        (_link("p/l", "../../evil"),),
        (_link("p/l", "/etc/passwd"),),
        (_link("p/l", "../evil", tarfile.LNKTYPE),),
        # what the text of a path says and where its links lead differ
        (_link("p/q/up", "../.."), _link("out", "p/q/up/../.."), _file("out/evil")),
        (_link("p/pipe", "", tarfile.FIFOTYPE),),
    ],
)
def test_what_would_lie_elsewhere_is_refused(
    tmp_path: Path, members: tuple[tarfile.TarInfo, ...]
) -> None:
    folder = tmp_path / "deep/er"
    with pytest.raises(InputError, match=r"lies outside|is a device"):
        unpack(_tar(tmp_path / "a.tar.gz", *members), folder)
    assert not list(tmp_path.rglob("evil"))


def _damaged(path: Path) -> None:
    path.write_bytes(b"PK not")


def _linked(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("p/l")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")


@pytest.mark.parametrize(
    ("make", "says"), [(_damaged, "no archive that can be read"), (_linked, "is a link")]
)
def test_a_zip_that_is_none_or_has_links_is_refused(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "a.zip")
    with pytest.raises(InputError, match=says):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_what_cmake_noted_of_another_build_stays_behind(tmp_path: Path) -> None:
    """It names the compiler and the prefix of that build, which a new one would go on with."""
    folder = tmp_path / "sources"
    for path in ("CMakeLists.txt", "build/CMakeCache.txt", "build/CMakeFiles/3.25/a", "build/x"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("CMAKE_CXX_COMPILER:FILEPATH=/other/bin/g++\n")
    fetched = Fetched(uri="file:", kind="tree", digest="0" * 64, path=folder)
    placed = place(fetched, tmp_path / "placed")
    left = sorted(f"{path.relative_to(placed)}" for path in placed.rglob("*") if path.is_file())
    assert left == ["CMakeLists.txt", "build/x"]
    assert (folder / "build/CMakeCache.txt").exists()
