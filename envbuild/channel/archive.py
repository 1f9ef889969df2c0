"""Conda archives, written with the same bytes for the same content.

A `.conda` is a zip of two zstd-compressed tars and a version mark; a `.tar.bz2` is one tar. No
clock, user, umask or order of a folder gets into either.
"""

import bz2
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

# A date that zip files of the contents can hold in any time zone (they start at 1980).
_TIME_S = 315619200
_ZIP_TIME = (1980, 1, 2, 0, 0, 0)
_ZSTD_LEVEL = 6
_ZSTD_THREADS = 2
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One file or link of a package.

    Attributes:
        path: Where it goes in a prefix.
        content: The file's bytes; for a link, what it says.
        mode: 0o755 or 0o644; a link's does not count.
        link: Whether it is a symbolic link.
        placeholder: The prefix that its text holds, or empty.
    """

    path: str
    content: bytes
    mode: int = 0o644
    link: bool = False
    placeholder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """Digests and size of an archive."""

    sha256: str
    md5: str
    size: int


def write(
    path: Path, members: Iterable[Member], *, index: Mapping[str, Any], info: Mapping[str, str]
) -> Written:
    """Write a conda archive and return its digests.

    Args:
        path: Where; the name ends in `.conda` or `.tar.bz2`.
        members: What the package holds, in the order in which it is written.
        index: The content of `info/index.json`.
        info: Further files of `info/`, name to text.

    Raises:
        OSError: It cannot be written; half a file may be left.
    """
    files = _Files(index, info)
    if path.name.endswith(".tar.bz2"):
        with bz2.open(path, "wb") as stream, _tar(stream) as tar:
            for member in files.noting(members):
                _add(tar, member)
            for member in files.info():
                _add(tar, member)
    else:
        _write_zip(path, members, files)
    return digests(path)


def digests(path: Path) -> Written:
    """Return an archive's digests and size, reading it once.

    Raises:
        OSError: It cannot be read.
    """
    sha256, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            sha256.update(chunk)
            md5.update(chunk)
            size += len(chunk)
    return Written(sha256=sha256.hexdigest(), md5=md5.hexdigest(), size=size)


class _Files:
    """The list of a package's files, gathered while they are written."""

    def __init__(self, index: Mapping[str, Any], info: Mapping[str, str]) -> None:
        self._index = index
        self._texts = info
        self._paths: list[dict[str, Any]] = []

    def noting(self, members: Iterable[Member]) -> Iterator[Member]:
        """Yield the members and note what `paths.json` says of each."""
        for member in members:
            entry: dict[str, Any] = {"_path": member.path, "path_type": "hardlink"}
            if member.link:
                entry["path_type"] = "softlink"
            else:
                entry["sha256"] = hashlib.sha256(member.content).hexdigest()
                entry["size_in_bytes"] = len(member.content)
            if member.placeholder:
                entry |= {"file_mode": "text", "prefix_placeholder": member.placeholder}
            self._paths.append(entry)
            yield member

    def info(self) -> Iterator[Member]:
        """Yield the files of `info/`, once all members went by."""
        texts = {
            **self._texts,
            "files": "".join(f"{entry['_path']}\n" for entry in self._paths),
            "index.json": _json(self._index),
            "paths.json": _json({"paths": self._paths, "paths_version": 1}),
        }
        for name in sorted(texts):
            yield Member(path=f"info/{name}", content=texts[name].encode())


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def _write_zip(path: Path, members: Iterable[Member], files: _Files) -> None:
    stem = path.name.removesuffix(".conda")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(_zip_entry("metadata.json"), "w") as entry:
            entry.write(b'{"conda_pkg_format_version": 2}')
        with _zstd_tar(archive, f"pkg-{stem}.tar.zst") as tar:
            for member in files.noting(members):
                _add(tar, member)
        with _zstd_tar(archive, f"info-{stem}.tar.zst") as tar:
            for member in files.info():
                _add(tar, member)


def _zip_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.external_attr = 0o100644 << 16
    entry.create_system = 3
    return entry


@contextmanager
def _zstd_tar(archive: zipfile.ZipFile, name: str) -> Iterator[tarfile.TarFile]:
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(level=_ZSTD_LEVEL, threads=_ZSTD_THREADS)
    with (
        archive.open(_zip_entry(name), "w") as entry,
        compressor.stream_writer(entry, closefd=False) as stream,
        _tar(stream) as tar,
    ):
        yield tar


@contextmanager
def _tar(stream: IO[bytes]) -> Iterator[tarfile.TarFile]:
    # Not "w|": its buffer of bytes is copied at every write.
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        yield tar


def _add(tar: tarfile.TarFile, member: Member) -> None:
    entry = tarfile.TarInfo(member.path)
    entry.mtime = _TIME_S
    if member.link:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, member.content.decode(), 0o777
        tar.addfile(entry)
    else:
        entry.size, entry.mode = len(member.content), member.mode
        tar.addfile(entry, io.BytesIO(member.content))
