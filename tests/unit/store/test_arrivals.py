"""Hashing what appears in a cache, while it appears."""

import hashlib
import os
import time
from pathlib import Path

from envbuild.store.arrivals import Arrivals, Known


def known(path: Path) -> Known:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def arrive(cache: Path, name: str, content: bytes) -> Path:
    """Put a folder with one file there in one step, as uv does."""
    beside = cache.parent / f".tmp-{name}"
    (beside / "package").mkdir(parents=True)
    (beside / "package" / "module.py").write_bytes(content)
    beside.rename(cache / name)
    return cache / name / "package" / "module.py"


def test_what_arrives_is_hashed_and_what_was_there_is_not(tmp_path: Path) -> None:
    cache = tmp_path / "archive"
    cache.mkdir()
    old = arrive(cache, "old", b"old")
    with Arrivals(cache) as arrivals:
        new = arrive(cache, "new", b"new")
        deadline = time.monotonic() + 10
        while not arrivals.contents and time.monotonic() < deadline:
            time.sleep(0.01)
    assert arrivals.contents == {known(new): hashlib.sha256(b"new").hexdigest()}
    assert known(old) not in arrivals.contents


def test_a_hard_link_is_known_and_an_edited_file_is_not(tmp_path: Path) -> None:
    cache = tmp_path / "archive"
    cache.mkdir()
    with Arrivals(cache) as arrivals:
        file = arrive(cache, "new", b"new")
        deadline = time.monotonic() + 10
        while not arrivals.contents and time.monotonic() < deadline:
            time.sleep(0.01)
    (tmp_path / "installed.py").hardlink_to(file)
    assert known(tmp_path / "installed.py") in arrivals.contents
    file.write_bytes(b"edited")
    assert known(tmp_path / "installed.py") not in arrivals.contents


def test_a_cache_that_is_not_there_yet(tmp_path: Path) -> None:
    with Arrivals(tmp_path / "none") as arrivals:
        pass
    assert arrivals.contents == {}


def test_a_folder_that_goes_away_while_it_is_read(tmp_path: Path) -> None:
    cache = tmp_path / "archive"
    cache.mkdir()
    with Arrivals(cache):
        for number in range(30):
            file = arrive(cache, f"{number}", b"x")
            file.unlink()


def test_a_large_file_is_hashed_before_its_folder_is_whole(tmp_path: Path) -> None:
    cache, unfinished = tmp_path / "archive", tmp_path / ".tmp1"
    cache.mkdir()
    unfinished.mkdir()
    large, written, small = (unfinished / name for name in ("large.so", "written.so", "small.py"))
    content = bytes(33 << 20)
    large.write_bytes(content)
    small.write_bytes(b"small")
    long_ago = time.time() - 60
    os.utime(large, (long_ago, long_ago))
    os.utime(small, (long_ago, long_ago))
    written.write_bytes(content)
    os.utime(written, (time.time() + 60,) * 2)  # as if the last byte had come just now
    with Arrivals(cache, lambda: [unfinished]) as arrivals:
        deadline = time.monotonic() + 10
        while not arrivals.contents and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert arrivals.contents == {known(large): hashlib.sha256(content).hexdigest()}
        unfinished.rename(cache / "whole")
        while len(arrivals.contents) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    whole = cache / "whole"
    assert set(arrivals.contents) == {known(path) for path in whole.iterdir()}
