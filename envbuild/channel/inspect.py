"""Reading conda archives of others: what they say of themselves, and whether they can be trusted.

py-rattler panics on an archive whose members lie in a folder and fails a whole install on one
without a list of files, so each archive is looked at before it gets into a channel.
"""

import json
import posixpath
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import InputError

SUFFIXES = (".conda", ".tar.bz2")

_SUBDIR = re.compile(r"noarch|[a-z]+-[a-z0-9_]+")
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_TEXT_BYTES = 64 << 20


class _Bad(Exception):
    """Why an archive is refused; the file's name is put before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contents:
    """What lies in an archive.

    Attributes:
        info: Texts of the files in `info/` that are needed, by name.
        files: Kind of every path outside of `info/`: `file`, `link` or `folder`.
    """

    info: dict[str, bytes]
    files: dict[str, str]


def index_of(path: Path) -> dict[str, Any]:
    """Return an archive's `info/index.json`, reading no more than is needed for it.

    Raises:
        InputError: It is no conda archive, or its name does not fit what it says.
    """
    with _named(path):
        return _index(path, _info_file(path, "index.json"))


def about_of(path: Path) -> dict[str, Any]:
    """Return an archive's `info/about.json`.

    Raises:
        InputError: It is no conda archive, or has none.
    """
    with _named(path):
        about = _json(_info_file(path, "about.json"), "about.json")
        if not isinstance(about, dict):
            message = "info/about.json holds no mapping"
            raise _Bad(message)
        return about


def check(path: Path) -> dict[str, Any]:
    """Return an archive's `info/index.json` if all of the archive can be installed.

    Raises:
        InputError: It is no conda archive; a member would be written outside of the prefix; it
            has no list of files, or one that its contents do not match.
    """
    with _named(path):
        contents = _contents(path)
        index = _index(path, contents.info)
        _check_files(contents)
        return index


@contextmanager
def _named(path: Path) -> Iterator[None]:
    from zstandard import ZstdError

    try:
        yield
    except _Bad as error:
        message = f"{path}: {error}"
        raise InputError(message, source=str(path)) from error
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, ZstdError) as error:
        message = f"{path} cannot be read as a conda archive: {error}"
        raise InputError(message, source=str(path)) from error


def _info_file(path: Path, name: str) -> dict[str, bytes]:
    """Return one file of `info/` by its name, or nothing."""
    info: dict[str, bytes] = {}

    def keep(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
        if member.name == f"info/{name}":
            info[name] = _content(tar, member)
        return bool(info)

    _visit(path, keep, parts=("info",))
    return info


def _contents(path: Path) -> _Contents:
    contents = _Contents(info={}, files={})

    def keep(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
        name = _safe(member)
        if name in {"info/index.json", "info/paths.json", "info/files"}:
            contents.info[name.removeprefix("info/")] = _content(tar, member)
        elif name != "info" and not name.startswith("info/"):
            contents.files[name] = _kind(member)
        return False

    _visit(path, keep, parts=("info", "pkg"))
    return contents


def _visit(
    path: Path, visit: Callable[[tarfile.TarFile, tarfile.TarInfo], bool], *, parts: tuple[str, ...]
) -> None:
    """Show every member of an archive to a function until it returns True."""
    if path.name.endswith(".tar.bz2"):
        with tarfile.open(path, "r|bz2") as tar:
            any(visit(tar, member) for member in tar)
    elif path.name.endswith(".conda"):
        with zipfile.ZipFile(path) as archive:
            for part in parts:
                _visit_part(archive, part, visit)
    else:
        message = f"a conda archive's name ends in {' or '.join(SUFFIXES)}"
        raise _Bad(message)


def _visit_part(
    archive: zipfile.ZipFile,
    part: str,
    visit: Callable[[tarfile.TarFile, tarfile.TarInfo], bool],
) -> None:
    from zstandard import ZstdDecompressor

    names = archive.namelist()
    nested = [name for name in names if "/" in name.strip("/")]
    if nested:
        message = f"its members must lie at its root, but one is {nested[0]}"
        raise _Bad(message)
    found = [name for name in names if name.startswith(f"{part}-") and name.endswith(".tar.zst")]
    if len(found) != 1:
        message = f"it must hold one {part}-*.tar.zst, and holds {len(found)}"
        raise _Bad(message)
    with (
        archive.open(found[0]) as entry,
        ZstdDecompressor().stream_reader(entry, read_across_frames=True) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        any(visit(tar, member) for member in tar)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.isreg() else None
    if file is None or member.size > _TEXT_BYTES:
        message = f"{member.name} is no file, or too large"
        raise _Bad(message)
    return file.read()


def _safe(member: tarfile.TarInfo) -> str:
    """Return a member's path if neither it nor its link leaves the prefix."""
    name = posixpath.normpath(member.name)
    if name.startswith(("/", "../")) or name == "..":
        message = f"{member.name} would be written outside of the prefix"
        raise _Bad(message)
    if member.issym():
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        if not member.linkname:
            message = f"{name} is a link to nothing"
            raise _Bad(message)
        if target.startswith(("/", "../")) or target == "..":
            message = f"{name} is a link to {member.linkname}, outside of the prefix"
            raise _Bad(message)
    elif not (member.isreg() or member.isdir() or member.islnk()):
        message = f"{name} is neither file, link nor folder"
        raise _Bad(message)
    return name


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym():
        return "link"
    return "folder" if member.isdir() else "file"


