"""What packages' libraries hold and need, read once from the files: GPU code, glibc, libstdc++."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envbuild.native.elf import linked
from envbuild.native.model import ElfFacts, Version, version_text
from envbuild.store.installed import Owner, Seen, is_link
from envbuild.store.ledger import Ledger
from envbuild.target import MACHINES, Platform

READ: Final = "read in the files of its packages"
"""The origin of a need that follows from what was read."""
LIBSTDCXX: Final = "libstdc++.so.6"
_READ: Final = re.compile(r"^bin/python[0-9.]*$|\.so(?:\.[0-9.]+)?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """What was read of a library, or of the interpreter.

    Attributes:
        codes: Targets of its kernels (`sm_80 sm_90`), or empty.
        glibc: The newest version of a GLIBC symbol that it needs, or None.
        glibcxx: The newest version of a GLIBCXX symbol that it needs of a libstdc++ that it does
            not bring along, or None.
        rpath: Folders of DT_RPATH.
        runpath: Folders of DT_RUNPATH.
    """

    codes: str
    glibc: Version | None
    glibcxx: Version | None
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


Libraries = Mapping[str, Mapping[str, Library]]
"""Libraries by label of the package and path of the file."""


def read(
    prefix: Path, seen: Seen, owners: Sequence[Owner], ledger: Ledger, *, platform: Platform
) -> Libraries:
    """Return what packages' libraries for the platform's machine hold and need.

    What was read of a package once is kept in the ledger, so that its files are not opened again.

    Args:
        prefix: The prefix.
        seen: What lies in it.
        owners: Its packages.
        ledger: The store's ledger.
        platform: conda subdir.

    Raises:
        StoreError: The ledger cannot be read or written.
    """
    machine = MACHINES[platform]
    keys = {f"{machine} {owner.package}#{owner.listing}": owner for owner in owners}
    known = ledger.texts(list(keys))
    new = {
        key: {path: _text(library) for path, library in _of(prefix, seen, owner, machine)}
        for key, owner in keys.items()
        if key not in known
    }
    if new:
        ledger.note_texts(new)
    return {
        keys[key].label: {path: _library(text) for path, text in texts.items()}
        for key, texts in (known | new).items()
        if texts
    }


def _of(prefix: Path, seen: Seen, owner: Owner, machine: str) -> Iterator[tuple[str, Library]]:
    for path in owner.paths:
        status = seen.files.get(path)
        if status is None or is_link(status) or not _READ.search(path):
            continue
        facts = at(f"{prefix}/{path}")
        if facts is None or facts.machine != machine:
            continue
        library = Library(
            codes=" ".join(sorted(map(str, facts.kernels))),
            glibc=facts.glibc,
            glibcxx=facts.glibcxx if LIBSTDCXX in facts.needed else None,
            rpath=facts.rpath,
            runpath=facts.runpath,
        )
        if library.codes or library.glibc or library.glibcxx:
            yield path, library


def at(path: str) -> ElfFacts | None:
    """Return what the file of a path links to, and its GPU code; None where it is no ELF file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - thousands of times
            return linked(file)
    except OSError:
        return None


def _text(library: Library) -> str:
    versions = (version_text(library.glibc) or "", version_text(library.glibcxx) or "")
    return "|".join((library.codes, *versions, ":".join(library.rpath), ":".join(library.runpath)))


def _library(text: str) -> Library:
    codes, glibc, glibcxx, rpath, runpath = text.split("|", 4)
    return Library(
        codes=codes,
        glibc=_version(glibc),
        glibcxx=_version(glibcxx),
        rpath=_folders(rpath),
        runpath=_folders(runpath),
    )


def _version(text: str) -> Version | None:
    return tuple(map(int, text.split("."))) if text else None


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(":") if part)
