"""`envbuild rollback`: go back to the state before."""

import click

from envbuild.cli import moved, options, patience
from envbuild.cli.context import Here
from envbuild.store import history, present


@options.command(
    "rollback",
    examples="""
    envbuild rollback h100-pt24
    envbuild rollback h100-pt24 2
    """,
)
@options.environment_argument()
@options.generation_argument(required=False)
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str | None, *, as_json: bool) -> None:
    """Go back to the state before the current one; again, and it goes further back.

    With GENERATION (an ID, its beginning, or a number of `envbuild history NAME`) go there.
    """
    place = present.own(here.stores, name, command="rollback")
    done = history.roll_back(place, generation, who=moved.who(here), now=here.now())
    moved.show(done, as_json=as_json)
