"""`envbuild activate`: print what activates an environment in this shell."""

import sys

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import EnvbuildError
from envbuild.store import present, shells, use


@options.command(
    "activate",
    examples="""
    eval "$(envbuild activate quickstart)"
    envbuild_deactivate
    """,
)
@options.generation_option
@options.environment_argument()
@click.pass_obj
def command(here: Here, name: str, generation: str | None) -> None:
    """Print what activates an environment in this shell (bash or zsh).

    `envbuild_deactivate` puts everything back.
    """
    try:
        activation = use.read(use.chosen(present.found(here.stores, name), generation))
    except EnvbuildError as error:
        if not sys.stdout.isatty():
            output.result(f"(exit {error.exit_code})")  # else eval takes an empty text for success
        raise
    output.result(shells.activation_text(activation).rstrip("\n"))
    if sys.stdout.isatty():
        output.next_step(here, f'eval "$(envbuild activate {name})"')
