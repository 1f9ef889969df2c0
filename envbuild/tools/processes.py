"""Which running processes use a folder, as /proc tells (proc(5))."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PREFIX_VARIABLE = b"CONDA_PREFIX="


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A running process.

    Attributes:
        pid: Its number.
        name: Its name, at most 15 bytes of it (comm).
        how: How it uses the folder: `program`, `folder`, `command`, `environment` or `mapped`.
    """

    pid: int
    name: str
    how: str


def using(
    folders: Sequence[Path], *, proc: Path = Path("/proc")
) -> dict[Path, tuple[Process, ...]]:
    """Return for each folder the processes that run from it, or keep it in another way.

    Looked at are the program, the working directory, the command line, `CONDA_PREFIX` and mapped
    files. Of other users' processes only root sees more than the command line.

    Args:
        folders: Absolute paths; links in them are resolved.
        proc: Where proc(5) is mounted.
    """
    sought = {folder: os.path.realpath(folder).encode() for folder in folders}
    found: dict[Path, list[Process]] = {folder: [] for folder in folders}
    for entry in sorted(proc.iterdir()) if sought else ():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            facts = list(_facts(entry, tuple(sought.values())))
            name = (entry / "comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
            for folder, real in sought.items():
                how = next((how for how, path in facts if _within(path, real)), None)
                if how is not None:
                    found[folder].append(Process(pid=int(entry.name), name=name, how=how))
    return {folder: tuple(processes) for folder, processes in found.items()}


def _within(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


def _facts(process: Path, sought: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield how a process uses which paths; what this user may not see is left out."""
    for how, link in (("program", "exe"), ("folder", "cwd")):
        with contextlib.suppress(OSError):
            yield how, os.fsencode((process / link).readlink())
    for word in _read(process / "cmdline").split(b"\0"):
        yield "command", word
    for variable in _read(process / "environ").split(b"\0"):
        if variable.startswith(_PREFIX_VARIABLE):
            yield "environment", variable.removeprefix(_PREFIX_VARIABLE)
    maps = _read(process / "maps")
    if any(folder in maps for folder in sought):
        for line in maps.splitlines():
            yield "mapped", line[line.find(b"/") :]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
