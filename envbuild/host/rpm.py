"""Versions of packages in rpm's own database, read without rpm.

rpm keeps it in SQLite since Fedora 33 and RHEL 9: a table `Packages` of headers, and one of names
(rpm, lib/backend/sqlite.c). A header is two counts, an index of tags, and their data, all numbers
with the highest byte first (rpm, docs/manual/format_header.md).
"""

import struct
from collections.abc import Collection, Iterator
from pathlib import Path

from envbuild.host.readings import NoAnswer, Reading, Unsupported, Value
from envbuild.host.tree import Tree

_PLACES = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite")
_OLDER = ("usr/lib/sysimage/rpm/Packages", "var/lib/rpm/Packages", "var/lib/rpm/Packages.db")
_ENTRY = struct.Struct(">IIII")
_VERSION = 1001
_QUESTION = (
    "SELECT Packages.blob FROM Name JOIN Packages ON Packages.hnum = Name.hnum WHERE Name.key = ?"
)
_MOST_ENTRIES = 65_536


def versions(tree: Tree, names: Collection[str]) -> Reading[dict[str, str]]:
    """Return the versions of packages by their names; those that are not installed are left out.

    The file is opened as one that does not change, so nothing is written beside it: what rpm is
    just writing is not seen.

    Args:
        tree: The root of the system.
        names: Names of packages.
    """
    path = next((one for one in _PLACES if tree.has(one)), None)
    if path is None:
        older = next((one for one in _OLDER if tree.has(one)), None)
        if older is not None:
            return NoAnswer(f"/{older} is of a form that only rpm reads")
        return Unsupported("there is no database of rpm")
    import sqlite3

    try:
        return Value(dict(_found(tree.at(path), names)))
    except (sqlite3.Error, struct.error, IndexError, UnicodeDecodeError) as error:
        return NoAnswer(f"/{path}: {error}")
    except OSError as error:
        return tree.silence(path, error)


def _found(place: Path, names: Collection[str]) -> Iterator[tuple[str, str]]:
    import sqlite3
    from contextlib import closing

    place.open("rb").close()  # SQLite's own error does not say that one may not read it
    address = f"{place.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        for name in names:
            for (header,) in database.execute(_QUESTION, (name,)):
                yield name, _text(bytes(header), _VERSION)


def _text(header: bytes, wanted: int) -> str:
    """Return a text of a header by its tag.

    Raises:
        IndexError: It has no such tag, or ends early.
    """
    count, _ = struct.unpack_from(">II", header)
    data = 8 + count * _ENTRY.size
    if count > _MOST_ENTRIES or data > len(header):
        message = "a header ends early"
        raise IndexError(message)
    for number in range(count):
        tag, _, offset, _ = _ENTRY.unpack_from(header, 8 + number * _ENTRY.size)
        if tag == wanted:
            return header[data + offset :].partition(b"\0")[0].decode()
    message = f"a header has no tag {wanted}"
    raise IndexError(message)
