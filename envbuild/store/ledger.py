"""What was hashed and has not changed since: the store's memory, so that nothing is hashed twice.

A row says that a file in a cache, known by inode, size and time of change, had a certain content.
Generations are hard links to the caches, so one look with stat(2) tells whether the content of an
installed file is known. Linking changes ctime, so ctime takes no part. The ledger also keeps the
first SHA-256 of archives for which a channel publishes only md5.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import FetchError, StoreError

_BUSY_S = 60.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS trees (package TEXT PRIMARY KEY, columns TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS archives (
  archive TEXT PRIMARY KEY, sha256 TEXT NOT NULL, first_seen TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS wheels (half TEXT PRIMARY KEY) STRICT;
PRAGMA user_version = 1;
"""
_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """What is known of a package's files in a cache: columns, because rows cost more to read.

    Attributes:
        listing: SHA-256 hex of the package's own list of files, without what differs per prefix;
            empty where that list is read each time.
        listed: How many of the files, the first ones, stand in that list.
        paths: Files.
        inodes: Their inode numbers; 0 where a file is not shared with a cache.
        sizes: Their bytes.
        mtimes_ns: Times of their last change, nanoseconds.
        digests: SHA-256 hex of their contents, found equal to what the package declares.
    """

    listing: str = ""
    listed: int = 0
    paths: list[str]
    inodes: list[int]
    sizes: list[int]
    mtimes_ns: list[int]
    digests: list[str]


class Ledger:
    """The ledger of a store; each call is one transaction, so that processes may share it."""

    def __init__(self, path: Path) -> None:
        """Remember the file; it is made when something is written."""
        self._path = path

    def trees(self, packages: Sequence[str]) -> dict[str, Tree]:
        """Return what is known of these packages' files; a package never seen has no entry.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not self._path.exists():
            return {}
        with self._open() as connection:
            marks = ",".join("?" * len(packages))
            query = f"SELECT package, columns FROM trees WHERE package IN ({marks})"  # noqa: S608
            found = connection.execute(query, tuple(packages)).fetchall()
        return {package: Tree(**json.loads(columns)) for package, columns in found}

    def remember(self, trees: Mapping[str, Tree]) -> None:
        """Keep what was hashed; what was known of these packages is replaced.

        Raises:
            StoreError: The ledger cannot be written.
        """
        if not trees:
            return
        rows = [
            (package, json.dumps(_columns(tree), separators=(",", ":"), ensure_ascii=False))
            for package, tree in trees.items()
        ]
        with self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO trees VALUES (?, ?)", rows)

    def forget(self, packages: Sequence[str]) -> None:
        """Drop what is known of these packages: their cache entries are gone.

        Raises:
            StoreError: The ledger cannot be written.
        """
        with self._open() as connection:
            connection.executemany(
                "DELETE FROM trees WHERE package = ?", [(package,) for package in packages]
            )

    def doubt(self) -> None:
        """Drop what is known of all files: some were found changed although nothing showed it.

        Raises:
            StoreError: The ledger cannot be written.
        """
        if self._path.exists():
            with self._open() as connection:
                connection.execute("DELETE FROM trees")

    def has_wheels(self, half: str) -> bool:
        """Tell whether a PyPI half (by digest) was installed from this store's cache before.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not self._path.exists():
            return False
        with self._open() as connection:
            row = connection.execute("SELECT 1 FROM wheels WHERE half = ?", (half,)).fetchone()
        return row is not None

    def note_wheels(self, half: str) -> None:
        """Keep that a PyPI half (by digest) is in this store's cache.

        Raises:
            StoreError: The ledger cannot be written.
        """
        if not self.has_wheels(half):
            with self._open() as connection:
                connection.execute("INSERT OR IGNORE INTO wheels VALUES (?)", (half,))

    def first_digest(self, archive: str, sha256: str, *, when: str) -> None:
        """Keep the SHA-256 of an archive that has only md5, or compare with the one kept.

        Args:
            archive: The archive's canonical address with its md5.
            sha256: Hex digest of what was downloaded now.
            when: The instant, RFC 3339.

        Raises:
            FetchError: It is another one than the first time.
            StoreError: The ledger cannot be read or written.
        """
        with self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO archives VALUES (?, ?, ?)", (archive, sha256, when)
            )
            row = connection.execute(
                "SELECT sha256, first_seen FROM archives WHERE archive = ?", (archive,)
            ).fetchone()
        if row[0] != sha256:
            message = f"{archive} has SHA-256 {sha256}, but had {row[0]} on {row[1]}"
            hint = "its channel publishes only md5 and the content changed: find out why first"
            raise FetchError(message, hint=hint)

    def digests(self, archives: Sequence[str]) -> dict[str, str]:
        """Return the SHA-256 first seen of each archive that was seen.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not archives or not self._path.exists():
            return {}
        with self._open() as connection:
            marks = ",".join("?" * len(archives))
            query = f"SELECT archive, sha256 FROM archives WHERE archive IN ({marks})"  # noqa: S608
            return dict(connection.execute(query, tuple(archives)).fetchall())

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    connection.executescript(_SCHEMA)
                elif version != _VERSION:
                    message = f"{self._path} is of another version of envbuild ({version})"
                    raise StoreError(message, hint="use a newer envbuild, or another --store")
                with connection:
                    yield connection
        except sqlite3.Error as error:
            message = f"{self._path}: {error}"
            hint = "if it is damaged, remove it: files are then hashed once more"
            raise StoreError(message, hint=hint) from error


def _columns(tree: Tree) -> dict[str, object]:
    return {name: getattr(tree, name) for name in Tree.__dataclass_fields__}
