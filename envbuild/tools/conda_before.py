"""What would go wrong while linking conda packages, found before the first file is written."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from envbuild.errors import FetchError, LockError, Refused, StoreError
from envbuild.packages import CondaPackage
from envbuild.tools.conda_tree import PackageFile, escaping_links, files_of

_SITE = "site-packages/"
_SCRIPTS = "python-scripts/"


class PrefixTooLong(StoreError):
    """The prefix is longer than a placeholder in a binary file.

    Attributes:
        room: Bytes of the longest prefix that would fit everywhere.
    """

    def __init__(self, message: str, *, room: int, details: str) -> None:
        """Keep the room; who knows the store says which store fits."""
        super().__init__(message, hint="use a store with a shorter path", details=details)
        self.room = room


def check(packages: Sequence[CondaPackage], folders: Mapping[str, Path], prefix: Path) -> None:
    """Refuse what the engine would fail at half-way, or do wrong without a word.

    Args:
        packages: What is to be linked.
        folders: Where each lies extracted, by its address.
        prefix: The new prefix.

    Raises:
        PrefixTooLong: The prefix is longer than a placeholder in a binary file; all are named.
        FetchError: A package is not in the cache; what it says of itself is broken; or it would
            write through a link that leads out of the prefix.
        LockError: A noarch Python package, and no Python.
        Refused: A package has a file where another one has a folder.
    """
    files: dict[str, tuple[PackageFile, ...]] = {}
    for package in packages:
        folder = folders[package.url]
        if not (folder / "info").is_dir():
            message = f"{package.filename} is not in the cache {folder.parent}"
            raise FetchError(message, hint="it was taken away meanwhile: try again")
        files[package.url] = files_of(package.filename, folder)
    _check_room(packages, files, prefix)
    _check_links(packages, files, folders)
    _check_folders(packages, files, folders)


def _check_room(
    packages: Sequence[CondaPackage], files: Mapping[str, Sequence[PackageFile]], prefix: Path
) -> None:
    length = len(os.fsencode(prefix))
    short: list[tuple[int, str]] = []
    for package in packages:
        for file in files[package.url]:
            room = len((file.placeholder or "").encode())
            if file.binary and file.placeholder and room < length:
                text = f"{package.name} {package.version}: {file.path} has room for {room} bytes"
                short.append((room, f"{text}, the prefix has {length}"))
    if short:
        message = f"the prefix {prefix} is too long for {short[0][1]}"
        details = "\n".join(text for _, text in short)
        raise PrefixTooLong(message, room=min(room for room, _ in short), details=details)


def _check_links(
    packages: Sequence[CondaPackage],
    files: Mapping[str, Sequence[PackageFile]],
    folders: Mapping[str, Path],
) -> None:
    escaping: dict[str, tuple[str, str]] = {}
    for package in packages:
        for path, target in escaping_links(folders[package.url], files[package.url]).items():
            escaping[path] = (package.name, target)
    for package in packages if escaping else ():
        for file in files[package.url]:
            for parent in PurePosixPath(file.path).parents:
                if str(parent) in escaping:
                    owner, target = escaping[str(parent)]
                    where = f"{package.name}: {file.path}"
                    message = f"{where} would be written to {target}, by a link of {owner}"
                    raise FetchError(message, hint="one of the two packages is hostile or broken")


def _check_folders(
    packages: Sequence[CondaPackage],
    files: Mapping[str, Sequence[PackageFile]],
    folders: Mapping[str, Path],
) -> None:
    """Refuse a file or link in place of another package's folder: the engine loses one of them."""
    owners: dict[str, str] = {}
    below: dict[str, tuple[str, str]] = {}
    for package, path in placed(packages, files, folders):
        owners[path] = package.name
        folder = path.rpartition("/")[0]
        while folder and folder not in below:
            below[folder] = (package.name, path)
            folder = folder.rpartition("/")[0]
    problems = [
        f"{path}: {owners[path]} has a file or link there, {below[path][0]} has {below[path][1]}"
        for path in sorted(owners.keys() & below.keys())
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        message = f"{problems[0]}{more} [file-over-folder]"
        hint = "leave one of the two packages out"
        raise Refused(message, hint=hint, details="\n".join(problems) if more else "")


def placed(
    packages: Sequence[CondaPackage],
    files: Mapping[str, Sequence[PackageFile]],
    folders: Mapping[str, Path],
) -> Iterator[tuple[CondaPackage, str]]:
    """Yield where each file and link of packages comes to lie.

    Args:
        packages: What is to be linked.
        files: What each installs, by its address.
        folders: Where each lies extracted, by its address.

    Raises:
        LockError: A noarch Python package, and no Python.
    """
    site = _site_packages(packages, folders)
    for package in packages:
        for path in _placed(package, files[package.url], folders[package.url], site):
            yield package, path


def _placed(
    package: CondaPackage, files: Sequence[PackageFile], folder: Path, site: str | None
) -> Iterator[str]:
    """Yield where a package's files and links come to lie.

    Raises:
        LockError: It is a noarch Python package, and there is no Python.
    """
    listed = (file.path for file in files if file.kind != "folder")
    if _index(package, folder).get("noarch") != "python":
        yield from listed
        return
    if site is None:
        message = f"{package.name} {package.version} is a Python package, and no Python is locked"
        hint = "add `python` to the recipe and lock it again"
        raise LockError(message, source=package.filename, hint=hint)
    for path in listed:
        if path.startswith(_SITE):
            yield f"{site}/{path.removeprefix(_SITE)}"
        elif path.startswith(_SCRIPTS):
            yield f"bin/{path.removeprefix(_SCRIPTS)}"
        else:
            yield path


def _site_packages(packages: Sequence[CondaPackage], folders: Mapping[str, Path]) -> str | None:
    """Return where the Python among the packages looks for others, None if there is none."""
    python = next((package for package in packages if package.name == "python"), None)
    if python is None:
        return None
    said = _index(python, folders[python.url]).get("python_site_packages_path")
    return said or f"lib/python{'.'.join(python.version.split('.')[:2])}/site-packages"


def _index(package: CondaPackage, folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / "info/index.json").read_bytes())
    except ValueError as error:
        message = f"{package.filename}: its info/index.json cannot be read: {error}"
        raise FetchError(message, hint="the package is damaged: it cannot be installed") from error
    return data if isinstance(data, dict) else {}
