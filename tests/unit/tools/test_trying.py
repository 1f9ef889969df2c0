"""What a folder's file system can do is tried, and nothing of it stays."""

from pathlib import Path

import pytest

from envbuild.tools import trying


def test_a_folder_of_a_usual_file_system(tmp_path: Path) -> None:
    found = trying.abilities(tmp_path)
    assert found.hard_links
    assert found.locks
    assert found.executes
    assert found.tells_case
    assert found.free_bytes > 0
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        trying.abilities(tmp_path / "gone")
    assert trying.nearest(tmp_path / "a/b/c") == tmp_path
