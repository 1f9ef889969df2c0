"""`envbuild history`: who moved an environment, when, from and to which generation."""

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.store import history, present


@options.command(
    "history",
    examples="""
    envbuild history h100-pt24
    envbuild history h100-pt24 --json
    """,
)
@options.environment_argument()
@options.json_option
@click.pass_obj
def command(here: Here, name: str, *, as_json: bool) -> None:
    """Show who moved an environment, when, from and to which generation."""
    place = present.existing(here.store, name)
    moves = history.read(place)
    if as_json:
        rows = [
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
        output.print_json({"name": name, "history": rows})
    elif moves:
        headings = ("NUMBER", "WHEN", "WHO", "WHAT", "FROM", "TO")
        lines = (
            (
                str(move.number),
                move.when,
                f"{move.who.user}@{move.who.host}",
                move.what,
                move.origin or "-",
                move.to,
            )
            for move in moves
        )
        output.result(output.table(headings, lines))
    else:
        output.say(here, f"{name} has never had a current generation")