def _index(path: Path, info: dict[str, bytes]) -> dict[str, Any]:
    index = _json(info, "index.json")
    if not isinstance(index, dict):
        message = "info/index.json holds no mapping"
        raise _Bad(message)
    index.setdefault("subdir", "noarch" if index.get("platform") is None else None)
    for key in ("name", "version", "build", "subdir"):
        if not isinstance(index.get(key), str):
            message = f"info/index.json has no {key}"
            raise _Bad(message)
    if not isinstance(index.get("build_number"), int):
        message = "info/index.json has no build_number"
        raise _Bad(message)
    for key in ("depends", "constrains"):
        value = index.get(key, [])
        if not isinstance(value, list) or not all(isinstance(spec, str) for spec in value):
            message = f"info/index.json: {key} is no list of texts"
            raise _Bad(message)
    if not _NAME.fullmatch(index["name"]) or not _SUBDIR.fullmatch(index["subdir"]):
        message = f"info/index.json: {index['name']!r} for {index['subdir']!r} is no package"
        raise _Bad(message)
    stem = f"{index['name']}-{index['version']}-{index['build']}"
    if path.name not in {f"{stem}{suffix}" for suffix in SUFFIXES}:
        message = f"by its info/index.json it should be called {stem}"
        raise _Bad(message)
    return index


def _json(info: dict[str, bytes], name: str) -> Any:  # noqa: ANN401
    if name not in info:
        message = f"it has no info/{name}"
        raise _Bad(message)
    try:
        return json.loads(info[name])
    except ValueError as error:
        message = f"info/{name} is no JSON: {error}"
        raise _Bad(message) from error


def _check_files(contents: _Contents) -> None:
    """Raise unless the list of files names what is there, and nothing is written through a link."""
    for name in contents.files:
        parent = posixpath.dirname(name)
        while parent:
            if contents.files.get(parent, "folder") != "folder":
                message = f"{name} would be written through {parent}, which is no folder"
                raise _Bad(message)
            parent = posixpath.dirname(parent)
    for name, kind in _listed(contents.info):
        there = contents.files.get(name)
        if there is None:
            message = f"its list of files names {name}, which is not there"
            raise _Bad(message)
        if kind is not None and there != kind:
            message = f"{name} is a {there}, but its list of files says {kind}"
            raise _Bad(message)


def _listed(info: dict[str, bytes]) -> Iterator[tuple[str, str | None]]:
    """Yield path and kind (None: not told) of every file that an archive lists."""
    if "paths.json" not in info:
        if "files" not in info:
            message = "it has neither info/paths.json nor info/files"
            raise _Bad(message)
        yield from ((line, None) for line in info["files"].decode().splitlines() if line)
        return
    kinds = {"hardlink": "file", "softlink": "link", "directory": "folder"}
    try:
        for entry in _json(info, "paths.json")["paths"]:
            yield posixpath.normpath(entry["_path"]), kinds[entry["path_type"]]
    except (KeyError, TypeError) as error:
        message = f"info/paths.json is damaged ({error!r})"
        raise _Bad(message) from error
