"""`Tree`: reading small files below a root, each as a `Reading`.

The root is `/`, or the root of another system: a container's, whose links stay inside it.
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from envbuild.host.readings import NoAnswer, NoPermission, Reading, Unsupported, Value

T = TypeVar("T")
U = TypeVar("U")

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO}
_CLOSED = {errno.EACCES, errno.EPERM}
_MOST_LINKS = 40
_PART = 1 << 16  # the kernel refuses to fill a large one: sysctl files say ENOMEM
_MOST_PARTS = 128


class Tree:
    """The files below a root.

    Attributes:
        root: The root.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        """Take the root."""
        self.root = root

    def at(self, path: str) -> Path:
        """Return where a path of the tree lies, links followed; they stay inside the tree."""
        if self.root == Path("/"):
            return Path("/", path).resolve()
        place, rest, links = self.root, path.split("/")[::-1], 0
        while rest:
            part = rest.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                place = self.root if place == self.root else place.parent
                continue
            place /= part
            if place.is_symlink() and links < _MOST_LINKS:
                links += 1
                target = str(place.readlink())
                place = self.root if target.startswith("/") else place.parent
                rest += target.split("/")[::-1]
        return place

    def name(self, place: Path) -> str:
        """Return what a place is called inside the tree."""
        return "/" + str(place.relative_to(self.root)) if place.is_relative_to(self.root) else ""

    def text(self, path: str) -> Reading[str]:
        """Return what a file says, without the white space around it."""
        try:
            with self.at(path).open("rb", buffering=0) as file:
                parts = [file.read(_PART)]
                while parts[-1] and len(parts) < _MOST_PARTS:
                    parts.append(file.read(_PART))
            return Value(b"".join(parts).decode(errors="replace").strip())
        except OSError as error:
            return self.silence(path, error)

    def parsed(self, path: str, parse: Callable[[str], T]) -> Reading[T]:
        """Return what a file says, parsed; a ValueError is no answer."""
        return then(self.text(path), parse, where=f"/{path}")

    def names(self, path: str) -> Reading[tuple[str, ...]]:
        """Return the sorted names in a folder."""
        try:
            return Value(tuple(sorted(entry.name for entry in self.at(path).iterdir())))
        except OSError as error:
            return self.silence(path, error)

    def has(self, path: str) -> bool:
        """Say whether something is there, as far as this user can see."""
        return os.path.lexists(self.at(path))

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a file, links followed, or None."""
        try:
            return self.at(path).stat()
        except OSError:
            return None

    def silence(self, path: str, error: OSError) -> Unsupported | NoPermission | NoAnswer:
        """Return why a file says nothing."""
        if error.errno in _ABSENT:
            return Unsupported(f"there is no /{path}")
        if error.errno in _CLOSED:
            status = self.status(path)
            mode = "" if status is None else f" ({stat.filemode(status.st_mode)})"
            return NoPermission(f"/{path}{mode}")
        return NoAnswer(f"/{path}: {error.strerror}")


def then(reading: Reading[T], parse: Callable[[T], U], *, where: str = "") -> Reading[U]:
    """Return a reading's value turned into another; a ValueError is no answer."""
    if not isinstance(reading, Value):
        return reading
    try:
        return Value(parse(reading.value))
    except ValueError:
        return NoAnswer(f"{where} says {str(reading.value)[:60]!r}".strip())
