"""A store on disks that are full, read-only, or another one than the cache's."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from integration.creating import Creator, codes, damage, order
from integration.packages import File, Made, make_package

from envbuild.errors import StoreError
from envbuild.store import disk, history, present
from envbuild.store.create import Created
from envbuild.store.layout import Store

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a tmpfs")


_MOUNT, _UMOUNT = "/usr/bin/mount", "/usr/bin/umount"


@contextlib.contextmanager
def mounted(folder: Path, *words: str) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    argv = [_MOUNT, *words, f"{folder}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([_UMOUNT, "-l", f"{folder}"], check=True)


def tmpfs(folder: Path, size: str, *, options: str = "rw") -> AbstractContextManager[Path]:
    return mounted(folder, "-t", "tmpfs", "-o", f"size={size},{options}", "tmpfs")


def remount(folder: Path, options: str) -> None:
    subprocess.run([_MOUNT, "-o", f"remount,{options}", f"{folder}"], check=True)


def package(folder: Path, name: str, mebibytes: int) -> Made:
    """Return a package with one file that does not compress."""
    files = {
        f"share/{name}/data": File(content=os.urandom(mebibytes << 20)),
        f"bin/{name}": File(content=b"#!/bin/sh\necho works\n", mode=0o755),
    }
    return make_package(folder, name, content=files)


def runs(created: Created, name: str) -> bool:
    program = created.generation.prefix / "bin" / name
    return subprocess.run([program], capture_output=True, check=False).stdout == b"works\n"


def test_a_full_disk_leaves_the_old_environment_and_the_next_try_works(tmp_path: Path) -> None:
    small, large = package(tmp_path / "a", "small", 4), package(tmp_path / "b", "large", 40)
    with tmpfs(tmp_path / "store", "48m") as store:
        creator = Creator(root=store)
        first = creator.create(order([small]))
        filler = store / "filler"
        filler.write_bytes(bytes(16 << 20))
        with pytest.raises(StoreError, match=r"no room for large-1\.0-0\.conda") as told:
            creator.create(order([small, large]))
        assert told.value.exit_code == 6
        assert "\n" not in told.value.message
        current = present.current(creator.place)
        assert current is not None
        assert current.identifier == first.generation.identifier
        assert runs(first, "small")
        assert damage(first) == []
        assert [one.identifier for one in present.generations(creator.place)] == [
            current.identifier
        ]
        filler.unlink()
        remount(store, "size=200m")
        second = creator.create(order([small, large]))
        assert runs(second, "large")
        assert damage(second) == []


def test_a_read_only_store_says_so_and_what_is_there_runs(tmp_path: Path) -> None:
    small, other = package(tmp_path / "a", "small", 1), package(tmp_path / "b", "other", 1)
    with tmpfs(tmp_path / "store", "64m") as store:
        creator = Creator(root=store)
        first = creator.create(order([small]))
        remount(store, "ro")
        with pytest.raises(StoreError, match="Read-only file system"):
            creator.create(order([small, other]))
        with pytest.raises(StoreError, match="Read-only file system"):
            creator.create(order([small]), reinstall=True)
        assert runs(first, "small")
        assert damage(first) == []
        remount(store, "rw")
        assert runs(creator.create(order([small, other])), "other")


def test_a_cache_on_another_disk_is_copied_from_and_said_once(tmp_path: Path) -> None:
    small = package(tmp_path / "a", "small", 2)
    with tmpfs(tmp_path / "cache", "64m") as cache, tmpfs(tmp_path / "store", "64m") as store:
        copied = Creator(root=store, cache=cache).create(order([small]))
        assert codes(copied) == ["files-copied"]
        (finding,) = copied.findings
        assert str(cache) in finding.what
        assert "2 MiB more" in finding.what
        assert damage(copied) == []
        linked = Creator(root=tmp_path / "other").create(order([small]))
        assert codes(linked) == []
        for made in (copied, linked):
            data = made.generation.prefix / "share/small/data"
            assert (data.stat().st_mode & 0o7777, data.stat().st_nlink > 1) == (
                0o644,
                made is linked,
            )
        contents = [
            (made.generation.prefix / "share/small/data").read_bytes() for made in (copied, linked)
        ]
        assert contents[0] == contents[1]
        assert not (store / "cache").exists()


def test_a_read_only_cache_that_has_all_packages_serves(tmp_path: Path) -> None:
    small = package(tmp_path / "a", "small", 2)
    with tmpfs(tmp_path / "cache", "64m") as cache:
        Creator(root=tmp_path / "one", cache=cache).create(order([small]))
        remount(cache, "ro")
        created = Creator(root=tmp_path / "two", cache=cache).create(order([small]))
        assert runs(created, "small")
        assert damage(created) == []


@pytest.mark.slow
@pytest.mark.network
def test_a_read_only_cache_of_wheels_serves(tmp_path: Path) -> None:
    """The shipped quickstart, from a cache that another store filled."""
    variables = {"PATH": os.environ["PATH"], "HOME": f"{tmp_path}", "ENVBUILD_COMPILE": "0"}

    def create(store: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "envbuild", "--store", f"{tmp_path / store}"]
        return subprocess.run(
            [*argv, "create", "quickstart"],
            env={**variables, "ENVBUILD_CACHE": f"{tmp_path / 'cache'}"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    with tmpfs(tmp_path / "cache", "400m") as cache:
        first = create("one")
        assert first.returncode == 0, first.stderr
        remount(cache, "ro")
        second = create("two")
        assert second.returncode == 0, second.stderr
        assert "files were copied from" in second.stderr


def test_programs_that_may_not_run_are_known_before_anything_is_linked(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "store", "64m", options="noexec") as store:
        creator = Creator(root=store)
        with pytest.raises(StoreError, match="is mounted noexec"):
            creator.create(order([package(tmp_path / "a", "small", 1)]))
        assert creator.nothing_left()
        remount(store, "exec")
        assert runs(creator.create(order([package(tmp_path / "a", "small", 1)])), "small")


@pytest.mark.parametrize("mask", [0o077, 0o027, 0o022])
def test_bytes_and_modes_do_not_depend_on_the_umask(tmp_path: Path, mask: int) -> None:
    files = {
        "share/open.txt": File(content=b"open", mode=0o666),
        "share/closed.txt": File(content=b"closed", mode=0o600),
        "bin/tool": File(content=b"#!/bin/sh\n", mode=0o4755),
    }
    made = make_package(tmp_path / "a", "modes", content=files)
    before = os.umask(mask)
    try:
        created = Creator(root=tmp_path / "store").create(order([made]))
    finally:
        os.umask(before)
    prefix = created.generation.prefix
    modes = {name: (prefix / name).stat().st_mode & 0o7777 for name in (*files, "share", "bin")}
    assert modes == {
        "share/open.txt": 0o644,
        "share/closed.txt": 0o644,
        "bin/tool": 0o755,
        "share": 0o755,
        "bin": 0o755,
    }
    for path in prefix.rglob("*"):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o7022 == 0, path


def test_a_real_quota(tmp_path: Path) -> None:
    """Of btrfs, whose limits hold for root too."""
    programs = [shutil.which(name) for name in ("mkfs.btrfs", "btrfs")]
    if None in programs:
        pytest.skip("btrfs-progs is not installed")
    make, btrfs = map(str, programs)
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run([make, "-q", f"{image}"], check=True, capture_output=True)

    def limit(size: str) -> None:
        subprocess.run([btrfs, "qgroup", "limit", size, f"{store}"], check=True)

    small, large = package(tmp_path / "a", "small", 4), package(tmp_path / "b", "large", 40)
    with mounted(tmp_path / "disk", "-o", "loop", f"{image}") as folder:
        store = folder / "store"
        for words in (("quota", "enable", f"{folder}"), ("subvolume", "create", f"{store}")):
            subprocess.run([btrfs, *words], check=True, capture_output=True)
        limit("40M")
        creator = Creator(root=store)
        first = creator.create(order([small]))
        with pytest.raises(StoreError, match=r"large-1\.0-0\.conda, the disk quota is used up"):
            creator.create(order([small, large]))
        assert runs(first, "small")
        assert damage(first) == []
        assert len(present.generations(creator.place)) == 1
        limit("120M")
        second = creator.create(order([small, large]))
        assert runs(second, "large")
        assert damage(second) == []


def test_copies_that_have_no_room_are_refused_before_linking(tmp_path: Path) -> None:
    large = package(tmp_path / "a", "large", 40)
    with tmpfs(tmp_path / "cache", "100m") as cache, tmpfs(tmp_path / "store", "30m") as store:
        creator = Creator(root=store, cache=cache)
        with pytest.raises(
            StoreError, match=r"needs at least 40 MiB .*, (29|30) MiB are free"
        ) as told:
            creator.create(order([large]))
        assert told.value.exit_code == 6
        assert creator.nothing_left()
        remount(store, "size=60m")
        assert runs(creator.create(order([large])), "large")


def test_links_need_no_room(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "store", "90m") as store:
        creator = Creator(root=store)
        ordered = order([package(tmp_path / "a", "large", 40)])
        creator.create(ordered)
        (store / "filler").write_bytes(bytes(30 << 20))
        for _ in range(3):
            assert runs(creator.create(ordered, reinstall=True), "large")


def test_a_read_only_cache_that_lacks_a_package_says_so(tmp_path: Path) -> None:
    small, other = package(tmp_path / "a", "small", 1), package(tmp_path / "b", "other", 1)
    with tmpfs(tmp_path / "cache", "64m") as cache:
        creator = Creator(root=tmp_path / "store", cache=cache)
        first = creator.create(order([small]))
        remount(cache, "ro")
        with pytest.raises(StoreError, match="Read-only file system") as told:
            creator.create(order([small, other]))
        assert "\n" not in told.value.message
        assert runs(first, "small")
        remount(cache, "rw")
        assert runs(creator.create(order([small, other])), "other")


def test_quota_is_told_from_a_full_disk(tmp_path: Path) -> None:
    store = Store(root=tmp_path)
    for error in (OSError(122, "Disk quota exceeded"), RuntimeError("x (os error 122)")):
        told = disk.full(store, error)
        assert told is not None
        assert "quota" in told.message
    assert disk.full(store, OSError(2, "No such file")) is None
    assert history.unusable(store.place("x"), OSError(30, "Read-only file system")).exit_code == 6
    assert replace(store, cache_folder=tmp_path / "c").uv_cache == tmp_path / "c/uv"
