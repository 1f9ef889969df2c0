"""Small real conda packages and channels, made by the tests."""

import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import zstandard

from envbuild.packages import CondaPackage

FOREIGN = Path(
    os.environ.get("ENVBUILD_TEST_PACKAGES") or Path(__file__).parents[3] / "shared/packages"
)
"""A channel of packages that others made for their own tests, where there is one."""

UPLOADED_MS = 1_700_000_000_000
"""Upload time of packages that are given none: 2023-11-14T22:13:20Z."""


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """One member of a package.

    Attributes:
        content: Its bytes, or the target of a symbolic link.
        mode: Permission bits in the archive.
        link: Whether it is a symbolic link.
        twin: Path of an earlier member with the same content, to which it is a hard link.
        holes: Offset to bytes of a sparse member; `content` is then the whole of it.
        placeholder: The prefix that linking has to replace, or None.
        file_mode: How that is replaced.
    """

    content: bytes = b""
    mode: int = 0o644
    link: bool = False
    twin: str | None = None
    holes: tuple[tuple[int, bytes], ...] = ()
    placeholder: str | None = None
    file_mode: Literal["text", "binary"] = "text"


def sparse(size: int, *chunks: tuple[int, bytes]) -> File:
    """Return a file of some bytes, in the archive only its chunks (offset and bytes)."""
    content = bytearray(size)
    for offset, data in chunks:
        content[offset : offset + len(data)] = data
    return File(content=bytes(content), holes=chunks)


