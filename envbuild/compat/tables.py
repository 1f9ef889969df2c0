"""Reading the tables of facts: those that ship, then a site's own.

A file is named after its table and holds `[sources]`, a name and a text each, and rows. A site's
rows come after ours; one of the same name takes our row's place.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from envbuild.compat.model import (
    Architecture,
    Branch,
    Cudnn,
    Facts,
    FrameworkBuild,
    Gpu,
    Layout,
    Nvcc,
    Toolkit,
)
from envbuild.compat.row import Row
from envbuild.compat.rows import Place, Table, near, read
from envbuild.compat.words import BadDriver, Claim, KnownBad, Topic, Xid
from envbuild.errors import FactsError

SHIPPED = Path(__file__).parent / "facts"


def _table(key: str, kind: type[Row], attribute: str, **given: str) -> Table:
    return Table(key=key, kind=kind, attribute=attribute, given=given)


_FILES: Mapping[str, Sequence[Table]] = {
    "cuda": (
        _table("toolkit", Toolkit, "toolkits"),
        _table("branch", Branch, "branches"),
        _table("bad_driver", BadDriver, "bad_drivers"),
    ),
    "gpus": (
        _table("architecture", Architecture, "architectures"),
        _table("gpu", Gpu, "gpus"),
        _table("layout", Layout, "layouts"),
    ),
    "compilers": (_table("nvcc", Nvcc, "nvccs"),),
    "cudnn": (_table("cudnn", Cudnn, "cudnns"),),
    "pytorch": (_table("build", FrameworkBuild, "builds", framework="pytorch"),),
    "jax": (_table("build", FrameworkBuild, "builds", framework="jax"),),
    "conda": (_table("build", FrameworkBuild, "builds"),),
    "known_bad": (_table("bad", KnownBad, "known_bad"),),
    "claims": (_table("claim", Claim, "claims"),),
    "xids": (_table("xid", Xid, "xids"),),
    "topics": (_table("topic", Topic, "topics"),),
}


def load(site: Path | None = None, *, only: Collection[str] = ()) -> Facts:
    """Return the facts that ship, with a site's own.

    Args:
        site: Folder of the site's files, named as ours are; None for none.
        only: Names of the files that are read; empty for all.

    Raises:
        FactsError: A file cannot be read, or a row is not what its table has; or the tables
            contradict themselves.
    """
    from envbuild.compat.consistency import Contradiction, check

    found: dict[str, dict[str, Row]] = {}
    places: dict[tuple[type[Row], str], Place] = {}
    for folder, origin in [(SHIPPED, ""), *([(site, str(site))] if site is not None else [])]:
        here: dict[tuple[type[Row], str], Place] = {}
        for path in _paths(folder):
            if only and path.stem not in only:
                continue
            for table, row, place in read(path, _FILES[path.stem], site=origin):
                if first := here.get((type(row), row.name)):
                    raise _error(place, f"{row.name} stands here again", first)
                here[type(row), row.name] = place
                found.setdefault(table.attribute, {})[row.name] = row
        places |= here
    tables: dict[str, Any] = {name: tuple(rows.values()) for name, rows in found.items()}
    facts = Facts(**tables)
    try:
        check(facts)
    except Contradiction as error:
        place = places[type(error.row), error.row.name]
        raise _error(place, f"{error.row.name}: {error}") from error
    return facts


def _error(place: Place, what: str, first: Place | None = None) -> FactsError:
    """Return what is wrong with a row, with its file and line."""

    def where(one: Place) -> str:
        return f"{one.path}:{one.line(one.path.read_text(encoding='utf-8'))}"

    hint = None if first is None else f"the other is {where(first)}"
    at = where(place)
    return FactsError(
        f"{at}: {what}", source=str(place.path), where=at.rpartition(":")[2], hint=hint
    )


def _paths(folder: Path) -> list[Path]:
    """Return the files of a folder, in the order of the tables.

    Raises:
        FactsError: It cannot be read, or has a file of another name.
    """
    try:
        paths = [folder / name for name in os.listdir(folder) if name.endswith(".toml")]  # noqa: PTH208 - glob keeps quiet about what it cannot read
    except OSError as error:
        message = f"{folder}: no folder of facts can be read there: {error.strerror}"
        hint = f"ENVBUILD_FACTS is a folder with files such as {' and '.join(_names()[:2])}"
        raise FactsError(message, source=str(folder), hint=hint) from error
    for path in paths:
        if path.stem not in _FILES:
            message = f"{path}: there is no table of this name"
            nearest = near(path.stem, _FILES, "did you mean {}.toml?")
            known = f"the tables are {', '.join(_names())}"
            raise FactsError(message, source=str(path), hint=nearest or known)
    order = list(_FILES)
    return sorted(paths, key=lambda path: order.index(path.stem))


def _names() -> list[str]:
    return [f"{name}.toml" for name in _FILES]
