"""Archives of others: what is refused before it gets into a channel, and how it is named."""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from envbuild.channel import inspect
from envbuild.errors import InputError

INDEX = {"name": "thing", "version": "1.0", "build": "0", "build_number": 0, "subdir": "linux-64"}
NAME = "thing-1.0-0"


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:  # noqa: ANN401
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def tar_bytes(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]  # by name
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def paths_json(*entries: tuple[str, str]) -> tuple[tarfile.TarInfo, bytes]:
    paths = [{"_path": path, "path_type": kind} for path, kind in entries]
    return member("info/paths.json", json.dumps({"paths": paths}).encode())


def write(
    folder: Path,
    *package: tuple[tarfile.TarInfo, bytes],
    index: Mapping[str, Any] | None = INDEX,
    paths: tuple[tarfile.TarInfo, bytes] | None = None,
    inside: str = "",
) -> Path:
    """Write a `.conda` as others might."""
    info = [] if index is None else [member("info/index.json", json.dumps(index).encode())]
    info.append(paths or paths_json())
    compress = zstandard.ZstdCompressor().compress
    path = folder / f"{NAME}.conda"
    with zipfile.ZipFile(path, "w") as whole:
        whole.writestr(f"{inside}metadata.json", '{"conda_pkg_format_version": 2}')
        whole.writestr(f"{inside}pkg-{NAME}.tar.zst", compress(tar_bytes(*package)))
        whole.writestr(f"{inside}info-{NAME}.tar.zst", compress(tar_bytes(*info)))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        inspect.check(path)
    assert caught.value.source == str(path)
    assert caught.value.message.startswith(str(path))
    return caught.value.message


def test_a_good_archive(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        member("lib/thing", b"x"),
        member("lib/other", type=tarfile.SYMTYPE, linkname="../share/x"),
        member("share", type=tarfile.DIRTYPE),
        paths=paths_json(("lib/thing", "hardlink"), ("lib/other", "softlink")),
    )
    assert inspect.check(path)["name"] == "thing"
    assert inspect.index_of(path)["build"] == "0"


@pytest.mark.parametrize(
    ("package", "told"),
    [
        (member("../x", b""), "../x would be written outside of the prefix"),
        (member("/etc/x", b""), "/etc/x would be written outside of the prefix"),
        (member("a/../../x", b""), "would be written outside"),
        (member("x", type=tarfile.SYMTYPE, linkname="../../etc"), "a link to ../../etc, outside"),
        (member("x", type=tarfile.SYMTYPE, linkname="/etc"), "a link to /etc, outside"),
        (member("x", type=tarfile.SYMTYPE, linkname=""), "x is a link to nothing"),
        (member("x", type=tarfile.FIFOTYPE), "x is neither file, link nor folder"),
        (member("x", type=tarfile.CHRTYPE), "x is neither file, link nor folder"),
    ],
)
def test_members_that_would_leave_the_prefix(
    tmp_path: Path, package: tuple[tarfile.TarInfo, bytes], told: str
) -> None:
    assert told in refusal(write(tmp_path, package))


def test_a_file_through_a_link(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        member("lib", type=tarfile.SYMTYPE, linkname="share"),
        member("lib/deep/x", b"x"),
    )
    assert "lib/deep/x would be written through lib" in refusal(path)


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (paths_json(("lib/no", "hardlink")), "names lib/no, which is not there"),
        (paths_json(("lib/x", "softlink")), "lib/x is a file, but its list of files says link"),
        (paths_json(("lib/x", "strange")), "info/paths.json is damaged"),
        (member("info/paths.json", b"["), "info/paths.json is no JSON"),
        (member("info/other", b""), "neither info/paths.json nor info/files"),
    ],
)
def test_lists_of_files_that_are_wrong(
    tmp_path: Path, paths: tuple[tarfile.TarInfo, bytes], told: str
) -> None:
    assert told in refusal(write(tmp_path, member("lib/x", b"x"), paths=paths))


def test_an_old_list_of_files_is_enough(tmp_path: Path) -> None:
    listed = member("info/files", b"lib/x\n")
    assert inspect.check(write(tmp_path, member("lib/x", b"x"), paths=listed)) == INDEX


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (None, "it has no info/index.json"),
        ({**INDEX, "name": "other"}, "it should be called other-1.0-0"),
        ({**INDEX, "name": "../x"}, "is no package"),
        ({**INDEX, "subdir": "../x"}, "is no package"),
        ({**INDEX, "build_number": "0"}, "has no build_number"),
        ({**INDEX, "version": 1}, "has no version"),
        ({**INDEX, "depends": "x"}, "depends is no list of texts"),
        ({**INDEX, "subdir": None, "platform": "linux"}, "has no subdir"),
    ],
)
def test_indexes_that_are_wrong(tmp_path: Path, index: dict[str, Any] | None, told: str) -> None:
    assert told in refusal(write(tmp_path, index=index))


def test_members_in_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path, inside="thing/")
    assert "its members must lie at its root" in refusal(path)


def test_no_subdir_and_no_platform_means_noarch(tmp_path: Path) -> None:
    index = {key: value for key, value in INDEX.items() if key != "subdir"}
    assert inspect.check(write(tmp_path, index=index))["subdir"] == "noarch"


@pytest.mark.parametrize("name", [f"{NAME}.conda", f"{NAME}.tar.bz2", f"{NAME}.zip"])
def test_what_is_no_archive(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"not an archive")
    refusal(path)
    with pytest.raises(InputError):
        inspect.index_of(path)


def test_a_zip_without_parts(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.conda"
    with zipfile.ZipFile(path, "w") as whole:
        whole.writestr("metadata.json", "{}")
    assert "it must hold one info-*.tar.zst, and holds 0" in refusal(path)


def test_a_damaged_part(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.conda"
    with zipfile.ZipFile(path, "w") as whole:
        whole.writestr(f"info-{NAME}.tar.zst", b"no zstd")
        whole.writestr(f"pkg-{NAME}.tar.zst", b"no zstd")
    assert "cannot be read as a conda archive" in refusal(path)


def test_tar_bz2(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.tar.bz2"
    index = member("info/index.json", json.dumps(INDEX).encode())
    files = member("info/files", b"lib/x\n")
    path.write_bytes(tar_bytes(index, files, member("lib/x", b"x"), mode="w:bz2"))
    assert inspect.check(path) == INDEX
    assert inspect.index_of(path) == INDEX
