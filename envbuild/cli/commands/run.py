"""`envbuild run`: become a command in an environment."""

import click

from envbuild.cli import handover, options
from envbuild.cli.context import Here
from envbuild.store import present, use

_OURS = 125


@options.command(
    "run",
    failure_code=_OURS,
    context_settings={"allow_interspersed_args": False},
    examples="""
    envbuild run quickstart -- python -c "import numpy; print(numpy.__version__)"
    envbuild run --generation 3f9a h100-pt24 -- torchrun train.py --epochs 3
    """,
)
@options.generation_option
@options.environment_argument()
@click.argument(
    "words", metavar="[--] COMMAND [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED, required=True
)
@click.pass_obj
def command(here: Here, name: str, generation: str | None, words: tuple[str, ...]) -> None:
    """Run a command in an environment.

    The command replaces envbuild: its exit code, signals and open files are its own. Options after
    NAME belong to the command. envbuild's own failures give 125; 126 is a command that cannot be
    executed, 127 one that does not exist.
    """
    argv = words[1:] if words[0] == "--" else words
    if not argv:
        message = "there is no command after --"
        raise click.UsageError(message)
    activation = use.held(present.found(here.stores, name), generation)
    handover.warn(here, activation)
    handover.tell_cleared(here, activation)
    use.execute(argv, activation.environment.apply(handover.environment(here)))
