"""What an extracted conda package says about itself, and whether it is what it says."""

import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from envbuild.errors import FetchError
from envbuild.packages import CondaPackage
from envbuild.tools.conda_extract import BrokenArchive

_DEFAULT_PLACEHOLDER = "/opt/anaconda1anaconda2anaconda3"
_LINK_SCRIPTS = ("pre-link", "post-link", "pre-unlink")
_KEY_LENGTH = 32
Kind = Literal["file", "link", "folder"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageFile:
    """One path that a package installs.

    Attributes:
        path: Relative to the prefix.
        kind: What it is.
        placeholder: The prefix written into it, which linking replaces; None without.
        binary: Whether it is replaced in binary mode, where the new prefix may not be longer.
    """

    path: str
    kind: Kind
    placeholder: str | None = None
    binary: bool = False


def entry_name(package: CondaPackage) -> str:
    """Return the name of a package's folder in the cache.

    Raises:
        FetchError: Its record has neither SHA-256 nor md5.
    """
    key = package.sha256 or package.md5
    stem = package.filename.removesuffix(".conda").removesuffix(".tar.bz2")
    if key is None or stem == package.filename:
        message = f"{package.filename}: its record has no digest, or it is no conda archive"
        raise FetchError(message, hint="such a record cannot be checked: lock again")
    return f"{stem}-{key[:_KEY_LENGTH]}"


def files_of(name: str, folder: Path) -> tuple[PackageFile, ...]:
    """Return what a package installs, from `info/paths.json`, else `info/files`.

    Args:
        name: The archive's name, for messages.
        folder: Where it lies extracted.

    Raises:
        BrokenArchive: A list cannot be read, or names a path outside of the prefix.
    """
    paths = folder / "info" / "paths.json"
    try:
        if paths.is_file():
            found = tuple(_rows(json.loads(paths.read_bytes())))
        else:
            found = tuple(_old_rows(folder))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{name}: its list of files cannot be read: {type(error).__name__}: {error}"
        raise BrokenArchive(message) from error
    for file in found:
        if file.path.startswith("/") or file.path.strip("/.") == "" or ".." in file.path.split("/"):
            message = f"{name}: its list of files names {file.path!r}, outside of the prefix"
            raise BrokenArchive(message)
    return found


def _rows(document: dict[str, Any]) -> Iterator[PackageFile]:
    kinds: dict[str, Kind] = {"softlink": "link", "directory": "folder"}
    for row in document["paths"]:
        yield PackageFile(
            path=row["_path"],
            kind=kinds.get(row.get("path_type", "hardlink"), "file"),
            placeholder=row.get("prefix_placeholder"),
            binary=row.get("file_mode") == "binary",
        )


def _old_rows(folder: Path) -> Iterator[PackageFile]:
    """Read `info/files` with `info/has_prefix` (`PLACEHOLDER MODE PATH`, or a path alone)."""
    prefixes: dict[str, tuple[str, bool]] = {}
    has_prefix = folder / "info" / "has_prefix"
    if has_prefix.is_file():
        for line in has_prefix.read_text(encoding="utf-8").splitlines():
            words = line.split(maxsplit=2)
            if len(words) == 3:  # noqa: PLR2004 - placeholder, mode, path
                prefixes[words[2].strip('"')] = (words[0].strip('"'), words[1] == "binary")
            elif words:
                prefixes[line.strip().strip('"')] = (_DEFAULT_PLACEHOLDER, False)
    listed = (folder / "info" / "files").read_text(encoding="utf-8").splitlines()
    for path in filter(None, (line.strip() for line in listed)):
        placeholder, binary = prefixes.get(path, (None, False))
        kind: Kind = "link" if (folder / path).is_symlink() else "file"
        yield PackageFile(path=path, kind=kind, placeholder=placeholder, binary=binary)


def check_tree(name: str, folder: Path) -> None:
    """Compare an extracted package with its own list of files.

    Raises:
        BrokenArchive: Something that it lists is missing or of another kind; all of it is named.
    """
    problems: list[str] = []
    for file in files_of(name, folder):
        try:
            mode = (folder / file.path).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            problems.append(f"{file.path}: listed as a {file.kind}, but missing")
            continue
        is_kind = {
            "file": stat.S_ISREG(mode),
            "link": stat.S_ISLNK(mode),
            "folder": stat.S_ISDIR(mode),
        }
        if not is_kind[file.kind]:
            is_now = next((kind for kind, true in is_kind.items() if true), "something else")
            problems.append(f"{file.path}: listed as a {file.kind}, but it is a {is_now}")
    if problems:
        message = f"{name}: {problems[0]}"
        error = BrokenArchive(message, hint="the package is damaged: it cannot be installed")
        error.details = "\n".join(problems)
        raise error


def link_scripts(name: str, files: Sequence[PackageFile]) -> tuple[str, ...]:
    """Return a package's scripts that conda would run at linking or unlinking."""
    wanted = {f"bin/.{name}-{kind}.sh" for kind in _LINK_SCRIPTS}
    return tuple(file.path for file in files if file.path in wanted)


def escaping_links(folder: Path, files: Sequence[PackageFile]) -> dict[str, str]:
    """Return the links of a package that lead out of the prefix, path to target."""
    found: dict[str, str] = {}
    for file in files:
        if file.kind == "link":
            target = str((folder / file.path).readlink())
            start = PurePosixPath(file.path).parent
            if PurePosixPath(target).is_absolute() or _climbs_out(start, PurePosixPath(target)):
                found[file.path] = target
    return found


def _climbs_out(start: PurePosixPath, target: PurePosixPath) -> bool:
    depth = len(start.parts)
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
