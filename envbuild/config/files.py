"""Our own configuration files: TOML, checked whole, every complaint with its line."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envbuild.config.keys import KEYS, TABLES, Key, Kind, Setting, Value, key_of
from envbuild.document import Mark, Problem, refusal
from envbuild.document import Path as Steps
from envbuild.errors import InputError

_COLORS = ("auto", "always", "never")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_WORDS = {
    Kind.PATH: "a path, in quotes",
    Kind.PATHS: "a list of paths",
    Kind.SWITCH: "true or false",
    Kind.COUNT: "a whole number from {least} on",
    Kind.SECONDS: "a number of seconds from 0 on",
    Kind.TEXT: "text, in quotes",
    Kind.COLOR: '"auto", "always" or "never"',
    Kind.ADDRESS: "an address with http or https, in quotes",
    Kind.ADDRESSES: "an address with http or https, or a list of them",
}


def read(path: Path, *, home: Path, lines: bool = False) -> tuple[Setting, ...]:
    """Return what a file sets, in its order.

    Args:
        path: The file.
        home: What `~` stands for.
        lines: Whether to find out each setting's line, which takes a while.

    Raises:
        InputError: It is not TOML, or sets what there is not, or to what it cannot be; all
            problems at once.
    """
    text = _text(path)
    data = _parsed(text, path)
    rows: list[tuple[Steps, Setting]] = []
    problems: list[tuple[Steps, str]] = []
    for steps, value in _leaves(data):
        name = ".".join(map(str, steps))
        key = key_of(name)
        if key is None:
            problems.append((steps, _unknown(steps)))
            continue
        checked = _checked(key, value, path.parent, home)
        if checked is None:
            problems.append((steps, f"is to be {_WORDS[key.kind].format(least=key.least)}"))
        else:
            rows.append((steps, Setting(key=name, value=checked, source=str(path))))
    if not problems and not lines:
        return tuple(row for _, row in rows)
    places = _places(text)
    if problems:
        raise refusal(
            tuple(
                Problem(mark=_mark(path, text, places, steps), path=steps, what=what)
                for steps, what in problems
            ),
            source=str(path),
            hint="docs/configuration.md names every setting; `envbuild config` shows them",
        )
    return tuple(
        Setting(key=row.key, value=row.value, source=row.source, line=places.get(steps))
        for steps, row in rows
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        message = f"{path}: not UTF-8 text: byte 0x{error.object[error.start]:02x}"
        raise InputError(message, source=str(path)) from error
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise InputError(
            message, source=str(path), hint="--no-config goes on without configuration files"
        ) from error


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        found = _PLACE.search(told)
        line, column = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, 1)
        mark = Mark(source=str(path), line=line, column=column)
        what = f"not TOML: {_PLACE.sub('', told).strip()}"
        raise refusal((Problem(mark=mark, what=what),), source=str(path)) from error


def _leaves(data: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    """Give every setting: what stands at the top, and what stands in one of our tables."""
    for name, value in data.items():
        if isinstance(value, dict) and name in TABLES:
            for below, one in value.items():
                yield (name, below), one
        else:
            yield (name,), value


def _unknown(steps: Steps) -> str:
    import difflib

    name = ".".join(map(str, steps))
    known = [key.name for key in KEYS if "*" not in key.name]
    if name in TABLES:
        return f"is a table: write [{name}] and its names below"
    near = difflib.get_close_matches(name, [*known, *TABLES], n=1)
    if not near and len(steps) > 1:
        near = difflib.get_close_matches(str(steps[-1]), known, n=1)
    return f"there is no such setting{f'; did you mean {near[0]}?' if near else ''}"


def _checked(key: Key, value: object, folder: Path, home: Path) -> Value | None:
    """Return a value as we keep it, or None if it is none."""
    if key.kind is Kind.PATH:
        return _path(value, folder, home)
    if key.kind is Kind.PATHS:
        paths = [_path(one, folder, home) for one in _listed(value)]
        known = tuple(path for path in paths if path is not None)
        return known if paths and len(known) == len(paths) else None
    if key.kind is Kind.ADDRESSES:
        urls = _listed(value)
        return tuple(urls) if urls and all(map(_is_address, urls)) else None
    return value if isinstance(value, str | int | float) and _fits(key, value) else None


def _fits(key: Key, value: object) -> bool:
    """Tell whether a single value is what a setting may be."""
    if isinstance(value, bool):
        return key.kind is Kind.SWITCH
    if isinstance(value, str):
        return {
            Kind.ADDRESS: _is_address(value),
            Kind.COLOR: value in _COLORS,
            Kind.TEXT: bool(value),
        }.get(key.kind, False)
    if not isinstance(value, int | float) or value < key.least or not math.isfinite(value):
        return False
    return key.kind is Kind.SECONDS or (key.kind is Kind.COUNT and isinstance(value, int))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _path(value: object, folder: Path, home: Path) -> str | None:
    """Return a path, made absolute: `~` is the home, other relative ones lie beside the file."""
    if not isinstance(value, str) or not value or "\0" in value:
        return None
    if value == "~" or value.startswith("~/"):
        return str(home / value[2:])
    return str(folder.absolute() / value)


def _is_address(value: object) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"https?://[^/\s]\S*", value))


def _places(text: str) -> dict[Steps, int]:
    """Return the line where each setting is written.

    tomllib gives no places, so growing beginnings of the text are read: a setting begins on the
    line after the last beginning that was whole without it.
    """
    found: dict[Steps, int] = {}
    lines = text.splitlines(keepends=True)
    start = 1
    for number in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        for steps, _ in _leaves(data):
            found.setdefault(steps, start)
        start = number + 1
    return found


def _mark(path: Path, text: str, places: Mapping[Steps, int], steps: Steps) -> Mark:
    number = places.get(steps, 1)
    line = text.splitlines()[number - 1]
    column = line.find(str(steps[-1])) + 1
    return Mark(source=str(path), line=number, column=max(column, 1))
