"""The manifest's two files: read as they were written, and damaged ones refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from envbuild.errors import StoreError
from envbuild.findings import Finding, Severity
from envbuild.store import manifest as manifests
from envbuild.store.layout import Generation, Store
from envbuild.store.manifest import Inputs, InstalledPackage, Interpreter, Manifest, Stamp
from envbuild.store.raw import read_raw

MANIFEST = Manifest(
    name="demo",
    generation="0" * 16,
    environment_digest="0" * 64,
    solve_digest="1" * 64,
    platform="linux-64",
    prefix="/store/envs/demo",
    created="2026-12-01T12:00:00Z",
    inputs=Inputs(recipe=(("/r/demo.yaml", "a" * 64),), lock=(("conda-lock.yml", "b" * 64),)),
    packages=(
        InstalledPackage(kind="conda", name="zlib", version="1.2", build="0", source="u"),
        InstalledPackage(kind="pypi", name="numpy", version="2.0"),
    ),
    interpreter=Interpreter(
        path="/usr/bin/python3.11",
        version="3.11.2",
        digest="c" * 64,
        stamps=(Stamp(path="/usr/bin/python3.11", size=10, mtime_ns=11),),
    ),
    findings=(Finding(code="clobber", severity=Severity.WARNING, where="x", what="größer"),),
    file_count=1,
    file_bytes=3,
    compiled=True,
    files_sha256="",
)
ROWS: list[list[object]] = [
    ["bin/x", "file", "d" * 64, 0o755, 3, 0],
    ["l", "link", "x", 0, 0, None],
]


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    made = Store(root=tmp_path).place("demo").generation("0" * 16)
    made.own.mkdir(parents=True)
    return made


def test_what_is_written_is_read(generation: Generation) -> None:
    text = manifests.dumps_files(["conda:zlib"], ROWS)
    (generation.own / manifests.FILES).write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    manifest = replace(MANIFEST, files_sha256=digest)
    manifests.write(generation, manifest)
    assert manifests.read(generation) == manifest
    listed = manifests.read_files(generation, manifest)
    assert listed.packages == ("conda:zlib",)
    assert [row.path for row in listed.rows] == ["bin/x", "l"]
    assert listed.rows[0].mode == 0o755
    assert generation.manifest.stat().st_mode & 0o777 == 0o644


def test_no_manifest_is_no_generation(generation: Generation) -> None:
    assert read_raw(generation) is None
    with pytest.raises(StoreError, match="not a complete generation"):
        manifests.read(generation)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ("[]", "no manifest"),
        ('{"version": 99}', "format 99 is newer"),
        ('{"version": 1}', "damaged"),
    ],
)
def test_a_damaged_manifest_is_refused(generation: Generation, text: str, message: str) -> None:
    generation.manifest.write_text(text)
    with pytest.raises(StoreError, match=message):
        manifests.read(generation)


def test_a_wrong_field_is_damage(generation: Generation) -> None:
    manifests.write(generation, MANIFEST)
    data = json.loads(generation.manifest.read_text())
    data["packages"] = [{"unknown": 1}]
    generation.manifest.write_text(json.dumps(data))
    with pytest.raises(StoreError, match="damaged"):
        manifests.read(generation)


def test_the_list_of_files_must_be_the_one_named(generation: Generation) -> None:
    with pytest.raises(StoreError, match="missing"):
        manifests.read_files(generation, MANIFEST)
    (generation.own / manifests.FILES).write_text("{}")
    with pytest.raises(StoreError, match="not the list"):
        manifests.read_files(generation, MANIFEST)
