"""What packages say of their own files against the manifest, and paths that lead outside."""

import base64
import contextlib
import csv
import json
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from envbuild.findings import Finding, Severity
from envbuild.store.layout import Generation
from envbuild.store.manifest import FileList, FileRow

_SHA256 = "sha256="


def disagreements(generation: Generation, listed: FileList) -> Iterator[Finding]:
    """Yield where a record (`paths.json` as conda-meta keeps it, RECORD) and the manifest differ.

    Code: `record-differs`, a note where another package's file took the place, else a warning: the
    file is as it was installed, which `create` has told. A record that cannot be read yields
    nothing here, since it is a changed file itself.
    """
    rows = {row.path: row for row in listed.rows}
    for row in listed.rows:
        owner = _owner(row, listed)
        record = generation.prefix / row.path
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, csv.Error):
            if row.path.startswith("conda-meta/") and row.path.endswith(".json"):
                label, claims = _conda_claims(record)
                yield from _compared(label, claims, rows, listed)
            elif row.path.endswith(".dist-info/RECORD") and owner.startswith("pypi:"):
                site = posixpath.dirname(posixpath.dirname(row.path))
                yield from _compared(owner, _wheel_claims(record, site), rows, listed)


def outside(generation: Generation, listed: FileList) -> Iterator[Finding]:
    """Yield what makes Python look outside of the generation: `.pth` lines, editable installs.

    Code: `path-outside`, a warning.
    """
    for row in listed.rows:
        if row.kind != "file" or "site-packages/" not in row.path:
            continue
        found: list[str] = []
        with contextlib.suppress(OSError, ValueError):
            if row.path.endswith(".pth"):
                found = list(_lines_outside(generation.prefix / row.path, generation.prefix))
            elif row.path.endswith(".dist-info/direct_url.json"):
                found = list(_editable(generation.prefix / row.path))
        for path in found:
            yield Finding(
                code="path-outside",
                severity=Severity.WARNING,
                where=row.path,
                what=f"makes Python import from {path}",
                why="what lies there is neither locked nor verified",
            )


def _owner(row: FileRow, listed: FileList) -> str:
    return "envbuild" if row.package is None else listed.packages[row.package]


def _conda_claims(record: Path) -> tuple[str, Iterator[tuple[str, str]]]:
    """Return a conda package's label, and path and SHA-256 hex that it says of its files."""
    data = json.loads(record.read_bytes())
    claims = (
        (row["_path"], row.get("sha256_in_prefix") or row.get("sha256") or "")
        for row in data["paths_data"]["paths"]
    )
    return f"conda:{data['name']}", claims


def _wheel_claims(record: Path, site: str) -> Iterator[tuple[str, str]]:
    """Yield path and SHA-256 hex of what a wheel says of its files."""
    with record.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if len(row) > 1 and row[1].startswith(_SHA256):
                digest = base64.urlsafe_b64decode(f"{row[1].removeprefix(_SHA256)}=").hex()
                path = f"{site}/{row[0]}"
                yield posixpath.normpath(path) if row[0].startswith("../") else path, digest


def _compared(
    label: str,
    claims: Iterable[tuple[str, str]],
    rows: Mapping[str, FileRow],
    listed: FileList,
) -> Iterator[Finding]:
    for path, digest in claims:
        row = rows.get(path)
        if row is None or row.kind == "link" or not digest or row.digest == digest:
            continue
        holder = _owner(row, listed)
        own = holder == label
        yield Finding(
            code="record-differs",
            severity=Severity.WARNING if own else Severity.NOTE,
            where=path,
            what=f"the record of {label} names other content",
            why="it was so when it was installed" if own else f"the content is {holder}'s",
        )


def _lines_outside(path: Path, prefix: Path) -> Iterator[str]:
    """Yield the folders outside that a `.pth` file adds (site.py: a line each, or code)."""
    root = os.path.realpath(prefix)
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        text = line.strip()
        if text and not text.startswith(("#", "import ", "import\t")):
            folder = posixpath.normpath(posixpath.join(os.path.realpath(path.parent), text))
            if folder != root and not folder.startswith(f"{root}/"):
                yield folder


def _editable(path: Path) -> Iterator[str]:
    data = json.loads(path.read_bytes())
    if isinstance(data, dict) and (data.get("dir_info") or {}).get("editable"):
        yield str(data.get("url"))
