"""A package's own list of its files against its content."""

import base64
import binascii
import csv
import io
import json
from collections.abc import Iterator, Mapping

from envbuild.native.package import RecordDifference

_STRONG = frozenset({"sha256", "sha384", "sha512"})
_SIGNATURES = (".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")
_MOST_DIGITS = 18

Content = Mapping[str, tuple[str, int]]
"""SHA-256 (hex) and size (bytes) of each file, by path."""


def wheel_differences(record: bytes, content: Content) -> tuple[RecordDifference, ...]:
    """Return where a wheel's RECORD and its files disagree.

    RECORD and its signatures need no row. A hash of SHA-384 or SHA-512 is accepted as it is.

    Args:
        record: Content of RECORD.
        content: The files of the wheel.

    Raises:
        ValueError: It is no CSV table.
    """
    found: list[RecordDifference] = []
    listed: set[str] = set()
    text = record.decode("utf-8", "replace")
    try:
        for row in csv.reader(io.StringIO(text)):
            if not row:
                continue
            path, digest, size = (*row, "", "")[:3]
            path = path.removeprefix("./")
            if path in listed:
                found.append(RecordDifference(path=path, kind="twice"))
            listed.add(path)
            found.extend(_row(path, digest, size, content))
    except csv.Error as error:
        message = f"RECORD is no table: {error}"
        raise ValueError(message) from error
    unlisted = (path for path in content if path not in listed and not path.endswith(_SIGNATURES))
    return (*found, *(RecordDifference(path=path, kind="unlisted") for path in sorted(unlisted)))


def _row(path: str, digest: str, size: str, content: Content) -> Iterator[RecordDifference]:
    if path not in content:
        if not path.endswith(_SIGNATURES):
            yield RecordDifference(path=path, kind="absent")
        return
    real, real_size = content[path]
    algorithm, equals, value = digest.partition("=")
    if not digest:
        if not path.endswith(_SIGNATURES):
            yield RecordDifference(path=path, kind="weak", listed="no hash")
    elif algorithm not in _STRONG or not equals:
        yield RecordDifference(path=path, kind="weak", listed=algorithm[:40])
    elif algorithm == "sha256" and _hex(value) != real:
        yield RecordDifference(path=path, kind="hash", listed=_hex(value), found=real)
    if size.isdigit() and len(size) < _MOST_DIGITS and int(size) != real_size:
        yield RecordDifference(path=path, kind="size", listed=size, found=f"{real_size}")


def _hex(value: str) -> str:
    """Return a digest in RECORD's form as hex digits, or as it is where it is in none."""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except (binascii.Error, ValueError):
        return value[:100]


def conda_differences(
    paths: bytes, content: Content, links: frozenset[str]
) -> tuple[RecordDifference, ...]:
    """Return where a conda package's `info/paths.json` and its files disagree.

    Args:
        paths: Content of `info/paths.json`.
        content: Its files.
        links: Paths of its links.

    Raises:
        ValueError: It is not JSON of that form.
    """
    try:
        rows = [(str(row["_path"]), row) for row in json.loads(paths)["paths"]]
    except (KeyError, TypeError, RecursionError) as error:
        message = "info/paths.json is not what it has to be"
        raise ValueError(message) from error
    found: list[RecordDifference] = []
    for path, row in rows:
        if path not in content:
            if path not in links and row.get("path_type") != "directory":
                found.append(RecordDifference(path=path, kind="absent"))
            continue
        real, size = content[path]
        listed = row.get("sha256")
        if listed is not None and listed != real and row.get("path_type") != "softlink":
            found.append(RecordDifference(path=path, kind="hash", listed=f"{listed}", found=real))
        elif row.get("size_in_bytes") not in (None, size) and row.get("path_type") == "hardlink":
            told = f"{row['size_in_bytes']}"[:40]
            found.append(RecordDifference(path=path, kind="size", listed=told, found=f"{size}"))
    known = {path for path, _ in rows}
    unlisted = sorted(path for path in content.keys() - known if not path.startswith("info/"))
    return (*found, *(RecordDifference(path=path, kind="unlisted") for path in unlisted))
