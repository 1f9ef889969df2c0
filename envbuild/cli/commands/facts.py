"""`envbuild facts`: what is known of drivers, CUDA, cards and frameworks, with sources."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import FactsError

if TYPE_CHECKING:
    from envbuild.compat.model import Facts, Row

_COMMON = ("sources", "read", "confidence", "note", "site")
_LONG = ("wheel", "sha256", "mig", "pci_ids", "all_codes")
_WIDTH = 76


@options.group(
    "facts",
    examples="""
    envbuild facts list pytorch 2.4.0
    envbuild facts show "gpu h100"
    ENVBUILD_FACTS=./facts envbuild facts list driver
    """,
)
def command() -> None:
    """Show what is known of drivers, CUDA, cards and frameworks, with sources.

    A site's own rows stand in the folder that ENVBUILD_FACTS names, in files named as ours.
    """


@command.command(
    "list",
    examples="""
    envbuild facts list
    envbuild facts list pytorch cu124
    envbuild facts list --confidence low --json
    """,
)
@click.argument("words", metavar="[WORD]…", nargs=-1)
@click.option(
    "--confidence",
    type=click.Choice(["high", "medium", "low"]),
    help="Only rows that are this sure.",
)
@options.json_option
@click.pass_obj
def listed(
    here: Here,
    words: tuple[str, ...],
    confidence: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """List facts, all of them or those that have every WORD in their name."""
    rows = [
        row
        for row in here.facts.rows()
        if _fits(row.name, words) and confidence in (None, row.confidence)
    ]
    if as_json:
        output.print_json({"facts": [_json(row) for row in rows]})
    elif rows:
        lines = ((row.name, _summary(row), row.confidence, row.read) for row in rows)
        output.result(output.table(("FACT", "WHAT", "CONFIDENCE", "READ"), lines))
    else:
        output.say(here, f"no fact has {' and '.join(map(repr, words))} in its name")


@command.command("show", examples='envbuild facts show "pytorch 2.4.0 cu124"')
@click.argument("words", metavar="NAME…", nargs=-1, required=True)
@options.json_option
@click.pass_obj
def show(here: Here, words: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Show a fact with where it was read, when, and how sure it is."""
    row = _found(here.facts, " ".join(words))
    if as_json:
        output.print_json(_json(row))
        return
    lines = [row.name, *(f"  {key}: {_text(value)}" for key, value in _values(row))]
    lines += [f"  note: {row.note}"] if row.note else []
    lines += [f"  source: {text}" for text in row.sources]
    lines.append(f"  read: {row.read}, confidence {row.confidence}")
    lines += [f"  from: {row.site}"] if row.site else []
    output.result("\n".join(lines))


def _fits(name: str, words: Sequence[str]) -> bool:
    return all(word.lower() in name.lower() for word in words)


def _found(facts: "Facts", wanted: str) -> "Row":
    """Return the row of a name, or the only one whose name has it.

    Raises:
        FactsError: There is none, or more than one.
    """
    rows = {row.name: row for row in facts.rows()}
    if wanted in rows:
        return rows[wanted]
    fitting = [name for name in rows if _fits(name, wanted.split())]
    if len(fitting) == 1:
        return rows[fitting[0]]
    if fitting:
        message = f"{len(fitting)} facts have {wanted!r} in their names"
        raise FactsError(message, source=wanted, hint=f"one of them is {fitting[0]!r}")
    near = get_close_matches(wanted, rows, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else "see: envbuild facts list"
    message = f"there is no fact {wanted!r}"
    raise FactsError(message, source=wanted, hint=hint)


def _values(row: "Row") -> Iterator[tuple[str, object]]:
    """Yield what the row says, without what every row has and what it does not know."""
    for each in fields(row):
        value = getattr(row, each.name)
        if each.name not in _COMMON and value not in (None, (), {}, ""):
            yield each.name, value


def _summary(row: "Row") -> str:
    """Return the values that the name does not hold, short."""
    shown = [
        f"{key} {_text(value)}"
        for key, value in _values(row)
        if f"{value}" not in row.name.split() and key not in _LONG
    ]
    text = "; ".join(shown)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    return f"{value}"


def _json(row: "Row") -> dict[str, object]:
    return {"name": row.name, **asdict(row)}
