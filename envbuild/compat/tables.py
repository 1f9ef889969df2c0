"""Reading the tables of facts: those that ship, then a site's own.

A file is named after its table and holds `[sources]`, a name and a text each, and rows. A site's
rows come after ours; one of the same name takes our row's place.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
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
from envbuild.compat.words import BadDriver, Claim, KnownBad, Topic, Xid
from envbuild.errors import FactsError

SHIPPED = Path(__file__).parent / "facts"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    """A table: its rows' key in the file, their type, and where they go.

    Attributes:
        key: The key of the array of tables.
        kind: The type of a row.
        attribute: The attribute of `Facts`.
        given: Values that each row of the file has.
    """

    key: str
    kind: type[Row]
    attribute: str
    given: Mapping[str, str]


def _table(key: str, kind: type[Row], attribute: str, **given: str) -> _Table:
    return _Table(key=key, kind=kind, attribute=attribute, given=given)


_FILES: Mapping[str, Sequence[_Table]] = {
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
    from envbuild.compat.consistency import check

    folders = [(SHIPPED, ""), *([(site, str(site))] if site is not None else [])]
    found: dict[str, dict[str, Any]] = {}
    for folder, origin in folders:
        for path in _paths(folder):
            if only and path.stem not in only:
                continue
            for attribute, row in _rows(path, origin):
                found.setdefault(attribute, {})[row.name] = row
    tables: dict[str, Any] = {name: tuple(rows.values()) for name, rows in found.items()}
    facts = Facts(**tables)
    check(facts)
    return facts


def _paths(folder: Path) -> list[Path]:
    try:
        paths = list(folder.glob("*.toml"))
    except OSError:
        paths = []
    if not folder.is_dir():
        message = f"{folder} is no folder of facts"
        raise FactsError(message, source=str(folder), hint=f"it holds files such as {_known()}")
    for path in paths:
        if path.stem not in _FILES:
            message = f"{path}: there is no table of this name"
            raise FactsError(message, source=str(path), hint=f"the tables are {_known()}")
    order = list(_FILES)
    return sorted(paths, key=lambda path: order.index(path.stem))


def _known() -> str:
    return ", ".join(f"{name}.toml" for name in _FILES)


def _rows(path: Path, origin: str) -> Iterator[tuple[str, Row]]:
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{path}: {error}"
        raise FactsError(message, source=str(path)) from error
    tables = _FILES[path.stem]
    sources = document.pop("sources", {})
    for key in document.keys() - {table.key for table in tables}:
        message = f"{path}: there is no [[{key}]] in this table"
        hint = "its rows are " + " and ".join(f"[[{table.key}]]" for table in tables)
        raise FactsError(message, source=str(path), hint=hint)
    for table in tables:
        for number, data in enumerate(document.get(table.key, ())):
            try:
                yield table.attribute, _row(table, data, sources, origin)
            except ValueError as error:
                where = _line(text, table.key, number)
                message = f"{path}:{where}: {error}"
                raise FactsError(message, source=str(path), where=str(where)) from error


def _row(table: _Table, data: Mapping[str, Any], sources: Mapping[str, str], origin: str) -> Row:
    """Return a row of its type.

    Raises:
        ValueError: It is not what the table has.
    """
    import msgspec

    known = _names(table.kind) - table.given.keys() - {"site"}
    if unknown := sorted(data.keys() - known):
        message = f"unknown key {unknown[0]!r}; the keys are {', '.join(sorted(known))}"
        raise ValueError(message)
    named = data.get("sources", [])
    if not isinstance(named, list) or not named:
        message = "a fact needs sources, a list of names from [sources]"
        raise ValueError(message)
    if missing := [name for name in named if name not in sources]:
        message = f"[sources] has no {missing[0]!r}"
        raise ValueError(message)
    texts = [sources[name] for name in named]
    row = {**data, **table.given, "sources": texts, "site": origin}
    try:
        return msgspec.convert(row, table.kind)
    except msgspec.ValidationError as error:
        raise ValueError(_plain(str(error))) from error


def _names(kind: type[Row]) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind))


def _plain(text: str) -> str:
    """Return a message about `$.key` as one about `key`."""
    what, _, where = text.partition(" - at `$.")
    lowered = what[:1].lower() + what[1:]
    return f"{where.rstrip('`')}: {lowered}" if where else lowered


def _line(text: str, key: str, number: int) -> int:
    """Return the line on which the row of a number begins."""
    heads = list(re.finditer(rf"^\s*\[\[\s*{key}\s*\]\]", text, re.MULTILINE))
    if number >= len(heads):
        return 1
    return text.count("\n", 0, heads[number].end()) + 1
