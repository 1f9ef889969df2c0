"""`envbuild rollback`: go back to the state before."""

from typing import Any

import click

from envbuild.cli import moved, options, patience, rendering
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
@rendering.restart_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str | None, *, restart: Any, as_json: bool) -> None:  # noqa: ANN401
    """Go back to the state before the current one; again, and it goes further back.

    With GENERATION (an ID, its beginning, or a number of `envbuild history NAME`) go there.

    Services whose units are installed move with it: units of that generation are verified and
    installed, what must be is restarted, and only when all is ready the generation becomes
    current. Where a service does not come up everything is put back.
    """
    place = present.own(here.stores, name, command="rollback")
    around = moved.services(here, place, restart=restart)
    done = history.roll_back(place, generation, who=moved.who(here), now=here.now(), around=around)
    moved.show(done, as_json=as_json)
