"""`envbuild switch`: make another generation current."""

import click

from envbuild.cli import moved, options, patience
from envbuild.cli.context import Here
from envbuild.store import history, present


@options.command(
    "switch",
    examples="""
    envbuild switch h100-pt24 3f9a1c0b7d2e4f56
    envbuild switch h100-pt24 2
    """,
)
@options.environment_argument()
@options.generation_argument()
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str, *, as_json: bool) -> None:
    """Make another generation current.

    GENERATION is an ID, an unambiguous beginning of one, or a number of `envbuild history NAME`:
    the state after that move.
    """
    place = present.own(here.stores, name, command="switch")
    done = history.switch(place, generation, who=moved.who(here), now=here.now())
    moved.show(done, as_json=as_json)
