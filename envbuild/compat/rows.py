"""Reading one file of facts: every complaint names file and line, and what is nearest."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from envbuild.compat.row import Row
from envbuild.errors import FactsError

_AT = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")
_FIELD = re.compile(r"(?P<what>.*?)(?: - at `\$\.(?P<where>(?P<key>\w+).*)`)?")
_MISSING = "Object missing required field "


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a row stands.

    Attributes:
        path: The file.
        key: The key of its array of tables.
        number: Which of them it is, from 0.
    """

    path: Path
    key: str
    number: int

    def line(self, text: str) -> int:
        """Return the line of the file's text on which it begins, 1 where that cannot be seen."""
        heads = list(re.finditer(rf"^\s*\[\[\s*{self.key}\s*\]\]", text, re.MULTILINE))
        if self.number >= len(heads):
            return 1
        return text.count("\n", 0, heads[self.number].end()) + 1


class _BadRow(ValueError):
    """A row is not what its table has."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = hint


def read(path: Path, tables: Sequence[Table], *, site: str) -> Iterator[tuple[Table, Row, Place]]:
    """Yield the rows of a file, with their tables and where they stand.

    Args:
        path: The file.
        tables: The tables that it may hold.
        site: Folder of the site's own facts that it is in, or empty.

    Raises:
        FactsError: The file cannot be read, or a row is not what its table has.
    """
    text = _text(path)
    document = _document(path, text)
    sources = _sources(path, text, document.pop("sources", {}))
    keys = [table.key for table in tables]
    for key, rows in document.items():
        if key not in keys:
            hint = f"its rows are {' and '.join(f'[[{each}]]' for each in keys)}"
            hint = near(key, keys, "did you mean [[{}]]?") or hint
            _refuse(path, _line_of(text, key), f"there is no [[{key}]] in this table", hint)
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            where = _line_of(text, key)
            _refuse(
                path, where, f"{key} is not an array of tables", f"begin each row with [[{key}]]"
            )
    for table in tables:
        for number, data in enumerate(document.get(table.key, ())):
            place = Place(path=path, key=table.key, number=number)
            try:
                yield table, _row(table, data, sources, site), place
            except _BadRow as error:
                _refuse(path, place.line(text), str(error), error.hint)


def near(word: str, known: Iterable[str], told: str) -> str | None:
    """Return a text that names the known word which is nearest, or None where none is near."""
    found = get_close_matches(word, list(known), n=1)
    return told.format(found[0]) if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise FactsError(message, source=str(path)) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"{path}:{line}: this is no UTF-8"
        raise FactsError(message, source=str(path), where=f"{line}") from error


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.fullmatch(str(error))
        what, where = (found[1], f"{found[2]}:{found[3]}") if found else (str(error), "")
        what = what[:1].lower() + what[1:]
        message = f"{path}:{where}: {what}" if where else f"{path}: {what}"
        raise FactsError(message, source=str(path), where=where, hint="it is TOML 1.0") from error


def _sources(path: Path, text: str, sources: object) -> Mapping[str, str]:
    """Return the names of sources with their texts.

    Raises:
        FactsError: They are something else, or a text is empty.
    """
    if not isinstance(sources, dict):
        where = _line_of(text, "sources")
        _refuse(
            path, where, "sources is not a table", 'begin it with [sources], then NAME = "text"'
        )
    for name, told in sources.items():
        if not isinstance(told, str) or not told.strip():
            hint = "a document, a file, a page: what others can look up"
            _refuse(path, _line_of(text, name), f"[sources] {name}: a text is needed", hint)
    return sources


def _row(table: Table, data: Mapping[str, Any], sources: Mapping[str, str], site: str) -> Row:
    """Return a row of its type.

    Raises:
        _BadRow: It is not what the table has.
    """
    import msgspec

    known = {each.name for each in fields(table.kind)} - table.given.keys() - {"site"}
    if unknown := sorted(data.keys() - known):
        hint = near(unknown[0], known, "did you mean {!r}?")
        message = f"unknown key {unknown[0]!r}"
        raise _BadRow(message, hint or f"the keys are {', '.join(sorted(known))}")
    named = data.get("sources", [])
    if not isinstance(named, list) or not named:
        message = "a fact needs sources, a list of names from [sources]"
        raise _BadRow(message, 'such as sources = ["wiki"]')
    if missing := [name for name in named if name not in sources]:
        message = f"[sources] has no {missing[0]!r}"
        raise _BadRow(message, near(f"{missing[0]}", sources, "did you mean {!r}?"))
    texts = [sources[name] for name in named]
    row = {**data, **table.given, "sources": texts, "site": site}
    try:
        return msgspec.convert(row, table.kind)
    except msgspec.ValidationError as error:
        raise _plain(table.kind, data, str(error)) from error


def _plain(kind: type[Row], data: Mapping[str, Any], text: str) -> _BadRow:
    """Return what a type's reader says, in our words, with what would do."""
    if text.startswith(_MISSING):
        return _BadRow(f"a fact of this table needs {text.removeprefix(_MISSING).strip('`')}")
    found = _FIELD.fullmatch(text)
    what, where, key = (found["what"], found["where"], found["key"]) if found else (text, "", "")
    message = f"{where}: {what[:1].lower()}{what[1:]}" if where else what
    allowed = get_type_hints(kind).get(key or "")
    if get_origin(allowed) is Literal:
        words = get_args(allowed)
        hint = near(f"{data[key]}", words, "did you mean {!r}?")
        return _BadRow(f"{key}: {data[key]!r} is none of {', '.join(words)}", hint)
    return _BadRow(message, "write it in quotes" if "Expected `str`" in what else None)


def _line_of(text: str, key: str) -> int:
    """Return the line on which a key or a head of tables first stands, else 1."""
    head = re.search(rf"^\s*(\[+\s*)?[\"']?{re.escape(key)}\b", text, re.MULTILINE)
    return 1 if head is None else text.count("\n", 0, head.end()) + 1


def _refuse(path: Path, line: int, what: str, hint: str | None) -> NoReturn:
    message = f"{path}:{line}: {what}"
    raise FactsError(message, source=str(path), where=f"{line}", hint=hint)
