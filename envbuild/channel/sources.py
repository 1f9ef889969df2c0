"""Which files of an interpreter the packer takes, and the digest over them.

What is left out is what an environment never uses (tests, IDLE, static libraries), what belongs
to the machine (`site-packages`, `sitecustomize.py`, the mark of an external manager) and what
appears by itself (bytecode), so that none of it changes the digest.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from envbuild.channel import elf
from envbuild.channel.interpreter import HostPython
from envbuild.errors import HostError
from envbuild.tools.files import sha256_file

# Raised whenever the same source files give another package; it enters every digest.
FORMAT = 1

_THREADS = 2

_LEFT_FOLDERS = frozenset(
    {"__pycache__", "dist-packages", "idlelib", "site-packages", "test", "tests", "turtledemo"}
)
# Debian's `_distutils_system_mod` makes setuptools install into `local/lib`.
_LEFT_FILES = frozenset(
    {"EXTERNALLY-MANAGED", "_distutils_system_mod.py", "sitecustomize.py", "usercustomize.py"}
)
# lib2to3 writes its grammars beside itself when root uses it.
_LEFT_NAMES = re.compile(r".*\.(a|o|pyc|pyo)|_test.*\.so|.*Grammar.*\.pickle")
_CONFIG = re.compile(r"config-.*")
_HEADER_FOLDERS = frozenset({"cpython", "internal", "mimalloc"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One file that goes into the package.

    Attributes:
        target: Its path in the package (`lib/python3.11/os.py`).
        path: Where it lies on this machine, links resolved or not.
        mode: Its mode in the package: 0o755 where its owner may run it, else 0o644.
    """

    target: str
    path: Path
    mode: int


def collect(python: HostPython) -> tuple[Source, ...]:
    """Return every file that the packer takes of a live interpreter, sorted by target.

    Raises:
        HostError: A folder or file of it cannot be read.
    """
    try:
        found = {
            source.target: source
            for part in (_library_files, _binaries, _headers, _wheels)
            for source in part(python)
        }
        for source in _bundled(python, tuple(found.values())):
            found.setdefault(source.target, source)
    except OSError as error:
        message = f"{python.path} cannot be packed: {error}"
        raise HostError(message, hint="take another interpreter with --python") from error
    return tuple(found[target] for target in sorted(found))


