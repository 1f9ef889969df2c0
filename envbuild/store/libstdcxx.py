"""Which libstdc++ the libraries of wheels get, and whether it is new enough, before any import.

The loader looks in a library's own RUNPATH, or, where it has none, in RPATH: its own, and that of
the program, which is the prefix's `lib` both in conda's Python and in a packed one. What is not
found there is the host's (ld.so(8)).
"""

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.judge import listed
from envbuild.native.model import Version, version_text
from envbuild.store import libraries
from envbuild.store.libraries import LIBSTDCXX, Libraries, Library

_PYTHON: Final = "bin/python"
_HOST: Final = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
)
"""Where distributions keep it: Debian's by the machine, others'."""


def judge(prefix: Path, read: Libraries, *, host: Path = Path("/")) -> Findings:
    """Return which libraries of wheels would get a libstdc++ that is too old for them.

    Code: `libstdcxx-too-old` (warning: one that is loaded before serves the whole process).

    Args:
        prefix: The prefix.
        read: What was read of its libraries.
        host: The root of the host's files.
    """
    wheels = {
        label: {path: one for path, one in files.items() if one.glibcxx}
        for label, files in sorted(read.items())
        if label.startswith("pypi:")
    }
    if not any(wheels.values()):
        return ()
    places = _Places(prefix, host)
    return tuple(one for label, files in wheels.items() for one in _of_wheel(label, files, places))


class _Places:
    """Where a libstdc++ lies, and how new it is; each is read once."""

    def __init__(self, prefix: Path, host: Path) -> None:
        self._prefix = f"{prefix}"
        self._known: dict[str, Version | None] = {}
        program = libraries.at(f"{prefix}/{_PYTHON}")
        folder = posixpath.dirname(_PYTHON)
        self._program = [] if program is None or program.runpath else list(program.rpath)
        self._program = [self._resolved(one, folder) for one in self._program]
        self.own = self._version(f"{prefix}/lib/{LIBSTDCXX}")
        self.host = next(
            (there for one in _HOST if (there := self._version(f"{host / one}/{LIBSTDCXX}"))), None
        )

    def of(self, path: str, rpath: Sequence[str], runpath: Sequence[str]) -> Version | None:
        """Return how new the one is that a library gets, None where there is none."""
        folder = posixpath.dirname(path)
        for each in [self._resolved(one, folder) for one in runpath or rpath]:
            if there := self._version(f"{each}/{LIBSTDCXX}"):
                return there
        if not runpath:
            for each in self._program:
                if there := self._version(f"{each}/{LIBSTDCXX}"):
                    return there
        return self.host

    def _resolved(self, folder: str, origin: str) -> str:
        here = f"{self._prefix}/{origin}"
        return folder.replace("${ORIGIN}", here).replace("$ORIGIN", here)

    def _version(self, path: str) -> Version | None:
        place = os.path.normpath(path)
        if place not in self._known:
            facts = libraries.at(place)
            self._known[place] = None if facts is None else dict(facts.provides).get("GLIBCXX")
        return self._known[place]


def _of_wheel(label: str, files: Mapping[str, Library], places: _Places) -> Iterator[Finding]:
    lacking: dict[Version | None, dict[str, Version]] = {}
    for path, library in sorted(files.items()):
        there = places.of(path, library.rpath, library.runpath)
        if library.glibcxx is not None and (there is None or library.glibcxx > there):
            lacking.setdefault(there, {})[path] = library.glibcxx
    for there, wanting in lacking.items():
        wanted = max(wanting.values())
        has = "there is none" if there is None else f"it gets one with {_name(there)}"
        kept = places.own is not None and places.own >= wanted
        yield Finding(
            code="libstdcxx-too-old",
            severity=Severity.WARNING,
            where=label,
            what=f"it needs libstdc++ {_name(wanted)}, and {has}: {listed(list(wanting))}",
            why="its RUNPATH keeps the loader from the environment's own, which is new enough"
            " (ld.so(8)); an import fails unless that was loaded before"
            if kept
            else "an import fails: its symbols are not there (read in its files)",
            hint="rebuild it without RUNPATH: envbuild wheel plan; or import first what loads the"
            " environment's"
            if kept
            else "put a newer libstdcxx-ng into the conda half, or take an older build",
        )


def _name(version: Version) -> str:
    return f"GLIBCXX_{version_text(version)}"
