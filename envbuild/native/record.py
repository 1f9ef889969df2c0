"""A package's own list of its files against its content."""

import base64
import binascii
import csv
import io
from collections.abc import Iterator, Mapping

import msgspec

from envbuild.native.package import RecordDifference

NO_HASH = "no hash"
_STRONG = frozenset({"sha256", "sha384", "sha512"})
UNHASHED = (".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")
"""Ends of paths that need no hash: the list itself and its signatures."""
_MOST_DIGITS = 18
_MOST_ROWS = 250_000


class _Path(msgspec.Struct, gc=False):
    """One row of `info/paths.json`."""

    path: str = msgspec.field(name="_path")
    path_type: str | None = None
    sha256: str | None = None
    size_in_bytes: int | None = None


class _Paths(msgspec.Struct):
    """What is used of `info/paths.json`."""

    paths: list[_Path]


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
        for number, row in enumerate(csv.reader(io.StringIO(text))):
            if number > _MOST_ROWS:
                message = f"RECORD has more than {_MOST_ROWS} rows"
                raise ValueError(message)
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
    unlisted = (path for path in content if path not in listed and not path.endswith(UNHASHED))
    return (*found, *(RecordDifference(path=path, kind="unlisted") for path in sorted(unlisted)))


def _row(path: str, digest: str, size: str, content: Content) -> Iterator[RecordDifference]:
    if path not in content:
        if not path.endswith(UNHASHED):
            yield RecordDifference(path=path, kind="absent")
        return
    real, real_size = content[path]
    algorithm, equals, value = digest.partition("=")
    if not digest:
        if not path.endswith(UNHASHED):
            yield RecordDifference(path=path, kind="weak", listed=NO_HASH)
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
        rows = msgspec.json.decode(paths, type=_Paths).paths
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"info/paths.json is not what it has to be: {error}"
        raise ValueError(message) from error
    found: list[RecordDifference] = []
    for row in rows:
        path, kind = row.path, row.path_type
        if path not in content:
            if path not in links and kind != "directory":
                found.append(RecordDifference(path=path, kind="absent"))
            continue
        real, size = content[path]
        if row.sha256 not in (None, real) and kind != "softlink":
            found.append(RecordDifference(path=path, kind="hash", listed=row.sha256, found=real))
        elif row.size_in_bytes not in (None, size) and kind == "hardlink":
            told = f"{row.size_in_bytes}"
            found.append(RecordDifference(path=path, kind="size", listed=told, found=f"{size}"))
    known = {row.path for row in rows}
    unlisted = sorted(path for path in content.keys() - known if not path.startswith("info/"))
    return (*found, *(RecordDifference(path=path, kind="unlisted") for path in unlisted))
