"""Packages of every odd kind: created, verified, rolled back; or refused before linking."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.creating import NOW, WHO, Creator, damage, order
from integration.host_pythons import run
from integration.packages import Content, File, Made, make_package, program, sparse
from integration.test_create_wheels import SITE, packed

from envbuild.errors import EnvbuildError, FetchError, LockError, Refused, StoreError
from envbuild.packages import CondaPackage
from envbuild.store import history

__all__ = ["packed"]

PLACEHOLDER = "/opt/place_holder" + "_holder" * 30


@pytest.fixture
def creator(tmp_path: Path) -> Creator:
    return Creator(root=tmp_path / "store")


def make(tmp_path: Path, name: str = "odd", version: str = "1.0", **more: Any) -> Made:  # noqa: ANN401
    return make_package(tmp_path / "channel", name, version, **more)


def link(target: str) -> File:
    return File(content=target.encode(), link=True)


def refused(creator: Creator, *packages: Made) -> EnvbuildError:
    """Return why packages are refused; nothing of them was linked."""
    with pytest.raises(EnvbuildError) as caught:
        creator.create(order(packages))
    assert creator.nothing_left()
    return caught.value


def test_a_folder_that_becomes_a_link_and_back(creator: Creator, tmp_path: Path) -> None:
    old = make(tmp_path, content={"xbin/content.txt": File(content=b"old")})
    new = make(
        tmp_path,
        version="2.0",
        content={"bin/content.txt": File(content=b"new"), "xbin": link("bin")},
    )
    first, second = creator.create(order([old])), creator.create(order([new]))
    assert (creator.place.current / "xbin/content.txt").read_bytes() == b"new"
    assert (second.generation.prefix / "xbin").is_symlink()
    history.roll_back(creator.place, None, who=WHO, now=NOW)
    assert (creator.place.current / "xbin/content.txt").read_bytes() == b"old"
    assert damage(first) == damage(second) == []


@pytest.mark.parametrize("kind", ["conda", "tar.bz2"])
def test_sparse_files_and_hard_links_in_an_archive(
    creator: Creator, tmp_path: Path, kind: str
) -> None:
    blob = sparse(9_000_000, (0, b"start"), (5_000_000, b"middle"), (8_999_997, b"end"))
    made = make(
        tmp_path,
        kind=kind,
        content={
            "bin/first": program("#!/bin/sh\n"),
            "bin/second": File(content=b"#!/bin/sh\n", twin="bin/first", mode=0o755),
            "lib/blob": blob,
        },
    )
    assert made.archive.stat().st_size < 100_000
    created = creator.create(order([made]))
    prefix = created.generation.prefix
    assert (prefix / "lib/blob").read_bytes() == blob.content
    assert (prefix / "bin/second").read_text() == "#!/bin/sh\n"
    assert damage(created) == []


def test_an_archive_with_zip64_fields_and_one_without_files(
    creator: Creator, tmp_path: Path
) -> None:
    large = make(
        tmp_path, "large", content=Content(files={"share/x": File(content=b"x")}, zip64=True)
    )
    created = creator.create(order([large, make(tmp_path, "empty")]))
    assert (created.generation.prefix / "share/x").read_bytes() == b"x"
    assert {package.name for package in created.manifest.packages} == {"large", "empty"}
    assert damage(created) == []


def test_a_package_without_a_list_of_files_is_refused(creator: Creator, tmp_path: Path) -> None:
    good = make(tmp_path, "good", content={"share/x": File()})
    bare = make(tmp_path, "bare", content=Content(files={"share/y": File()}, lists=()))
    error = refused(creator, good, bare)
    assert isinstance(error, FetchError)
    assert "bare-1.0-0.conda: it has neither info/paths.json nor info/files" in error.message


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ('"path_type": "softlink"', "share/x: listed as a link, but it is a file"),
        ('"path_type": "directory"', "share/x: listed as a folder, but it is a file"),
        ('"path_type": "hardlink", "x": 1}, {"_path": "share/y"', "share/y: listed as a file, but"),
    ],
)
def test_members_that_contradict_the_list_are_refused(
    creator: Creator, tmp_path: Path, row: str, what: str
) -> None:
    listed = f'{{"paths": [{{"_path": "share/x", {row}}}], "paths_version": 1}}'.encode()
    made = make(
        tmp_path,
        content=Content(files={"share/x": File()}, lists=("files",), info={"paths.json": listed}),
    )
    assert f"odd-1.0-0.conda: {what}" in refused(creator, made).message


def test_a_content_that_is_not_the_listed_one_is_refused(creator: Creator, tmp_path: Path) -> None:
    rows = f'{{"_path": "share/x", "path_type": "hardlink", "sha256": "{"0" * 64}"}}'
    listed = f'{{"paths": [{rows}], "paths_version": 1}}'.encode()
    made = make(
        tmp_path,
        content=Content(files={"share/x": File()}, lists=("files",), info={"paths.json": listed}),
    )
    error = refused(creator, made)
    assert isinstance(error, Refused)
    assert "share/x: its content is not what conda:odd declares [file-differs]" in error.message


@pytest.mark.parametrize("there", [File(content=b"x"), link("bin")], ids=["file", "link"])
def test_a_file_or_link_against_a_folder_is_refused(
    creator: Creator, tmp_path: Path, there: File
) -> None:
    aaa = make(tmp_path, "aaa", content={"lib64": there, "bin/a": File()})
    bbb = make(tmp_path, "bbb", content={"lib64/python/b": File()})
    for packages in ([aaa, bbb], [bbb, aaa]):
        error = refused(creator, *packages)
        assert isinstance(error, Refused)
        assert error.message == (
            "lib64: aaa has a file or link there, bbb has lib64/python/b [file-over-folder]"
        )
    created = creator.create(order([bbb]))
    assert damage(created) == []


def test_a_python_package_without_a_python_is_refused(creator: Creator, tmp_path: Path) -> None:
    pure = make(
        tmp_path,
        "pure",
        subdir="noarch",
        noarch="python",
        content={"site-packages/pure.py": File()},
    )
    error = refused(creator, pure)
    assert isinstance(error, LockError)
    assert error.message == "pure 1.0 is a Python package, and no Python is locked"


def test_folders_of_python_packages_are_compared_where_they_come_to_lie(
    creator: Creator, tmp_path: Path, packed: CondaPackage
) -> None:
    pure = make(
        tmp_path,
        "pure",
        subdir="noarch",
        noarch="python",
        content={"site-packages/pure/x.py": File(), "python-scripts/tool": program("#!/bin/sh\n")},
    )
    other = make(tmp_path, "other", content={f"{SITE}/pure": File()})
    with pytest.raises(Refused, match=rf"{SITE}/pure: other has a file or link there, pure has"):
        creator.create(order([packed, pure, other]))
    assert creator.nothing_left()
    script = make(tmp_path, "script", content={"bin/tool/x": File()})
    with pytest.raises(Refused, match=r"bin/tool: pure has a file or link there, script has"):
        creator.create(order([packed, pure, script]))
    assert creator.nothing_left()


def test_entry_points_of_python_packages_run_also_below_a_space_and_an_umlaut(
    tmp_path: Path, packed: CondaPackage
) -> None:
    pure = make(
        tmp_path,
        "nap",
        subdir="noarch",
        noarch="python",
        content=Content(
            files={
                "site-packages/nap.py": File(
                    content=b"class A:\n    @staticmethod\n    def m():\n        print('called')\n"
                )
            },
            info={
                "link.json": b'{"noarch": {"type": "python", "entry_points":'
                b' ["nap-run = nap:A.m"]}, "package_metadata_version": 1}'
            },
        ),
    )
    ready = make(
        tmp_path, "ready", content={"bin/script": program("#!/home/builder/bin/python3.9\n")}
    )
    for root in (tmp_path / "store", tmp_path / "sp ace/store", tmp_path / "größe/store"):
        created = Creator(root=root).create(
            order([packed, pure, ready], commands=("nap-run", "python -c 'import nap'"))
        )
        prefix = created.generation.prefix
        assert run(prefix / "bin/nap-run") == "called"
        assert stat.S_IMODE((prefix / "bin/nap-run").stat().st_mode) == 0o755
        (finding,) = [one for one in created.manifest.findings if one.where == "bin/script"]
        assert finding.code == "foreign-interpreter"
        assert "/home/builder/bin/python3.9" in finding.what
        assert "conda:ready" in finding.what
        assert damage(created) == []
        (prefix / "bin/nap-run").chmod(0o775)
        assert damage(created) == [("mode-changed", "bin/nap-run")]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Return a folder whose path is short wherever the tests' own are."""
    with tempfile.TemporaryDirectory(prefix="e-") as folder:
        yield Path(folder)


