"""What lies in a prefix, and what its packages say that should: a walk, conda-meta, RECORDs."""

import binascii
import csv
import hashlib
import json
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envbuild.errors import StoreError
from envbuild.native.record import UNHASHED
from envbuild.packages import wheel_label
from envbuild.store.layout import OWN_FOLDER
from envbuild.store.ledger import Ledger, Tree

CLOBBERS = "__clobbers__/"
_ELSEWHERE = ("\n../", '\n"../')
_TAG = re.compile(r"\.dist-info/WHEEL,sha256=([^,]*),")
_NO_HASH = re.compile(r",,\d*$", re.MULTILINE)
_BARE = (*UNHASHED, ".pyc")
_RECORD_PREFIX = "sha256="
_RECORD_LENGTH = len(_RECORD_PREFIX) + 43
_URL_SAFE = str.maketrans("-_", "+/")
_PADDED_HEX = 66
_HEX = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What lies in a prefix; paths are relative to it.

    Attributes:
        files: Path to what lstat(2) says, of everything that is not a folder.
        folders: Path to permission bits.
    """

    files: dict[str, os.stat_result]
    folders: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A package in a prefix, and the files that it claims.

    Attributes:
        label: `conda:NAME` or `pypi:NAME`.
        package: What the ledger knows it by: exact enough that two builds never share it.
        paths: Its files, relative to the prefix.
        digests: SHA-256 hex that it declares for each, None where it declares none.
        sources: Files of the cache that were copied with a new prefix in them: absolute path, and
            the digest that the package declares for it.
        moved: Path in `__clobbers__` to the path that it was meant for.
        listing: SHA-256 hex of its list of files without what differs per prefix, or empty.
        listed: How many of `paths`, the first ones, stand in that list.
        known: What the ledger knows, where it was learned from just this list.
        unhashed: Files that a wheel's list has without a hash, but the list and its signatures.
    """

    label: str
    package: str
    paths: Sequence[str]
    digests: Sequence[str | None]
    sources: tuple[tuple[str, str], ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    listing: str = ""
    listed: int = 0
    known: Tree | None = None
    unhashed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The package's name, without its half."""
        return self.label.split(":", 1)[1]

    @property
    def is_conda(self) -> bool:
        """Whether it came from the conda half."""
        return self.label.startswith("conda:")


def walk(prefix: Path) -> Seen:
    """Look at everything in a prefix but our own folder, following no link.

    Raises:
        OSError: A folder cannot be read.
    """
    root = f"{prefix}/"
    files: dict[str, os.stat_result] = {}
    folders: dict[str, int] = {}
    todo = [""]
    while todo:
        below = todo.pop()
        # by descriptor: the kernel then looks up a name, not each folder of a long path
        descriptor = os.open(root + below, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    path = below + entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        files[path] = entry.stat(follow_symlinks=False)
                    elif path != OWN_FOLDER:
                        folders[path] = entry.stat(follow_symlinks=False).st_mode & 0o7777
                        todo.append(f"{path}/")
        finally:
            os.close(descriptor)
    return Seen(files=files, folders=folders)


def conda_owners(prefix: Path, seen: Seen) -> Iterator[Owner]:
    """Yield what each conda package claims, by name.

    Raises:
        StoreError: A record in conda-meta is not one.
    """
    for path in sorted(path for path in seen.files if path.startswith("conda-meta/")):
        if path.endswith(".json"):
            try:
                record = json.loads((prefix / path).read_bytes())
                if "paths_data" in record:
                    yield _conda_owner(record)
            except (ValueError, KeyError, TypeError) as error:
                message = f"{prefix / path} is no record of an installed package: {error}"
                raise StoreError(message) from error


def _conda_owner(record: Mapping[str, Any]) -> Owner:
    source = str(record["link"]["source"])
    paths: list[str] = []
    digests: list[str | None] = []
    sources: list[tuple[str, str]] = []
    moved: dict[str, str] = {}
    for row in record["paths_data"]["paths"]:
        path = str(row["_path"])
        paths.append(path)
        if row["path_type"] == "softlink":
            digests.append(None)
        else:
            digests.append(row.get("sha256_in_prefix") or row.get("sha256"))
        if row.get("prefix_placeholder") and row.get("sha256"):
            sources.append((_source(source, str(row.get("original_path", path))), row["sha256"]))
        if path.startswith(CLOBBERS):
            moved[path] = str(row.get("original_path", path))
    return Owner(
        label=f"conda:{record['name']}",
        package=f"conda:{record['fn']}:{record.get('sha256') or record.get('md5')}",
        paths=paths,
        digests=digests,
        sources=tuple(sources),
        moved=moved,
    )


def _source(folder: str, path: str) -> str:
    """Return where a file lies in the cache: noarch packages name other folders there."""
    direct = f"{folder}/{path}"
    if not os.path.lexists(direct):
        tail = path.partition("/site-packages/")[2]
        other = f"site-packages/{tail}" if tail else f"python-scripts/{path.rpartition('/')[2]}"
        if os.path.lexists(f"{folder}/{other}"):
            return f"{folder}/{other}"
    return direct


def wheel_owners(
    prefix: Path, seen: Seen, ledger: Ledger, *, apart_from: Iterable[Owner] = ()
) -> list[Owner]:
    """Return what each wheel claims, by path.

    Args:
        prefix: The prefix.
        seen: What lies in it.
        ledger: What was learned of wheels before: a RECORD that is known is not read again.
        apart_from: conda's packages: distributions that they brought are theirs.

    Raises:
        OSError: A RECORD cannot be read.
        StoreError: The ledger cannot be read.
    """
    theirs = {path for owner in apart_from for path in owner.paths}
    records: list[_Record] = []
    for path in sorted(path for path in seen.files if path.endswith(".dist-info/RECORD")):
        folder = posixpath.dirname(path)
        if not posixpath.dirname(folder).endswith("/site-packages"):
            continue  # what a wheel brings along within it (setuptools/_vendor) is a part of it
        if path not in theirs and f"{folder}/METADATA" not in theirs:
            records.append(_Record.read(prefix / path, folder))
    known = ledger.trees([record.package for record in records])
    return [record.owner(known.get(record.package)) for record in records]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Record:
    """A wheel's RECORD, split into what is the same in each prefix and what is not.

    Attributes:
        label: The owner's label.
        package: What the ledger knows the wheel by.
        site: Its site-packages folder, relative to the prefix, with a slash at its end.
        same: Lines of files below it.
        other: Lines of files elsewhere (programs, data).
    """

    label: str
    package: str
    site: str
    same: str
    other: str

    @classmethod
    def read(cls, path: Path, folder: str) -> "_Record":
        """Read a RECORD and split it."""
        site, _, info = folder.rpartition("/")
        name, _, version = info.removesuffix(".dist-info").partition("-")
        text = path.read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        same, other = _split(text)
        tag = _TAG.search(same)
        return cls(
            label=wheel_label(name),
            package=f"pypi:{name}-{version}:{tag[1] if tag else ''}:{site}",
            site=f"{site}/",
            same=same,
            other=other,
        )

    def owner(self, known: Tree | None) -> Owner:
        """Return what the wheel claims."""
        listing = hashlib.sha256(self.same.encode("utf-8", "surrogateescape")).hexdigest()
        if known is not None and known.listing == listing:
            paths = known.paths[: known.listed]
            digests = [digest or None for digest in known.digests[: known.listed]]
        else:
            known = None
            paths, digests = self._rows(self.same)
        more, theirs = self._rows(self.other)
        bare, _ = self._rows("\n".join([*_bare(self.same), *_bare(self.other)]))
        return Owner(
            label=self.label,
            package=self.package,
            paths=[*paths, *more],
            digests=[*digests, *theirs],
            listing=listing,
            listed=len(paths),
            known=known,
            unhashed=tuple(path for path in bare if not path.endswith(_BARE)),
        )

    def _rows(self, text: str) -> tuple[list[str], list[str | None]]:
        rows = [row for row in csv.reader(text.splitlines(keepends=True)) if row]
        paths = [
            posixpath.normpath(self.site + row[0]) if ".." in row[0] else self.site + row[0]
            for row in rows
        ]
        return paths, _hex_digests([row[1] if len(row) > 1 else "" for row in rows])


def _split(text: str) -> tuple[str, str]:
    """Return the lines of a RECORD that are below its site-packages, and the others."""
    text = f"\n{text}"
    other: list[str] = []
    for mark in _ELSEWHERE:
        start = text.find(mark)
        while start >= 0:
            end = text.find("\n", start + 1)
            end = len(text) if end < 0 else end
            other.append(text[start + 1 : end])
            text = text[:start] + text[end:]
            start = text.find(mark, start)
    return text[1:], "\n".join(other)


def _bare(text: str) -> Iterator[str]:
    """Yield the lines of a RECORD that have no hash, looking at no others."""
    for match in _NO_HASH.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        if start < match.start():
            yield text[start : match.end()]


def _hex_digests(declared: Sequence[str]) -> list[str | None]:
    """Return RECORD's digests (unpadded URL-safe base64 of SHA-256) as hex; None for others.

    All of a file at once: with one more character each is 33 bytes, the last of them noise.
    """
    good = [_is_sha256(text) for text in declared]
    joined = "".join(
        f"{text[len(_RECORD_PREFIX) :]}A" for text, ok in zip(declared, good, strict=True) if ok
    )
    try:
        text = binascii.a2b_base64(joined.translate(_URL_SAFE), strict_mode=True).hex()
    except binascii.Error:
        return [None] * len(declared)
    places = iter(range(0, len(text), _PADDED_HEX))
    return [text[(at := next(places)) : at + _HEX] if ok else None for ok in good]


def _is_sha256(text: str) -> bool:
    return len(text) == _RECORD_LENGTH and text.startswith(_RECORD_PREFIX)


def is_link(status: os.stat_result) -> bool:
    """Tell whether this is a symbolic link."""
    return stat.S_ISLNK(status.st_mode)
