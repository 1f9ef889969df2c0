"""Taking a conda archive apart: every member is looked at before it is written.

`py-rattler`'s own extraction holds the interpreter's lock, hashes the archive once more, leaves
out hostile members without a word and takes over any mode; so this is ours.
"""

import bz2
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final

import zstandard

from envbuild.errors import FetchError
from envbuild.tools import trying

FOLDER_MODE: Final = 0o755
PROGRAM_MODE: Final = 0o755
FILE_MODE: Final = 0o644
_WINDOW_BYTES: Final = 1 << 31
_FORMAT: Final = 2
_COPY_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 18


class BrokenArchive(FetchError):
    """An archive is none that can be installed; the message names it and what is wrong."""


def extract(archive: Path, to: Path) -> None:
    """Extract a `.conda` or `.tar.bz2` package into a new folder.

    Folders and programs get mode 0755, other files 0644, whatever the archive and the umask say;
    modification times are the archive's, since compiled Python files refer to them.

    Args:
        archive: The file; its hash has been checked.
        to: The folder to make; on an error what is in it is rubbish.

    Raises:
        BrokenArchive: A member would leave the folder or is no file, folder or link; the archive
            is cut short; it has no list of its files.
        StoreError: Two members differ in case alone, and the folder's disk cannot have both.
        OSError: The folder cannot be written.
    """
    writer = _Writer(name=archive.name, root=to)
    to.mkdir()
    to.chmod(FOLDER_MODE)
    try:
        for stream in _tars(archive):
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK_BYTES) as tar:
                for member in tar:
                    writer.add(tar, member)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zstandard.ZstdError,
        EOFError,
        NotImplementedError,
        UnicodeError,
    ) as error:
        message = f"{archive.name}: cannot be read: {str(error) or type(error).__name__}"
        raise BrokenArchive(message) from error
    info = to / "info"
    if not (info / "index.json").is_file():
        message = f"{archive.name}: it has no info/index.json"
        raise BrokenArchive(message)
    if not (info / "paths.json").is_file() and not (info / "files").is_file():
        message = f"{archive.name}: it has neither info/paths.json nor info/files"
        raise BrokenArchive(message, hint="it cannot be installed: nobody knows what is in it")


def _tars(archive: Path) -> Iterator[IO[bytes]]:
    """Yield the tar streams of an archive, one after the other."""
    if archive.name.endswith(".tar.bz2"):
        with bz2.open(archive) as stream:
            yield stream
        return
    with zipfile.ZipFile(archive) as container:
        for name in _parts(archive.name, container):
            decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
            with (
                container.open(name) as packed,
                decompressor.stream_reader(packed, read_across_frames=True) as stream,
            ):
                yield stream


def _parts(name: str, container: zipfile.ZipFile) -> tuple[str, str]:
    """Return the members of a `.conda` that hold info and payload.

    Raises:
        BrokenArchive: They lie in a folder, are missing, or the format is another.
    """
    names = container.namelist()
    nested = [member for member in names if "/" in member]
    if nested:
        message = f"{name}: its members lie in a folder ({nested[0]})"
        raise BrokenArchive(message, hint="a .conda has its members at the top: pack it anew")
    found: list[str] = []
    for kind in ("info", "pkg"):
        fitting = [m for m in names if m.startswith(f"{kind}-") and m.endswith(".tar.zst")]
        if len(fitting) != 1:
            message = f"{name}: it has {len(fitting)} members {kind}-*.tar.zst, not one"
            raise BrokenArchive(message)
        found += fitting
    if "metadata.json" in names:
        try:
            version = json.loads(container.read("metadata.json")).get("conda_pkg_format_version")
        except (ValueError, AttributeError):
            version = "unknown"
        if version != _FORMAT:
            message = f"{name}: its format is {version!r}, known is {_FORMAT}"
            raise BrokenArchive(message)
    return found[0], found[1]


