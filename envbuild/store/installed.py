"""What lies in a prefix, and what its packages say that should: a walk, conda-meta, RECORDs."""

import binascii
import csv
import json
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envbuild.errors import StoreError
from envbuild.store.layout import OWN_FOLDER

CLOBBERS = "__clobbers__/"
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
        cached_as: Folder of its extracted archive (conda), or empty.
        paths: Its files, relative to the prefix.
        digests: SHA-256 hex that it declares for each, None where it declares none.
        sources: Files of the cache that were copied with a new prefix in them: absolute path, and
            the digest that the package declares for it.
        moved: Path in `__clobbers__` to the path that it was meant for.
    """

    label: str
    package: str
    cached_as: str = ""
    paths: Sequence[str]
    digests: Sequence[str | None]
    sources: tuple[tuple[str, str], ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)

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
    root = os.fspath(prefix)
    start = len(root) + 1
    files: dict[str, os.stat_result] = {}
    folders: dict[str, int] = {}
    todo = [root]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                path = entry.path
                if entry.is_dir(follow_symlinks=False):
                    if path[start:] != OWN_FOLDER:
                        folders[path[start:]] = entry.stat(follow_symlinks=False).st_mode & 0o7777
                        todo.append(path)
                else:
                    files[path[start:]] = entry.stat(follow_symlinks=False)
    return Seen(files=files, folders=folders)


def conda_owners(prefix: Path, seen: Seen) -> Iterator[Owner]:
    """Yield what each conda package claims, by name.

    Raises:
        StoreError: A record in conda-meta is not one.
    """
    for path in sorted(seen.files):
        if path.startswith("conda-meta/") and path.endswith(".json"):
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
        cached_as=source,
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


def wheel_owners(prefix: Path, seen: Seen, *, apart_from: Iterable[Owner] = ()) -> Iterator[Owner]:
    """Yield what each wheel claims, by path.

    Args:
        prefix: The prefix.
        seen: What lies in it.
        apart_from: conda's packages: distributions that they brought are theirs.
    """
    theirs = {path for owner in apart_from for path in owner.paths}
    for path in sorted(seen.files):
        if path.endswith(".dist-info/RECORD") and path not in theirs:
            folder = posixpath.dirname(path)
            if f"{folder}/METADATA" not in theirs:
                yield _wheel_owner(prefix / path, folder)


def _wheel_owner(record: Path, folder: str) -> Owner:
    site, _, info = folder.rpartition("/")
    name, _, version = info.removesuffix(".dist-info").partition("-")
    with record.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    prefix = f"{site}/"
    paths = [
        posixpath.normpath(prefix + row[0]) if row[0].startswith("../") else prefix + row[0]
        for row in rows
    ]
    digests = _hex_digests([row[1] if len(row) > 1 else "" for row in rows])
    tag = next((digest for row, digest in zip(rows, digests, strict=True) if _is_tag(row[0])), "")
    return Owner(
        label=f"pypi:{name.lower().replace('_', '-')}",
        package=f"pypi:{name}-{version}:{tag}:{site}",
        paths=paths,
        digests=digests,
    )


def _is_tag(path: str) -> bool:
    return path.endswith(".dist-info/WHEEL")


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
