"""Small generations for tests: real folders, with the manifest that creation would write."""

import hashlib
import itertools
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from envbuild.store import history, journal, manifest
from envbuild.store.environment import Environment, dumps
from envbuild.store.layout import Generation, Place, Store

WHO = journal.Who(user="anna", host="node1")
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
FIRST = "1111111111111111"
SECOND = "2222222222222222"
THIRD = "3333333333333333"

_SITE = "lib/python3.11/site-packages"
PROGRAM = "bin/hello"
SOURCE = f"{_SITE}/pkg/__init__.py"
LINK = "bin/hi"
_ticks = itertools.count(1)


def place_in(folder: Path, name: str = "demo") -> Place:
    """Return the place of an environment in a store below a folder."""
    return Store(root=folder / "store").place(name)


def make(
    place: Place,
    identifier: str,
    *,
    scripts: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    packages: tuple[manifest.InstalledPackage, ...] | None = None,
    interpreter: manifest.Interpreter | None = None,
) -> Generation:
    """Make a complete generation; each one is newer than the one made before.

    Args:
        place: Its environment.
        identifier: Its ID.
        scripts: More programs for `bin`, name to text.
        variables: What activation sets besides `CONDA_PREFIX`.
        packages: Its packages; one of each half if None.
        interpreter: The machine's interpreter, for a recipe on it.
    """
    generation = place.generation(identifier)
    prefix = generation.prefix
    programs = {"hello": f'#!/bin/sh\necho "hello from {identifier} $*"\n', **(scripts or {})}
    for name, text in programs.items():
        _write(prefix / "bin" / name, text, 0o755)
    _write(prefix / SOURCE, "x = 1\n", 0o644)
    (prefix / LINK).symlink_to("hello")
    generation.own.mkdir()
    environment = Environment(
        set={"CONDA_PREFIX": str(prefix), **(variables or {})},
        prepend={"PATH": (str(prefix / "bin"),)},
    )
    generation.environment.write_text(dumps(environment))
    complete(generation, packages=packages, interpreter=interpreter)
    return generation


def complete(
    generation: Generation,
    *,
    packages: tuple[manifest.InstalledPackage, ...] | None = None,
    interpreter: manifest.Interpreter | None = None,
) -> None:
    """Write the lists of a generation's files, as they are now, and its manifest."""
    rows = [_row(generation.prefix, path) for path in sorted(_paths(generation.prefix))]
    text = manifest.dumps_files(["conda:hello", "pypi:pkg"], rows)
    (generation.own / manifest.FILES).write_text(text)
    manifest.write(
        generation,
        manifest.Manifest(
            name=generation.place.name,
            generation=generation.identifier,
            environment_digest=generation.identifier[:16] * 4,
            solve_digest="a" * 64,
            platform="linux-64",
            prefix=str(generation.prefix),
            created="2026-12-01T12:00:00Z",
            inputs=manifest.Inputs(recipe=(), lock=()),
            packages=_PACKAGES if packages is None else packages,
            files_sha256=hashlib.sha256(text.encode()).hexdigest(),
            interpreter=interpreter,
            file_count=len(rows),
            file_bytes=sum(row[4] for row in rows if isinstance(row[4], int)),
        ),
    )
    tick = next(_ticks) * 1_000_000_000
    os.utime(generation.manifest, ns=(tick, tick))


def incomplete(place: Place, identifier: str) -> Generation:
    """Make what a killed build leaves."""
    generation = place.generation(identifier)
    _write(generation.prefix / PROGRAM, "half", 0o755)
    generation.own.mkdir()
    return generation


def make_current(generation: Generation, what: str = "create") -> None:
    """Make a generation current, as creation does."""
    history.move_current(generation, what=what, who=WHO, now=NOW)


_PACKAGES = (
    manifest.InstalledPackage(
        kind="conda",
        name="hello",
        version="1.2",
        build="h0_0",
        source="https://conda.anaconda.org/conda-forge/linux-64/hello-1.2-h0_0.conda",
        digest="b" * 64,
    ),
    manifest.InstalledPackage(kind="pypi", name="pkg", version="2.0"),
)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _paths(prefix: Path) -> list[str]:
    return [
        str(path.relative_to(prefix))
        for path in prefix.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and ".envbuild" not in path.parts
    ]


def _row(prefix: Path, name: str) -> list[object]:
    path = prefix / name
    if path.is_symlink():
        return [name, "link", os.fspath(path.readlink()), 0, 0, 0]
    content = path.read_bytes()
    kind = "bytecode" if name.endswith(".pyc") else "file"
    owner = 1 if name.startswith(_SITE) else 0
    digest = hashlib.sha256(content).hexdigest()
    return [name, kind, digest, path.stat().st_mode & 0o7777, len(content), owner]
