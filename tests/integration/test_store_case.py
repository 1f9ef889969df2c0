"""Names that differ in case alone, on disks where that is a difference, and where it is none."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.creating import Creator, codes, damage, order
from integration.index_server import wheel
from integration.packages import Content, File, Made, make_package, program
from integration.test_create_wheels import SITE, World, packed, world

from envbuild.errors import FetchError, StoreError
from envbuild.store import disk, present

__all__ = ["packed", "world"]

_UMOUNT = "/usr/bin/umount"


@contextlib.contextmanager
def folding(folder: Path) -> Iterator[Path]:
    """Mount a disk on which names that differ in case alone are one, or skip."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a disk")
    mkntfs, ntfs = shutil.which("mkntfs"), shutil.which("lowntfs-3g")
    if mkntfs is None or ntfs is None:
        pytest.skip("mkntfs and lowntfs-3g (ntfs-3g) are not installed")
    folder.mkdir()
    image = folder.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run([mkntfs, "-q", "-F", f"{image}"], check=True, capture_output=True)
    argv = [ntfs, "-o", "ignore_case,permissions", f"{image}", f"{folder}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([_UMOUNT, f"{folder}"], check=True)


def package(root: Path, name: str, *paths: str) -> Made:
    content = {path: File(content=path.encode()) for path in paths}
    return make_package(root, name, content={**content, f"bin/{name}": program("#!/bin/sh\n")})


def test_two_names_are_two_files(tmp_path: Path) -> None:
    names = ("share/Readme", "share/README")
    made = package(tmp_path / "channel", "cases", *names)
    created = Creator(root=tmp_path / "store").create(order([made]))
    assert [(created.generation.prefix / name).read_text() for name in names] == [*names]
    assert damage(created) == []


def test_a_disk_that_folds_case_is_found_by_trying(tmp_path: Path) -> None:
    """From the terminal descriptions of ncurses, whose folders differ in case as well."""
    channel = tmp_path / "channel"
    within = package(channel, "within", "share/terminfo/P/P9-W", "share/terminfo/p/p9-w")
    one, two = package(channel, "one", "share/Readme"), package(channel, "two", "share/README")
    plain = package(channel, "plain", "share/readme")
    with folding(tmp_path / "disk") as store:
        creator = Creator(root=store)
        before = creator.create(order([plain]))
        with pytest.raises(StoreError) as caught:
            creator.create(order([plain, within]))
        assert caught.value.message == (
            f"share/terminfo/P/P9-W and share/terminfo/p/p9-w of within-1.0-0.conda are one file "
            f"on the disk at {store}, which does not tell upper from lower case"
        )
        with pytest.raises(StoreError, match=r"of one-1\.0-0\.conda and two-1\.0-0\.conda are one"):
            creator.create(order([one, two]))
        current = present.current(creator.place)
        assert current is not None
        assert current.identifier == before.generation.identifier
        assert len(present.generations(creator.place)) == 1
        assert present.incomplete(creator.place) == ()
        assert damage(before) == []
        subprocess.run([before.generation.prefix / "bin/plain"], check=True)
        assert codes(creator.create(order([plain]), reinstall=True)) == []


def test_nothing_is_written_through_a_link_in_another_case(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files = {"Lib": File(content=f"{outside}".encode(), link=True), "lib/x": File(content=b"x")}
    hostile = make_package(tmp_path / "channel", "hostile", content=files)
    with folding(tmp_path / "disk") as store:
        creator = Creator(root=store)
        with pytest.raises(FetchError, match=r"hostile-1\.0-0\.conda: member 'lib': it is a file"):
            creator.create(order([hostile]))
        assert creator.nothing_left()
    assert list(outside.iterdir()) == []


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of the probe is made up: a disk that keeps and folds case is hard to come by."""
    monkeypatch.setattr(disk, "tells_case", lambda _: False)


@pytest.mark.usefixtures("folds")
def test_of_two_packages_before_anything_is_linked(tmp_path: Path) -> None:
    one = package(tmp_path / "a", "one", "share/Readme")
    two = package(tmp_path / "b", "two", "share/README")
    creator = Creator(root=tmp_path / "store")
    with pytest.raises(StoreError, match=r"share/R.* of one-1\.0-0\.conda and two-1\.0-0\.conda"):
        creator.create(order([one, two]))
    assert creator.nothing_left()
    assert codes(creator.create(order([one]))) == []


@pytest.mark.usefixtures("folds")
def test_of_python_packages_where_they_come_to_lie(world: World, tmp_path: Path) -> None:
    pure = make_package(
        tmp_path / "channel",
        "pure",
        subdir="noarch",
        noarch="python",
        content=Content(files={"site-packages/Pure-1.0.dist-info/METADATA": File()}),
    )
    other = package(tmp_path / "channel", "other", f"{SITE}/pure-1.0.dist-info/METADATA")
    with pytest.raises(StoreError, match=r"of pure-1\.0-0\.conda and other-1\.0-0\.conda are one"):
        world.create(order([world.python, pure, other]))
    assert world.creator.nothing_left()


@pytest.mark.usefixtures("folds")
def test_of_wheels_before_it_becomes_current(world: World) -> None:
    first = wheel("app", "1.0", files={"Tools/x.py": "1\n"})
    second = wheel("bpp", "1.0", files={"tools/x.py": "2\n"})
    with pytest.raises(StoreError, match=rf"{SITE}/Tools/x.py and {SITE}/tools/x.py of pypi:app"):
        world.create(world.order(first, second))
    assert world.creator.nothing_left()
