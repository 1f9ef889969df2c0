"""Derived rows as a table of facts has them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from envbuild.compat.derive.builds import Derived
from envbuild.compat.model import FrameworkBuild

_LAST = ("sources", "read", "confidence", "note", "site", "framework")


def toml(rows: Iterable[Derived], *, day: str) -> str:
    """Return rows as a file of facts, to be used as it is or pasted into one.

    Args:
        rows: Rows of one framework.
        day: Today (ISO 8601).
    """
    rows = list(rows)
    sources: dict[str, str] = {}
    for row in rows:
        sources |= row.sources
    lines = ["[sources]", *(f"{name} = {_value(text)}" for name, text in sources.items())]
    for row in rows:
        lines += ["", "[[build]]"]
        if row.uploaded is not None:
            lines[-1] += f"  # uploaded {row.uploaded:%Y-%m-%d}"
        lines += [f"{key} = {_value(value)}" for key, value in columns(row, day).items()]
    return "\n".join(lines) + "\n"


def columns(row: Derived, day: str) -> dict[str, object]:
    """Return a row as a table has it, in the order of its columns.

    Args:
        row: The row.
        day: Today (ISO 8601).
    """
    known: Mapping[str, object] = {
        "version": row.version,
        "origin": row.origin,
        "platform": row.platform,
        **row.values,
    }
    return {
        **dict(_known(known)),
        "sources": tuple(row.sources),
        "read": day,
        "confidence": "high",
    }


def _known(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for each in fields(FrameworkBuild):
        if each.name not in _LAST and values.get(each.name) not in (None, ()):
            yield each.name, values[each.name]


def _value(value: object) -> str:
    """Return a value in TOML; its basic strings are those of JSON."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
