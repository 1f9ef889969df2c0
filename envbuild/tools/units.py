"""Which installed systemd units name a folder (systemd.unit(5))."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

SYSTEM = tuple(
    Path(base) / "systemd" / kind
    for kind in ("system", "user")
    for base in ("/etc", "/run", "/usr/local/lib", "/usr/lib")
)
_MOST_BYTES = 1 << 20
_PATH = re.compile(r"/[^\s\"'=:;,|&<>()]+")
_SPACE = "\x00"


def folders(home: Path) -> tuple[Path, ...]:
    """Return where units are installed: for the machine, for all users, and for this one."""
    return (*SYSTEM, home / ".config/systemd/user", home / ".local/share/systemd/user")


def naming(paths: Sequence[Path], places: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """Return for each folder the units that name it, or something below it.

    A name that leads there over links (`current`) counts too.

    Args:
        paths: Absolute paths; links in them are resolved.
        places: Where units are installed; those that are not there, or not readable, are left out.
    """
    sought = {path: os.path.realpath(path) for path in paths}
    found: dict[Path, list[str]] = {path: [] for path in paths}
    resolved: dict[str, str] = {}
    for unit, text in _texts(places) if sought else ():
        named = set(_named(text, resolved))
        for path, real in sought.items():
            if unit not in found[path] and any(
                name == real or name.startswith(f"{real}/") for name in named
            ):
                found[path].append(unit)
    return {path: tuple(units) for path, units in found.items()}


def _named(text: str, resolved: dict[str, str]) -> Iterator[str]:
    """Yield the paths in a unit's text, resolved; `resolved` keeps what was looked up."""
    spelled = text.replace("\\x20", _SPACE).replace("%%", "%")
    for quoted in re.findall(r"\"([^\"\n]*)\"|'([^'\n]*)'", spelled):
        spelled += "\n" + "".join(quoted).replace(" ", _SPACE)
    for match in _PATH.findall(spelled):
        path = match.replace(_SPACE, " ")
        if path not in resolved:
            resolved[path] = os.path.realpath(path)
        yield resolved[path]


def _texts(places: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield each unit's name with the text of its file, and of each of its drop-ins."""
    seen: set[str] = set()
    for place in places:
        for entry in _entries(place):
            inner = _entries(Path(entry)) if entry.name.endswith(".d") else (entry,)
            for file in inner:
                real = os.path.realpath(file)
                if real not in seen and os.path.isfile(real):  # noqa: PTH113
                    seen.add(real)
                    yield entry.name.removesuffix(".d"), _text(real)


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