@dataclass(kw_only=True, slots=True)
class _Writer:
    """Writes members below one folder and never follows a link.

    Attributes:
        name: The archive's name, for messages.
        root: The folder.
        folders: Folders made so far.
        links: Symbolic links made so far; nothing may be written through them.
        written: Files and links made so far.
    """

    name: str
    root: Path
    folders: set[PurePosixPath] = field(default_factory=lambda: {PurePosixPath()})
    links: set[PurePosixPath] = field(default_factory=set)
    written: set[PurePosixPath] = field(default_factory=set)

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Write one member.

        Raises:
            BrokenArchive: It would lie outside, or is of a kind that no package has.
        """
        path = self._inside(member.name, "it would lie outside of the package")
        if member.isdir():
            self._folder(path)
            return
        if not path.parts:
            raise self._broken(member.name, "it is the package's folder itself")
        self._folder(path.parent)
        self._make_way(path)
        try:
            self._write(tar, member, path)
        except FileExistsError as error:
            there = map(str, (*self.written, *self.folders))
            first = next(one for one in there if one.lower() == str(path).lower())
            raise trying.one_file(first, str(path), self.name, self.root) from error
        self.written.add(path)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        target = self.root / path
        if member.issym():
            if not member.linkname:
                raise self._broken(member.name, "it is a link to nowhere")
            target.symlink_to(member.linkname)
            self.links.add(path)
        elif member.islnk():
            source = self._inside(member.linkname, "it is a hard link to outside of the package")
            self._hard_link(member.name, source, target)
        elif member.isreg():
            self._file(tar, member, target)
        else:
            raise self._broken(member.name, "it is neither a file nor a folder nor a link")

    def _broken(self, member: str, why: str) -> BrokenArchive:
        message = f"{self.name}: member {member!r}: {why}"
        return BrokenArchive(message, hint="the package is hostile or damaged: it is not installed")

    def _inside(self, name: str, why: str) -> PurePosixPath:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise self._broken(name, why)
        return path

    def _folder(self, path: PurePosixPath) -> None:
        if path in self.folders:
            return
        self._folder(path.parent)
        if path in self.links:
            raise self._broken(str(path), "something would be written through a link")
        try:
            (self.root / path).mkdir()
        except FileExistsError as error:  # in another case, where that is no difference
            if not stat.S_ISDIR((self.root / path).lstat().st_mode):
                raise self._broken(str(path), "it is a file and a folder") from error
        (self.root / path).chmod(FOLDER_MODE)
        self.folders.add(path)

    def _make_way(self, path: PurePosixPath) -> None:
        """Take away an earlier member of the same path: in a tar, the last one counts."""
        if path in self.folders:
            raise self._broken(str(path), "it is a file and a folder")
        if path in self.written:
            (self.root / path).unlink()
            self.links.discard(path)

    def _hard_link(self, member: str, source: PurePosixPath, target: Path) -> None:
        if any(parent in self.links for parent in source.parents):
            raise self._broken(member, "it is a hard link through a link")
        try:
            os.link(self.root / source, target, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._broken(member, f"it is a hard link to {source}, which is not there") from (
                error
            )

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
        mode = PROGRAM_MODE if member.mode & 0o111 else FILE_MODE
        # a plain member is next in the stream; the other way costs twice the time
        source = tar.fileobj if member.sparse is None else tar.extractfile(member)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb", buffering=0) as out:
            done = 0
            while source is not None and done < member.size:
                chunk = source.read(min(_COPY_BYTES, member.size - done))
                if not chunk:
                    break
                out.write(chunk)
                done += len(chunk)
            if done != member.size:
                raise self._broken(member.name, f"it ends after {done} of {member.size} bytes")
            os.fchmod(descriptor, mode)
            nanoseconds = int(member.mtime * 1_000_000_000)
            os.utime(descriptor, ns=(nanoseconds, nanoseconds))
