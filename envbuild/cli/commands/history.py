"""`envbuild history`: who changed what, when, from and to which generation."""

from collections.abc import Sequence

import click

from envbuild.cli import options, output, whose
from envbuild.cli.context import Here
from envbuild.store import history, present
from envbuild.store.history import Move
from envbuild.store.journal import Entry


@options.command(
    "history",
    examples="""
    envbuild history h100-pt24
    envbuild history --json
    """,
)
@options.environment_argument(required=False)
@options.json_option
@click.pass_obj
def command(here: Here, name: str | None, *, as_json: bool) -> None:
    """Show who moved an environment, when, from and to which generation.

    Without NAME, every change of the store, as its journal has it: also what was built, pinned,
    collected and removed.
    """
    if name is None:
        entries = history.everything(here.store)
        if as_json:
            output.print_json({"journal": [_entry_data(entry) for entry in entries]})
        elif entries:
            headings = ("WHEN", "WHO", "WHAT", "NAME", "FROM", "TO")
            output.result(output.table(headings, map(_entry_row, entries)))
        else:
            output.say(here, f"nothing was changed in {here.store.root} yet")
        return
    place = present.found(here.stores, name)
    whose.say(here, place)
    moves = history.read(place)
    if as_json:
        output.print_json(
            {"name": name, "store": str(place.store.root), "history": _moves_data(moves)}
        )
    elif moves:
        headings = ("NUMBER", "WHEN", "WHO", "WHAT", "FROM", "TO")
        output.result(output.table(headings, map(_move_row, moves)))
    else:
        output.say(here, f"{name} has never had a current generation")


def _moves_data(moves: Sequence[Move]) -> list[dict[str, object]]:
    return [
        {
            "number": move.number,
            "when": move.when,
            "who": move.who.user,
            "host": move.who.host,
            "what": move.what,
            "from": move.origin,
            "to": move.to,
        }
        for move in moves
    ]


def _move_row(move: Move) -> tuple[str, ...]:
    who = f"{move.who.user}@{move.who.host}"
    return (str(move.number), move.when, who, move.what, move.origin or "-", move.to)


def _entry_data(entry: Entry) -> dict[str, object]:
    return {
        "when": entry.when,
        "who": entry.who.user,
        "host": entry.who.host,
        "what": entry.change.what,
        "environment": entry.change.environment,
        "from": entry.change.origin,
        "to": entry.change.to,
        "moves": entry.change.moves,
    }


def _entry_row(entry: Entry) -> tuple[str, ...]:
    change, who = entry.change, f"{entry.who.user}@{entry.who.host}"
    parts = (change.environment, change.origin, change.to)
    return (entry.when, who, change.what, *(part or "-" for part in parts))
