"""`envbuild switch`: make another generation current."""

from typing import Any

import click

from envbuild.cli import moved, options, patience, rendering
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
@rendering.restart_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str, *, restart: Any, as_json: bool) -> None:  # noqa: ANN401
    """Make another generation current.

    GENERATION is an ID, an unambiguous beginning of one, or a number of `envbuild history NAME`:
    the state after that move.

    Services whose units are installed move with it: units of that generation are verified and
    installed, what must be is restarted, and only when all is ready the generation becomes
    current. Where a service does not come up everything is put back.
    """
    place = present.own(here.stores, name, command="switch")
    around = moved.services(here, place, restart=restart)
    done = history.switch(place, generation, who=moved.who(here), now=here.now(), around=around)
    moved.show(done, as_json=as_json)
