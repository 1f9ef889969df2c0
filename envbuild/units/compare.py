"""What differs between rendered units and those in a folder."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envbuild.errors import StoreError
from envbuild.tools.files import make_folder, write_atomic
from envbuild.units import names, render
from envbuild.units.model import UnitFile

Change = Literal["missing", "differs", "left over", "not ours"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One unit that is not as it would be rendered.

    Attributes:
        name: The file's name.
        change: What is the matter with it.
        there: Its text there, empty where it is missing.
        wanted: The text it would have, empty where there would be none.
    """

    name: str
    change: Change
    there: str
    wanted: str

    def lines(self, folder: Path) -> str:
        """Return the difference as `diff -u` shows it, from what is there to what would be."""
        made = difflib.unified_diff(
            self.there.splitlines(keepends=True),
            self.wanted.splitlines(keepends=True),
            f"{folder / self.name}" if self.there else "/dev/null",
            f"rendered/{self.name}" if self.wanted else "/dev/null",
        )
        return "".join(made)


def compare(
    files: Sequence[UnitFile], name: str, folder: Path, *, also: Iterable[str] = ()
) -> tuple[Difference, ...]:
    """Return what differs, sorted by name; drop-ins are looked at only where they are named.

    Args:
        files: What was rendered.
        name: The environment.
        folder: Where units are.
        also: Further files of ours, which are left over where they are not among the files.

    Raises:
        StoreError: A file there cannot be read.
    """
    found: list[Difference] = []
    wanted = {file.name: file.text for file in files}
    for unit in sorted({*wanted, *own(folder, name), *also}):
        there = read(folder / unit)
        text = wanted.get(unit, "")
        if (there or "") == text:
            continue
        change: Change = "differs"
        if there is None:
            change = "missing"
        elif not render.is_ours(there):
            change = "not ours"
        elif not text:
            change = "left over"
        found.append(Difference(name=unit, change=change, there=there or "", wanted=text))
    return tuple(found)


def write(files: Sequence[UnitFile], name: str, folder: Path) -> tuple[Difference, ...]:
    """Make a folder hold what was rendered, and no unit of the environment besides.

    Returns:
        What was changed.

    Raises:
        StoreError: A file of that name is not one of ours, or the folder cannot be written;
            nothing is changed where a file is not ours.
    """
    changed = compare(files, name, folder)
    refuse_foreign(changed, folder)
    try:
        make_folder(folder)
        for difference in changed:
            if difference.wanted:
                write_atomic(folder / difference.name, difference.wanted)
            else:
                (folder / difference.name).unlink()
    except OSError as error:
        message = f"{error.filename or folder}: {error.strerror}"
        raise StoreError(message) from error
    return changed


def refuse_foreign(found: Iterable[Difference], folder: Path) -> None:
    """Do nothing, unless a file to be written is not ours.

    Raises:
        StoreError: One is not.
    """
    for difference in found:
        if difference.change == "not ours":
            message = f"{folder / difference.name} was not written by envbuild"
            raise StoreError(message, hint="move it away, or choose another folder")


def own(folder: Path, name: str) -> Iterable[str]:
    """Give the units of an environment that a folder has, as their first line says.

    Raises:
        StoreError: The folder, or a file there, cannot be read.
    """
    try:
        there = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        message = f"{folder}: {error.strerror}"
        raise StoreError(message) from error
    for unit in there:
        if names.belongs(unit, name) and render.is_ours(read(folder / unit) or "", name):
            yield unit


def read(path: Path) -> str | None:
    """Return what a file says, None where it is missing.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise StoreError(message) from error
