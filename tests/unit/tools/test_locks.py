"""Locks in one process: who waits is told for whom, and other hosts' records are waited for."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from envbuild.errors import StoreError
from envbuild.tools import locks


def _record(path: Path, **more: object) -> None:
    record = {
        "user": "anna",
        "host": "node9",
        "boot": "another",
        "pid": 77,
        "command": "create demo",
        "since": "2026-12-01T12:00:00Z",
    }
    path.write_text(json.dumps(record | more) + "\n")


def _take(path: Path, timeout_s: float = 0.1) -> None:
    with locks.exclusive(path, timeout_s=timeout_s, purpose="switch demo"):
        pass


def test_the_holder_stands_in_the_file_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "below" / "lock"
    with locks.exclusive(path, timeout_s=1, purpose="create demo"):
        record = json.loads(path.read_text())
        assert record["pid"] == os.getpid()
        assert record["host"] == os.uname().nodename
        assert record["command"] == "create demo"
        assert set(record) == {"user", "host", "boot", "pid", "command", "since"}
        with pytest.raises(StoreError) as caught:
            _take(path)
    assert f"{path} is held by {record['user']} on {record['host']}" in caught.value.message
    assert f"process {os.getpid()} (create demo), since {record['since']}" in caught.value.message
    assert caught.value.exit_code == 6
    assert path.read_text() == ""
    _take(path)


def test_who_waits_is_told_for_whom_once(tmp_path: Path) -> None:
    path, said = tmp_path / "lock", list[str]()
    with locks.exclusive(path, timeout_s=1, purpose="create demo"):
        waiter = threading.Thread(target=_wait, args=(path, said))
        waiter.start()
        end = time.monotonic() + 20
        while not said and time.monotonic() < end:
            time.sleep(0.05)
    waiter.join(20)
    assert len(said) == 2
    assert said[0].startswith(f"waiting: {path} is held by ")
    assert "(create demo)" in said[0]
    assert said[1] == "taken"


def _wait(path: Path, said: list[str]) -> None:
    with locks.exclusive(path, timeout_s=30, purpose="gc demo", told=said.append):
        said.append("taken")


@pytest.mark.parametrize(
    "more",
    [
        {"host": os.uname().nodename},
        {"boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip()},
        {"boot": "?"},
    ],
    ids=["this host before it was started anew", "another name of this kernel", "unknown"],
)
def test_a_record_that_this_host_can_judge_is_no_obstacle(
    tmp_path: Path, more: dict[str, object]
) -> None:
    path = tmp_path / "lock"
    _record(path, **more)
    _take(path, timeout_s=0)


@pytest.mark.parametrize("text", ["node9 77 create demo\n", "{", "[]", '{"pid": "x"}', "\0\0"])
def test_a_damaged_or_older_record_is_no_obstacle(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lock"
    path.write_text(text)
    _take(path, timeout_s=0)


def test_the_record_of_another_host_keeps_this_one_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    _record(path)
    with pytest.raises(StoreError, match=r"anna on node9, process 77 \(create demo\)"):
        _take(path, timeout_s=0.2)
    assert "node9" in path.read_text()


def test_the_record_of_another_host_ends_with_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    _record(path)
    ended = threading.Timer(0.3, lambda: path.write_text(""))
    ended.start()
    _take(path, timeout_s=20)
    ended.join()


def test_the_record_of_another_host_that_nobody_renews_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    _record(path)
    monkeypatch.setattr(locks, "EXPIRES_S", 0.3)
    _take(path, timeout_s=20)
    _record(path)
    monkeypatch.undo()
    os.utime(path, (0, 0))
    _take(path, timeout_s=0)


def test_a_folder_that_cannot_be_made_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        _take(tmp_path / "file" / "lock")


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    with (
        locks.folder(tmp_path, timeout_s=1),
        pytest.raises(StoreError, match="held by another process"),
        locks.folder(tmp_path, timeout_s=0.1),
    ):
        pytest.fail("two held one folder")
    assert list(tmp_path.iterdir()) == []
