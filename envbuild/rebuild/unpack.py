"""Source archives, unpacked: only files, folders and links that stay inside."""

import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from envbuild.errors import InputError

_LEAST_LIMIT = 1 << 30
_MOST_EXPANSION = 200


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive (`.tar.*`, `.zip`) into a new folder; times stay, modes are made plain.

    Raises:
        InputError: It is no archive, or a member of it would lie elsewhere or be a device.
    """
    folder.mkdir(parents=True)
    limit = max(_LEAST_LIMIT, archive.stat().st_size * _MOST_EXPANSION)
    try:
        if zipfile.is_zipfile(archive):
            _zip(archive, folder, limit)
        else:
            _tar(archive, folder, limit)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, UnicodeError) as error:
        message = f"{archive.name}: no archive that can be read: {error}"
        raise InputError(message, source=f"{archive}") from error


def newest(folder: Path) -> int:
    """Return the time of the newest file of a folder, in whole seconds since 1970."""
    return max((int(path.lstat().st_mtime) for path in _files(folder)), default=0)


def set_times(folder: Path, moment: int) -> None:
    """Give everything in a folder one time (seconds since 1970)."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment, moment), follow_symlinks=False)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield path


def _zip(archive: Path, folder: Path, limit: int) -> None:
    with zipfile.ZipFile(archive) as opened:
        infos = opened.infolist()
        _check_size(archive, sum(info.file_size for info in infos), limit)
        for info in infos:
            mode = info.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise _hostile(archive, info.filename, "is a link")
            _check(archive, info.filename)
            path = Path(opened.extract(info, folder))
            if not info.is_dir():
                path.chmod(0o755 if mode & 0o100 else 0o644)


def _tar(archive: Path, folder: Path, limit: int) -> None:
    total = 0
    with tarfile.open(archive) as opened:
        for info in opened:
            _check(archive, info.name)
            total += info.size
            _check_size(archive, total, limit)
            path = folder / info.name
            _check_parent(archive, path.parent, folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            if info.isdir():
                path.mkdir(exist_ok=True)
            elif info.isfile():
                content = opened.extractfile(info)
                with path.open("xb") as file:
                    if content is not None:
                        shutil.copyfileobj(content, file)
                path.chmod(0o755 if info.mode & 0o100 else 0o644)
                os.utime(path, (info.mtime, info.mtime))
            elif info.issym():
                _check(archive, posixpath.join(posixpath.dirname(info.name), info.linkname))
                path.symlink_to(info.linkname)
            elif info.islnk():
                _check(archive, info.linkname)
                _check_parent(archive, (folder / info.linkname).parent, folder)
                shutil.copy2(folder / info.linkname, path, follow_symlinks=False)
            else:
                raise _hostile(archive, info.name, "is a device")


def _check(archive: Path, name: str) -> None:
    """Refuse a path that leaves the folder."""
    normal = posixpath.normpath(name)
    if name.startswith("/") or normal == ".." or normal.startswith("../") or "\0" in name:
        raise _hostile(archive, name, "lies outside")


def _check_parent(archive: Path, parent: Path, folder: Path) -> None:
    """Refuse a path that leaves the folder over links that are there already."""
    if not parent.resolve().is_relative_to(folder.resolve()):
        raise _hostile(archive, f"{parent.relative_to(folder)}", "lies outside")


def _check_size(archive: Path, size: int, limit: int) -> None:
    if size > limit:
        message = f"{archive.name}: its content is larger than {limit >> 20} MiB"
        raise InputError(message, source=f"{archive}")


def _hostile(archive: Path, name: str, what: str) -> InputError:
    message = f"{archive.name}: {name!r} {what}"
    return InputError(message, source=f"{archive}", hint="do not build from that archive")