def hashes(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the SHA-256 of each source file, hex, in the order given.

    Raises:
        HostError: A file cannot be read.
    """
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            return tuple(pool.map(sha256_file, (source.path for source in sources)))
    except OSError as error:
        message = f"the interpreter's files cannot be read: {error}"
        raise HostError(message) from error


def digest_of(sources: Sequence[Source], digests: Sequence[str]) -> str:
    """Return the interpreter's digest: path, mode and SHA-256 of each file, and the format."""
    total = hashlib.sha256(f"envbuild host python {FORMAT}\n".encode())
    for source, digest in zip(sources, digests, strict=True):
        total.update(f"{digest} {source.mode:o} {source.target}\n".encode())
    return total.hexdigest()


def watched(python: HostPython, added: Path | None = None) -> tuple[Path, ...]:
    """Return what shows by size and mtime, unread, that an interpreter may have changed.

    That is the executable, libpython and every folder of the standard library (a file that is
    put in place or removed changes its folder's mtime); for an added one its package. The list of
    added ones is among it where it is there, since a new one may be chosen instead.

    Args:
        python: The interpreter.
        added: The list of added interpreters (`added.index_of`), or None.

    Raises:
        HostError: A folder cannot be read.
    """
    listed = (added,) if added is not None and added.is_file() else ()
    if python.archive is not None:
        return (python.archive, *listed)
    try:
        library = libpython(python)
        folders = sorted(_folders(python.stdlib))
    except OSError as error:
        message = f"{python.path} cannot be read: {error}"
        raise HostError(message) from error
    return (python.path, *((library,) if library else ()), *folders, *listed)


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name not in _LEFT_FOLDERS:
                yield from _folders(folder / entry.name)


def _library_files(python: HostPython) -> Iterator[Source]:
    library = f"lib/python{python.minor}"
    yield from _walk(python.stdlib, library)
    if python.platstdlib != python.stdlib and (python.platstdlib / "lib-dynload").is_dir():
        yield from _walk(python.platstdlib / "lib-dynload", f"{library}/lib-dynload")


def _walk(folder: Path, target: str) -> Iterator[Source]:
    """Yield the files below a folder that are taken; links are followed, broken ones left out."""
    in_config = _CONFIG.fullmatch(folder.name) is not None
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name not in _LEFT_FOLDERS:
                    yield from _walk(folder / entry.name, f"{target}/{entry.name}")
            elif not (
                entry.name in _LEFT_FILES
                or _LEFT_NAMES.fullmatch(entry.name)
                or (in_config and entry.name.startswith("libpython"))
                or not entry.is_file()
            ):
                yield _source(f"{target}/{entry.name}", folder / entry.name)


def _source(target: str, path: Path) -> Source:
    return Source(target=target, path=path, mode=0o755 if path.stat().st_mode & 0o100 else 0o644)


def _binaries(python: HostPython) -> Iterator[Source]:
    """Yield the executable, its config script and pkg-config files, and libpython if it is used."""
    yield Source(target=f"bin/python{python.minor}", path=python.path, mode=0o755)
    script = python.path.parent / f"python{python.minor}-config"
    if script.is_file():
        yield Source(target=f"bin/python{python.minor}-config", path=script, mode=0o755)
    for name in (f"python-{python.minor}.pc", f"python-{python.minor}-embed.pc"):
        for folder in (python.libdir, python.prefix / "lib"):
            if (folder / "pkgconfig" / name).is_file():
                yield _source(f"lib/pkgconfig/{name}", folder / "pkgconfig" / name)
                break
    shared = libpython(python)
    if shared is not None:
        yield Source(target=f"lib/{python.soname}", path=shared, mode=0o755)
        stable = shared.parent / "libpython3.so"
        if not python.is_system and stable.is_file():
            yield Source(target="lib/libpython3.so", path=stable, mode=0o755)


def libpython(python: HostPython) -> Path | None:
    """Return the shared libpython that the package needs, or None.

    One that lies in an own prefix is taken also where the executable holds all of Python, for
    programs that embed it; a system's only where the executable needs it.
    """
    dynamic = elf.read(python.path)
    if ".so" not in python.soname or dynamic is None:
        return None
    folders = [
        *elf.folders_of(python.path, dynamic),
        python.libdir,
        python.prefix / "lib",
        python.path.parent.parent / "lib",
    ]
    found = next((f / python.soname for f in folders if (f / python.soname).is_file()), None)
    if python.soname in dynamic.needed or (found is not None and not python.is_system):
        return found
    return None


def _headers(python: HostPython) -> Iterator[Source]:
    """Yield CPython's own headers; what others put beside them is left out."""
    if not (python.include / "Python.h").is_file():
        return
    target = f"include/python{python.minor}"
    for folder, where in (
        (python.include, target),
        *((python.include / name, f"{target}/{name}") for name in sorted(_HEADER_FOLDERS)),
        (python.include / "internal" / "mimalloc", f"{target}/internal/mimalloc"),
        (
            python.include / "internal" / "mimalloc" / "mimalloc",
            f"{target}/internal/mimalloc/mimalloc",
        ),
    ):
        if folder.is_dir():
            for path in folder.glob("*.h"):
                if path.is_file():
                    yield _source(f"{where}/{path.name}", path)
    # Debian's `pyconfig.h` only includes the one of the architecture, by a path below /usr.
    real = python.include.parent / python.multiarch / python.include.name / "pyconfig.h"
    if python.multiarch and real.is_file():
        yield _source(f"{target}/pyconfig.h", real)


def _wheels(python: HostPython) -> Iterator[Source]:
    """Yield the distribution's wheels for ensurepip, where they lie outside of it."""
    if python.wheels is None or not (python.stdlib / "ensurepip").is_dir():
        return
    bundled = f"lib/python{python.minor}/ensurepip/_bundled"
    for path in sorted(python.wheels.glob("*.whl")):
        if path.name.startswith(("pip-", "setuptools-")):
            yield _source(f"{bundled}/{path.name}", path)


def _bundled(python: HostPython, sources: Sequence[Source]) -> Iterator[Source]:
    """Yield libraries of the interpreter's own prefix that its files need (conda's Python)."""
    if python.is_system:
        return
    seen = {Path(source.target).name for source in sources}
    waiting = [source.path for source in sources if source.mode & 0o100 or ".so" in source.target]
    while waiting:
        path = waiting.pop()
        dynamic = elf.read(path) if elf.is_elf(path) else None
        for name in dynamic.needed if dynamic else ():
            folders = (*elf.folders_of(path, dynamic), python.prefix / "lib") if dynamic else ()
            for folder in folders:
                library = folder / name
                if name in seen or not folder.is_relative_to(python.prefix):
                    continue
                if library.is_file():
                    seen.add(name)
                    waiting.append(library)
                    yield Source(target=f"lib/{name}", path=library, mode=0o755)
