"""Which libstdc++ the libraries of wheels get, and whether it is new enough, before any import.

The loader looks in a library's own RUNPATH, or, where it has none, in RPATH: its own, and that of
the program, which is the prefix's `lib` both in conda's Python and in a packed one. What is not
found there is the host's (ld.so(8)).
"""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.elf import links
from envbuild.native.judge import listed
from envbuild.native.model import ElfFacts, Version
from envbuild.store.installed import Owner, Seen, is_link
from envbuild.store.ledger import Ledger

SONAME: Final = "libstdc++.so.6"
_LIBRARY: Final = re.compile(r"\.so(?:\.[0-9.]+)?$")
_PYTHON: Final = "bin/python"
_HOST: Final = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
)
"""Where distributions keep it: Debian's by the machine, others'."""


def judge(
    prefix: Path, seen: Seen, owners: Sequence[Owner], ledger: Ledger, *, host: Path = Path("/")
) -> Findings:
    """Return which libraries of wheels would get a libstdc++ that is too old for them.

    Code: `libstdcxx-too-old` (warning: one that is loaded before serves the whole process).

    Args:
        prefix: The prefix.
        seen: What lies in it.
        owners: Its packages.
        ledger: The store's ledger, which keeps what was read of a package.
        host: The root of the host's files.

    Raises:
        StoreError: The ledger cannot be read or written.
    """
    wheels = {f"{SONAME} {one.package}#{one.listing}": one for one in owners if not one.is_conda}
    known = ledger.texts(list(wheels))
    new = {
        key: dict(_needs(prefix, seen, owner)) for key, owner in wheels.items() if key not in known
    }
    if new:
        ledger.note_texts(new)
    needed = {wheels[key].label: texts for key, texts in (known | new).items() if texts}
    if not needed:
        return ()
    places = _Places(prefix, host)
    return tuple(one for label in sorted(needed) for one in _of_wheel(label, needed[label], places))


class _Places:
    """Where a libstdc++ lies, and how new it is; each is read once."""

    def __init__(self, prefix: Path, host: Path) -> None:
        self._prefix = f"{prefix}"
        self._known: dict[str, Version | None] = {}
        program = _facts(f"{prefix}/{_PYTHON}")
        folder = posixpath.dirname(_PYTHON)
        self._program = [] if program is None or program.runpath else list(program.rpath)
        self._program = [self._resolved(one, folder) for one in self._program]
        self.own = self._version(f"{prefix}/lib/{SONAME}")
        self.host = next(
            (there for one in _HOST if (there := self._version(f"{host / one}/{SONAME}"))), None
        )

    def of(self, path: str, rpath: Sequence[str], runpath: Sequence[str]) -> Version | None:
        """Return how new the one is that a library gets, None where there is none."""
        folder = posixpath.dirname(path)
        for each in [self._resolved(one, folder) for one in runpath or rpath]:
            if there := self._version(f"{each}/{SONAME}"):
                return there
        if not runpath:
            for each in self._program:
                if there := self._version(f"{each}/{SONAME}"):
                    return there
        return self.host

    def _resolved(self, folder: str, origin: str) -> str:
        here = f"{self._prefix}/{origin}"
        return folder.replace("${ORIGIN}", here).replace("$ORIGIN", here)

    def _version(self, path: str) -> Version | None:
        place = os.path.normpath(path)
        if place not in self._known:
            facts = _facts(place)
            self._known[place] = None if facts is None else dict(facts.provides).get("GLIBCXX")
        return self._known[place]


def _needs(prefix: Path, seen: Seen, owner: Owner) -> Iterator[tuple[str, str]]:
    """Give the libraries that need libstdc++: `3.4.29|RPATH|RUNPATH` by path."""
    for path in owner.paths:
        status = seen.files.get(path)
        if status is None or is_link(status) or not _LIBRARY.search(path):
            continue
        facts = _facts(f"{prefix}/{path}")
        if facts is not None and SONAME in facts.needed and facts.glibcxx is not None:
            parts = (_numbers(facts.glibcxx), ":".join(facts.rpath), ":".join(facts.runpath))
            yield path, "|".join(parts)


def _of_wheel(label: str, texts: Mapping[str, str], places: _Places) -> Iterator[Finding]:
    lacking: dict[Version | None, dict[str, Version]] = {}
    for path, text in sorted(texts.items()):
        floor, rpath, runpath = text.split("|", 2)
        wanted = tuple(map(int, floor.split(".")))
        there = places.of(path, _parts(rpath), _parts(runpath))
        if there is None or wanted > there:
            lacking.setdefault(there, {})[path] = wanted
    for there, files in lacking.items():
        wanted = max(files.values())
        has = "there is none" if there is None else f"it gets one with {_name(there)}"
        kept = places.own is not None and places.own >= wanted
        yield Finding(
            code="libstdcxx-too-old",
            severity=Severity.WARNING,
            where=label,
            what=f"it needs libstdc++ {_name(wanted)}, and {has}: {listed(list(files))}",
            why="its RUNPATH keeps the loader from the environment's own, which is new enough"
            " (ld.so(8)); an import fails unless that was loaded before"
            if kept
            else "an import fails: its symbols are not there (read in its files)",
            hint="rebuild it without RUNPATH: envbuild wheel plan; or import first what loads the"
            " environment's"
            if kept
            else "put a newer libstdcxx-ng into the conda half, or take an older build",
        )


def _numbers(version: Version) -> str:
    return ".".join(map(str, version))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(":") if part)


def _name(version: Version) -> str:
    return f"GLIBCXX_{_numbers(version)}"


def _facts(path: str) -> ElfFacts | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - thousands of times
            return links(file)
    except OSError:
        return None
