"""Wheels as uv unpacks them into its cache, against their RECORD."""

import base64
import hashlib
import os
from pathlib import Path

import pytest

from envbuild.store.arrivals import Known, known
from envbuild.store.unpacked import Contradictions, contradictions

SITE = "lib/python3.11/site-packages"
INFO = "app-1.0.dist-info"


def _row(path: str, content: bytes, *, size: int | None = None, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm, content, usedforsecurity=False).digest()
    text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return f"{path},{algorithm}={text},{len(content) if size is None else size}\n"


def _found(
    root: Path, path: str, row: str, contents: dict[Known, str] | None = None
) -> Contradictions:
    """Unpack a wheel with a file of two bytes, link it, and hold it against its RECORD."""
    folder = root / "cache/0a1b"
    for name, data in ((path, b"ok"), (f"{INFO}/METADATA", b"M"), (f"{INFO}/RECORD", b"")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / INFO / "RECORD").write_text(f"{row}{_row(f'{INFO}/METADATA', b'M')}{INFO}/RECORD,,\n")
    (root / "linked" / INFO).mkdir(parents=True)
    os.link(folder / INFO / "METADATA", root / "linked" / INFO / "METADATA")
    return contradictions(
        root / "linked",
        root / "cache",
        contents={} if contents is None else contents,
        python_version="3.11.9",
    )


@pytest.mark.parametrize(
    ("path", "row", "code", "where"),
    [
        ("app/a.py", _row("app/a.py", b"ok"), None, ""),
        ("app/a.py", _row("app/a.py", b"ok", algorithm="sha512"), None, ""),
        ("app/a.py", "app/a.py,,2\n", None, ""),
        ("app/a.py", _row("app/a.py", b"no"), "file-differs", f"{SITE}/app/a.py"),
        (
            "app-1.0.data/platlib/a.so",
            _row("app-1.0.data/platlib/a.so", b"no"),
            "file-differs",
            f"{SITE}/a.so",
        ),
        (
            "app-1.0.data/data/share/a",
            _row("app-1.0.data/data/share/a", b"no"),
            "file-differs",
            "share/a",
        ),
        (
            "app-1.0.data/scripts/go",
            _row("app-1.0.data/scripts/go", b"no"),
            "file-differs",
            "pypi:app: app-1.0.data/scripts/go",
        ),
        (
            "app/a.py",
            _row("app/a.py", b"ok", algorithm="sha1"),
            "record-contradicted",
            "pypi:app: app/a.py",
        ),
        (
            "app/a.py",
            _row("app/a.py", b"ok", size=3),
            "record-contradicted",
            "pypi:app: app/a.py",
        ),
    ],
)
def test_what_contradicts_record(
    tmp_path: Path, path: str, row: str, code: str | None, where: str
) -> None:
    found = _found(tmp_path, path, row)
    told = [(one.code, one.where, one.severity) for one in found.findings]
    assert told == ([] if code is None else [(code, where, "error")])
    assert [one.name for one in found.spoiled] == (["app"] if code == "file-differs" else [])


def test_what_was_hashed_is_not_hashed_again_and_the_rest_is_kept(tmp_path: Path) -> None:
    contents: dict[Known, str] = {}
    assert _found(tmp_path, "app/a.py", _row("app/a.py", b"ok"), contents).findings == ()
    path = tmp_path / "cache/0a1b/app/a.py"
    assert contents[known(path.lstat())] == hashlib.sha256(b"ok").hexdigest()
    contents[known(path.lstat())] = hashlib.sha256(b"no").hexdigest()
    found = contradictions(
        tmp_path / "linked", tmp_path / "cache", contents=contents, python_version="3.11.9"
    )
    assert [one.code for one in found.findings] == ["file-differs"]