def deep(tmp_path: Path, length: int) -> Path:
    """Return a store whose generations' prefixes have so many bytes."""
    own = len(os.fsencode(Creator(root=tmp_path).place.generation("0" * 16).prefix))
    rest = length - own - 1
    assert rest > 0
    return tmp_path / ("s" * rest)


def test_a_prefix_that_is_too_long_is_refused_with_the_longest_that_fits(tmp_path: Path) -> None:
    room = len(os.fsencode(tmp_path)) + 60
    placeholder = "/" + "p" * (room - 1)
    files = {
        "lib/x.bin": File(
            content=placeholder.encode() + b"/lib\0end", placeholder=placeholder, file_mode="binary"
        ),
        "share/x.txt": File(content=placeholder.encode() + b"/lib\n", placeholder=placeholder),
    }
    made = make(tmp_path, "prefixed", content=files)
    creator = Creator(root=deep(tmp_path, room + 1))
    error = refused(creator, made)
    assert isinstance(error, StoreError)
    assert f"prefixed 1.0: lib/x.bin has room for {room} bytes, the prefix has {room + 1}" in (
        error.message
    )
    longest = len(os.fsencode(creator.root)) - 1
    assert error.hint == f"use a --store whose path has at most {longest} bytes (now {longest + 1})"
    fits = Creator(root=deep(tmp_path, room))
    assert len(os.fsencode(fits.root)) == longest
    created = fits.create(order([made]))
    prefix = os.fsencode(created.generation.prefix)
    assert (created.generation.prefix / "lib/x.bin").read_bytes() == prefix + b"/lib\0end"
    assert damage(created) == []
    text = make(tmp_path, "text", content={"share/x.txt": files["share/x.txt"]})
    assert damage(creator.create(order([text]))) == []


