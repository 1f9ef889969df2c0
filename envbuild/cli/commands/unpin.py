"""`envbuild unpin`: let gc remove a generation again."""

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.store import collect, present


@options.command("unpin", examples="envbuild unpin h100-pt24 3f9a1c0b7d2e4f56")
@options.environment_argument()
@options.generation_argument()
@click.pass_obj
def command(here: Here, name: str, generation: str) -> None:
    """Let `envbuild gc` remove a generation again."""
    unpinned = collect.unpin(present.existing(here.store, name), generation)
    output.result(f"{name}: {unpinned.identifier} is not pinned")
