"""`envbuild pin`: keep a generation from gc."""

import click

from envbuild.cli import moved, options, output, patience
from envbuild.cli.context import Here
from envbuild.store import collect, present


@options.command("pin", examples="envbuild pin h100-pt24 3f9a1c0b7d2e4f56")
@options.environment_argument()
@options.generation_argument()
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str) -> None:
    """Keep a generation from `envbuild gc`, until it is unpinned."""
    place = present.own(here.stores, name, command="pin")
    pinned = collect.pin(place, generation, who=moved.who(here), now=here.now())
    output.result(f"{name}: {pinned.identifier} is pinned")