def program(text: str, *, placeholder: str | None = None) -> File:
    """Return an executable text file."""
    return File(content=text.encode(), mode=0o755, placeholder=placeholder)


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A package's archive and its record as a channel's index has it."""

    archive: Path
    record: dict[str, Any]

    def package(self, channel: str, *, md5_only: bool = False) -> CondaPackage:
        """Return it as a lock would, below a channel's canonical address."""
        record = self.record
        return CondaPackage(
            name=record["name"],
            version=record["version"],
            build=record["build"],
            url=f"{channel}/{record['subdir']}/{self.archive.name}",
            sha256=None if md5_only else record["sha256"],
            md5=record["md5"],
            size=record["size"],
            depends=tuple(sorted(record["depends"])),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What goes into a package besides its name.

    Attributes:
        files: Path to member.
        lists: Which file lists it has: `paths.json`, `files`.
        info: More members of `info/`, path to bytes.
        raw: Members put into the payload as they are, in no list (a hostile archive).
        folder: Folder inside the zip that all members of a `.conda` lie in (a broken archive).
        zip64: Whether the zip of a `.conda` has fields for more than 4 GiB.
    """

    files: Mapping[str, File] = field(default_factory=dict)
    lists: tuple[str, ...] = ("paths.json", "files")
    info: Mapping[str, bytes] = field(default_factory=dict)
    raw: tuple[tuple[tarfile.TarInfo, bytes], ...] = ()
    folder: str = ""
    zip64: bool = False


def make_package(
    root: Path,
    name: str,
    version: str = "1.0",
    build: str = "0",
    *,
    content: Content | Mapping[str, File] | None = None,
    subdir: str = "linux-64",
    kind: Literal["conda", "tar.bz2"] = "conda",
    **record: Any,  # noqa: ANN401
) -> Made:
    """Write a package into `root/subdir` and return it with its record.

    Further keywords go into the record and `info/index.json`: depends, constrains, noarch,
    timestamp (milliseconds; None leaves it out), license.
    """
    parts = content if isinstance(content, Content) else Content(files=content or {})
    index: dict[str, Any] = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": int(build.rsplit("_", 1)[-1]) if build[-1].isdigit() else 0,
        "depends": [],
        "constrains": [],
        "subdir": subdir,
        "timestamp": UPLOADED_MS,
        **record,
    }
    index = {key: value for key, value in index.items() if value is not None}
    info = _info(index, parts)
    folder = root / subdir
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{version}-{build}"
    archive = folder / f"{stem}.{kind}"
    payload = [*_members(parts.files), *parts.raw]
    if kind == "conda":
        archive.write_bytes(_conda(stem, info, payload, parts))
    else:
        archive.write_bytes(_tar([*info, *payload], "w:bz2"))
    data = archive.read_bytes()
    return Made(
        archive=archive,
        record={
            **index,
            "sha256": hashlib.sha256(data).hexdigest(),
            "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "size": len(data),
        },
    )


def write_index(
    root: Path, made: Iterable[Made], *, subdirs: Sequence[str] = ("linux-64", "noarch")
) -> None:
    """Write `repodata.json` of every subdir of a channel."""
    records = list(made)
    for subdir in subdirs:
        (root / subdir).mkdir(parents=True, exist_ok=True)
        index: dict[str, Any] = {
            "info": {"subdir": subdir},
            "packages": {},
            "packages.conda": {},
            "repodata_version": 1,
        }
        for one in records:
            if one.record["subdir"] == subdir:
                key = "packages.conda" if one.archive.suffix == ".conda" else "packages"
                index[key][one.archive.name] = one.record
        (root / subdir / "repodata.json").write_text(json.dumps(index), encoding="utf-8")


def _info(index: Mapping[str, Any], parts: Content) -> list[tuple[tarfile.TarInfo, bytes]]:
    members: dict[str, bytes] = {"info/index.json": json.dumps(index).encode()}
    if "files" in parts.lists:
        members["info/files"] = "".join(f"{path}\n" for path in parts.files).encode()
        prefixed = [
            f"{file.placeholder} {file.file_mode} {path}\n"
            for path, file in parts.files.items()
            if file.placeholder is not None
        ]
        if prefixed:
            members["info/has_prefix"] = "".join(prefixed).encode()
    if "paths.json" in parts.lists:
        rows = [_path_row(path, file) for path, file in parts.files.items()]
        members["info/paths.json"] = json.dumps({"paths": rows, "paths_version": 1}).encode()
    members |= {f"info/{path}": data for path, data in parts.info.items()}
    return [_member(path, File(content=data)) for path, data in members.items()]


def _path_row(path: str, file: File) -> dict[str, Any]:
    row: dict[str, Any] = {
        "_path": path,
        "path_type": "softlink" if file.link else "hardlink",
        "sha256": hashlib.sha256(b"" if file.link else file.content).hexdigest(),
        "size_in_bytes": len(file.content),
    }
    if file.placeholder is not None:
        row |= {"prefix_placeholder": file.placeholder, "file_mode": file.file_mode}
    return row


def _members(files: Mapping[str, File]) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [_member(path, file) for path, file in files.items()]


def _member(path: str, file: File) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(path)
    info.mode = file.mode
    if file.link:
        info.type = tarfile.SYMTYPE
        info.linkname = file.content.decode()
        return info, b""
    if file.twin is not None:
        info.type = tarfile.LNKTYPE
        info.linkname = file.twin
        return info, b""
    if file.holes:
        return _sparse_member(info, file)
    info.size = len(file.content)
    return info, file.content


def _sparse_member(info: tarfile.TarInfo, file: File) -> tuple[tarfile.TarInfo, bytes]:
    """Return a member in GNU's sparse format 1.0: a map of the chunks, then the chunks."""
    numbers = [len(file.holes), *(n for at, data in file.holes for n in (at, len(data)))]
    table = "".join(f"{number}\n" for number in numbers).encode()
    data = table + bytes(-len(table) % 512) + b"".join(chunk for _, chunk in file.holes)
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": info.name,
        "GNU.sparse.realsize": str(len(file.content)),
    }
    info.name, info.size = f"GNUSparseFile.0/{info.name}", len(data)
    return info, data


def _tar(members: Iterable[tuple[tarfile.TarInfo, bytes]], mode: Literal["w", "w:bz2"]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _conda(
    stem: str,
    info: Iterable[tuple[tarfile.TarInfo, bytes]],
    payload: Iterable[tuple[tarfile.TarInfo, bytes]],
    content: Content,
) -> bytes:
    out = io.BytesIO()
    compress = zstandard.ZstdCompressor(level=3).compress
    parts = {
        "metadata.json": b'{"conda_pkg_format_version": 2}',
        f"pkg-{stem}.tar.zst": compress(_tar(payload, "w")),
        f"info-{stem}.tar.zst": compress(_tar(info, "w")),
    }
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            member = zipfile.ZipInfo(content.folder + name, (1980, 1, 1, 0, 0, 0))
            with archive.open(member, "w", force_zip64=content.zip64) as file:
                file.write(data)
    return out.getvalue()
