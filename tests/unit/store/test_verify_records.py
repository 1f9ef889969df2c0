import base64
import hashlib
import json
from pathlib import Path

import generations as made
import pytest

from envbuild.findings import Severity
from envbuild.store.layout import Generation
from envbuild.store.verify import verify

_SITE = "lib/python3.11/site-packages"
_INFO = f"{_SITE}/pkg-2.0.dist-info"


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return made.make(made.place_in(tmp_path), made.FIRST)


def _add(generation: Generation, path: str, text: str) -> None:
    file = generation.prefix / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o644)
    made.complete(generation)


def _conda_meta(name: str, path: str, digest: str) -> str:
    row = {"_path": path, "path_type": "hardlink", "sha256_in_prefix": digest}
    record = {"name": name, "fn": f"{name}-1-0.conda", "link": {"source": "/none"}}
    return json.dumps({**record, "paths_data": {"paths": [row]}})


def _record(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(content)}\npkg-2.0.dist-info/RECORD,,\n"


def test_records_that_agree_say_nothing(generation: Generation) -> None:
    program = (generation.prefix / made.PROGRAM).read_bytes()
    digest = hashlib.sha256(program).hexdigest()
    _add(generation, "conda-meta/hello-1-0.json", _conda_meta("hello", made.PROGRAM, digest))
    _add(generation, f"{_INFO}/METADATA", "Name: pkg\n")
    _add(generation, f"{_INFO}/RECORD", _record("pkg/__init__.py", b"x = 1\n"))
    assert verify(generation) == ()


def test_whose_content_is_there_is_said_of_a_file_that_two_packages_claim(
    generation: Generation,
) -> None:
    _add(generation, "conda-meta/other-1-0.json", _conda_meta("other", made.PROGRAM, "0" * 64))
    (finding,) = verify(generation)
    assert (finding.code, finding.severity) == ("record-differs", Severity.NOTE)
    assert finding.where == made.PROGRAM
    assert finding.what == "the record of conda:other names other content"
    assert finding.why == "the content is conda:hello's"


def test_a_package_that_was_installed_otherwise_is_a_warning(generation: Generation) -> None:
    _add(generation, f"{_INFO}/RECORD", _record("pkg/__init__.py", b"x = 9\n"))
    (finding,) = verify(generation)
    assert (finding.code, finding.severity) == ("record-differs", Severity.WARNING)
    assert finding.where == made.SOURCE


@pytest.mark.parametrize("text", ["{", "[]", '{"paths_data": {}}'])
def test_a_damaged_record_is_a_changed_file_and_no_crash(generation: Generation, text: str) -> None:
    _add(generation, "conda-meta/hello-1-0.json", "{}")
    (generation.prefix / "conda-meta/hello-1-0.json").write_text(text)
    assert [finding.code for finding in verify(generation) if finding.code != "record-differs"] == [
        "file-changed"
    ]


def test_paths_outside_are_listed(generation: Generation, tmp_path: Path) -> None:
    lines = f"# comment\nimport os; os\n\n.\n../../inside\n{tmp_path}/out\n../../../../up\n"
    _add(generation, f"{_SITE}/x.pth", lines)
    _add(generation, f"{_INFO}/direct_url.json", '{"url": "file:///src", "dir_info": {}}')
    outside = [finding.what for finding in verify(generation)]
    up = generation.prefix.parent / "up"
    assert outside == [
        f"makes Python import from {tmp_path}/out",
        f"makes Python import from {up}",
    ]


def test_an_editable_install_is_listed(generation: Generation) -> None:
    text = '{"url": "file:///src/pkg", "dir_info": {"editable": true}}'
    _add(generation, f"{_INFO}/direct_url.json", text)
    (finding,) = verify(generation)
    assert (finding.code, finding.severity) == ("path-outside", Severity.WARNING)
    assert "file:///src/pkg" in finding.what


@pytest.mark.parametrize("text", ["{", "[]", '{"dir_info": null}'])
def test_an_odd_direct_url_is_no_crash(generation: Generation, text: str) -> None:
    _add(generation, f"{_INFO}/direct_url.json", text)
    assert verify(generation) == ()