def test_a_shorter_prefix_keeps_the_size_of_a_binary_file(creator: Creator, tmp_path: Path) -> None:
    content = PLACEHOLDER.encode() + b"/lib\0end"
    file = File(content=content, placeholder=PLACEHOLDER, file_mode="binary")
    created = creator.create(order([make(tmp_path, content={"lib/x.bin": file})]))
    prefix = created.generation.prefix
    path = os.fsencode(prefix) + b"/lib"
    moved_up = path + bytes(len(content) - len(path) - len(b"\0end")) + b"\0end"
    assert (prefix / "lib/x.bin").read_bytes() == moved_up
    assert damage(created) == []


@pytest.mark.parametrize("line", [120, 140])
def test_long_first_lines_of_scripts(
    tmp_path: Path, short_folder: Path, line: int, packed: CondaPackage
) -> None:
    made = make(
        tmp_path,
        "tools",
        content={
            "bin/tool": program(
                f"#!{PLACEHOLDER}/bin/python\nprint('tool')\n", placeholder=PLACEHOLDER
            ),
            "bin/ptool": program(f"#!{PLACEHOLDER}/bin/perl -w\n", placeholder=PLACEHOLDER),
        },
    )
    creator = Creator(root=deep(short_folder, line - len("#!/bin/python")))
    created = creator.create(order([packed, made]))
    prefix = created.generation.prefix
    first = (prefix / "bin/tool").read_text().splitlines()
    found = {(one.code, one.where) for one in created.manifest.findings}
    if line == 120:
        assert first[0] == f"#!{prefix}/bin/python"
        assert len(first[0]) == line
        assert (prefix / "bin/ptool").read_text() == f"#!{prefix}/bin/perl -w\n"
        assert found == set()
    else:
        assert first[0] == "#!/bin/sh"
        assert f"{prefix}/bin/python" in first[1]
        assert found == {("foreign-interpreter", "bin/ptool")}
    assert run(prefix / "bin/tool") == "tool"
    assert damage(created) == []
