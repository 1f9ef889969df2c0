"""What packages say of their own files against the manifest, and paths that lead outside."""

import contextlib
import csv
import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.findings import Finding, Severity
from envbuild.store import installed
from envbuild.store.installed import Owner, Seen
from envbuild.store.layout import Generation
from envbuild.store.manifest import FileList, FileRow


def disagreements(generation: Generation, listed: FileList, seen: Seen) -> Iterator[Finding]:
    """Yield where a record (`paths.json`, RECORD) and the manifest differ.

    Code: `record-differs`, a note where another package's file took the place, else a warning: the
    file is as it was installed, which `create` has told. A record that cannot be read yields
    nothing here, since it is a changed file itself.

    Args:
        generation: What to look at.
        listed: The manifest's files.
        seen: What lies in the prefix.
    """
    rows = {row.path: row for row in listed.rows}
    with contextlib.suppress(StoreError, OSError, ValueError, csv.Error):
        conda = list(installed.conda_owners(generation.prefix, seen))
        wheels = installed.wheel_owners(generation.prefix, seen, apart_from=conda)
        for owner in (*conda, *wheels):
            yield from _of_owner(owner, rows, listed)


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


def _of_owner(owner: Owner, rows: Mapping[str, FileRow], listed: FileList) -> Iterator[Finding]:
    for path, digest in zip(owner.paths, owner.digests, strict=True):
        row = rows.get(path)
        if digest is None or row is None or row.kind == "link" or row.digest == digest:
            continue
        holder = None if row.package is None else listed.packages[row.package]
        own = holder == owner.label
        yield Finding(
            code="record-differs",
            severity=Severity.WARNING if own else Severity.NOTE,
            where=path,
            what=f"the record of {owner.label} names other content",
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
