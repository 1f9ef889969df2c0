"""What an index lists: pages as PEP 691, PEP 700 and PEP 503 have them, and what is none."""

import json
from datetime import UTC, datetime

import pytest

from envbuild.tools.index_files import IndexFile, files

URL = "https://bob:s3cret@index.example/simple/torch/"
DIGEST = "ab" * 32


def test_json() -> None:
    row = {
        "filename": "torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl",
        "url": "../../files/torch.whl",
        "hashes": {"sha256": DIGEST.upper()},
        "requires-python": ">=3.10",
        "size": 7,
        "upload-time": "2026-01-02T03:04:05.6Z",
        "yanked": "broken",
    }
    bare = {"filename": "a", "url": "https://elsewhere.example/a", "hashes": {"sha256": "x"}}
    page = json.dumps({"files": [row, {**bare, "size": -1, "yanked": False}]})
    assert list(files(page, URL)) == [
        IndexFile(
            filename="torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl",
            url="https://bob:s3cret@index.example/files/torch.whl",
            sha256=DIGEST,
            size=7,
            uploaded=datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC),
            requires_python=">=3.10",
            yanked=True,
        ),
        IndexFile(filename="a", url="https://elsewhere.example/a"),
    ]


def test_html() -> None:
    page = f"""<!DOCTYPE html><html><body>
    <a href="/f/a%2Bb-1-py3-none-any.whl#sha256={DIGEST}" data-requires-python="&gt;=3.9">a</a>
    <a href="https://index.example/f/b.whl#md5=1" data-yanked="">b</a><a name="x">c</a>
    </body></html>"""
    assert list(files(page, URL)) == [
        IndexFile(
            filename="a+b-1-py3-none-any.whl",
            url="https://bob:s3cret@index.example/f/a%2Bb-1-py3-none-any.whl",
            sha256=DIGEST,
            requires_python=">=3.9",
        ),
        IndexFile(filename="b.whl", url="https://bob:s3cret@index.example/f/b.whl", yanked=True),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "",
        "hello",
        "[]",
        "{}",
        '{"files": [{}]}',
        '{"files": [{"filename": "a", "url": "file:///etc/passwd"}]}',
        '{"files": [{"filename": "a", "url": "x", "hashes": null}]}',
        '{"files": [{"filename": "a", "url": "x", "upload-time": "soon"}]}',
        "<!DOCTYPE html><html><form>Sign in</form></html>",
    ],
)
def test_what_is_no_page_of_an_index(page: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        list(files(page, URL))
