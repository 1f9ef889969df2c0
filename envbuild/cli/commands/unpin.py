"""`envbuild unpin`: let gc remove a generation again."""

import click

from envbuild.cli import moved, options, output, patience
from envbuild.cli.context import Here
from envbuild.store import collect, present


@options.command("unpin", examples="envbuild unpin h100-pt24 3f9a1c0b7d2e4f56")
@options.environment_argument()
@options.generation_argument()
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, generation: str) -> None:
    """Let `envbuild gc` remove a generation again."""
    place = present.own(here.stores, name, command="unpin")
    unpinned = collect.unpin(place, generation, who=moved.who(here), now=here.now())
    output.result(f"{name}: {unpinned.identifier} is not pinned")
