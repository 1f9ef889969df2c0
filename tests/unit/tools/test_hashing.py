"""Hashing many files: each digest, each error, and how many bytes."""

import hashlib
import os
from pathlib import Path

from envbuild.tools.hashing import hash_files


def test_small_large_empty_and_what_cannot_be_read(tmp_path: Path) -> None:
    contents = {f"{number}": os.urandom(number * 37) for number in range(150)}
    contents["large"] = os.urandom(5 << 20)
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("1")
    paths = [f"{tmp_path}/{name}" for name in [*contents, "link", "missing", "."]]
    told: list[int] = []
    answers = hash_files(
        [(path, os.path.getsize(path) if os.path.exists(path) else 0) for path in paths],  # noqa: PTH110, PTH202
        done=told.append,
    )
    for name, content in contents.items():
        assert answers[f"{tmp_path}/{name}"] == hashlib.sha256(content).hexdigest()
    for name in ("link", "missing", "."):
        assert isinstance(answers[f"{tmp_path}/{name}"], OSError)
    assert sum(told) == sum(map(len, contents.values()))


def test_nothing_to_hash_is_no_answer() -> None:
    assert hash_files([], workers=1) == {}
