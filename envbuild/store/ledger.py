"""What was hashed and has not changed since: the store's memory, so that nothing is hashed twice.

A row says that a file in a cache, known by inode, size and time of change, had a certain content.
Generations are hard links to the caches, so one look with stat(2) tells whether the content of an
installed file is known. Linking changes ctime, so ctime takes no part. The ledger also keeps the
first SHA-256 of archives for which a channel publishes only md5.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from envbuild.errors import FetchError, StoreError
from envbuild.tools.files import share
from envbuild.tools.locks import bounded

_BUSY_S = 30.0
_GRACE_S = 5.0
_Answer = TypeVar("_Answer")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS trees (package TEXT PRIMARY KEY, columns TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS archives (
  archive TEXT PRIMARY KEY, sha256 TEXT NOT NULL, first_seen TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS wheels (half TEXT PRIMARY KEY) STRICT;
PRAGMA user_version = 1;
"""
_VERSION = 1
_CODES = "CREATE TABLE IF NOT EXISTS codes (package TEXT PRIMARY KEY, files TEXT NOT NULL) STRICT"


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
        marks = ",".join("?" * len(packages))
        query = f"SELECT package, columns FROM trees WHERE package IN ({marks})"  # noqa: S608
        found = self._do(lambda to: to.execute(query, tuple(packages)).fetchall())
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
        self._do(lambda to: to.executemany("INSERT OR REPLACE INTO trees VALUES (?, ?)", rows))

    def texts(self, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return what was read in packages' files (their GPU code, what they link to), by path.

        Args:
            keys: Packages, each with what was read.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not keys or not self._path.exists():
            return {}
        marks = ",".join("?" * len(keys))
        query = f"SELECT package, files FROM codes WHERE package IN ({marks})"  # noqa: S608
        found = self._do(lambda to: _with_codes(to).execute(query, tuple(keys)).fetchall())
        return {package: json.loads(files) for package, files in found}

    def note_texts(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        """Keep what was read in packages' files.

        Raises:
            StoreError: The ledger cannot be written.
        """
        rows = [(package, json.dumps(files)) for package, files in texts.items()]
        query = "INSERT OR REPLACE INTO codes VALUES (?, ?)"
        self._do(lambda to: _with_codes(to).executemany(query, rows))

    def forget(self, packages: Sequence[str]) -> None:
        """Drop what is known of these packages: their cache entries are gone.

        Raises:
            StoreError: The ledger cannot be written.
        """
        rows = [(package,) for package in packages]
        self._do(lambda to: to.executemany("DELETE FROM trees WHERE package = ?", rows))

    def doubt(self) -> None:
        """Drop what is known of all files: some were found changed although nothing showed it.

        Raises:
            StoreError: The ledger cannot be written.
        """
        if self._path.exists():
            self._do(lambda to: to.execute("DELETE FROM trees"))

    def has_wheels(self, half: str) -> bool:
        """Tell whether a PyPI half (by digest) was installed from this store's cache before.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not self._path.exists():
            return False
        query = "SELECT 1 FROM wheels WHERE half = ?"
        return self._do(lambda to: to.execute(query, (half,)).fetchone()) is not None

    def note_wheels(self, half: str) -> None:
        """Keep that a PyPI half (by digest) is in this store's cache.

        Raises:
            StoreError: The ledger cannot be written.
        """
        if not self.has_wheels(half):
            self._do(lambda to: to.execute("INSERT OR IGNORE INTO wheels VALUES (?)", (half,)))

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

        def kept(to: sqlite3.Connection) -> tuple[str, str]:
            to.execute("INSERT OR IGNORE INTO archives VALUES (?, ?, ?)", (archive, sha256, when))
            query = "SELECT sha256, first_seen FROM archives WHERE archive = ?"
            found: tuple[str, str] = to.execute(query, (archive,)).fetchone()
            return found

        row = self._do(kept)
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
        marks = ",".join("?" * len(archives))
        query = f"SELECT archive, sha256 FROM archives WHERE archive IN ({marks})"  # noqa: S608
        return dict(self._do(lambda to: to.execute(query, tuple(archives)).fetchall()))

    def _do(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """Do one transaction; also where the file's locks never return, it ends.

        Raises:
            StoreError: The ledger cannot be read or written, or its file system does not answer.
        """
        answer: _Answer = bounded(lambda: self._done(work), _BUSY_S + _GRACE_S, f"{self._path}")
        return answer

    def _done(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    connection.executescript(_SCHEMA)
                    share(self._path, self._path)
                elif version != _VERSION:
                    message = f"{self._path} is of another version of envbuild ({version})"
                    raise StoreError(message, hint="use a newer envbuild, or another --store")
                with connection:
                    return work(connection)
        except sqlite3.Error as error:
            message = f"{self._path}: {error}"
            hint = "if it is damaged, remove it: files are then hashed once more"
            raise StoreError(message, hint=hint) from error


def _with_codes(to: sqlite3.Connection) -> sqlite3.Connection:
    """Return a connection to a ledger that may be older than this table, which it then gets."""
    to.execute(_CODES)
    return to


def _columns(tree: Tree) -> dict[str, object]:
    return {name: getattr(tree, name) for name in Tree.__dataclass_fields__}
