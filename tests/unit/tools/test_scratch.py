"""Folders for a while: gone at the end, and when their maker is."""

import os
from pathlib import Path

import pytest

from envbuild.tools import scratch
from envbuild.tools.files import remove_abandoned, write_atomic


def test_it_is_removed_at_the_end(tmp_path: Path) -> None:
    with scratch.scratch(tmp_path) as (folder, _):
        (folder / "below").mkdir()
        (folder / "below/file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_use_is_not_swept(tmp_path: Path) -> None:
    with scratch.scratch(tmp_path) as (folder, _):
        scratch.sweep(tmp_path)
        assert folder.is_dir()


def test_what_nobody_uses_is_swept(tmp_path: Path) -> None:
    with scratch.scratch(tmp_path) as (folder, _):
        abandoned, young = (folder.with_name(f"{folder.name}{end}") for end in "xy")
    (abandoned / "below").mkdir(parents=True)
    (abandoned / "lock").touch()
    young.mkdir()
    (tmp_path / "another").mkdir()
    scratch.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_it_is_in_use_as_long_as_a_descriptor_is_open(tmp_path: Path) -> None:
    with scratch.scratch(tmp_path) as (folder, descriptor):
        (folder / "file").touch()
        held = os.dup(descriptor)
        os.close(descriptor)
        scratch.sweep(tmp_path)
        assert (folder / "file").exists()
        os.dup2(held, descriptor)
        os.close(held)


def test_a_file_half_written_goes_once_nobody_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".list.0123abcd").touch()
    (tmp_path / ".other.0123abcd").touch()
    remove_abandoned(tmp_path, of="list")
    assert [path.name for path in tmp_path.iterdir()] == [".other.0123abcd"]
    whole: list[list[str]] = []

    def fsync(_: int) -> None:
        remove_abandoned(tmp_path)
        whole.append(sorted(path.name for path in tmp_path.iterdir()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "list", "text")
    assert len(whole[0]) == 1, "what is being written stays, what nobody writes is gone"
    assert [path.name for path in tmp_path.iterdir()] == ["list"]
