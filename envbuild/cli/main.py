"""The `envbuild` command: it finds the subcommand and turns every error into text and a code."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from envbuild import __version__
from envbuild.cli import options
from envbuild.cli.context import Here
from envbuild.cli.signals import Ending
from envbuild.cli.table import ALIASES, HELP, SECTIONS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_EXAMPLES = """
envbuild create quickstart
envbuild run quickstart -- python -c "import numpy; print(numpy.__version__)"
envbuild lock --check h100-pt24
"""
COMPLETE = "_ENVBUILD_COMPLETE"
_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


class Commands(options.Group):
    """The commands of the table; a module is loaded when its command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the help."""
        return list(HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command by its name or alias, or return None if there is none."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in HELP:
            return None
        module = import_module(f"envbuild.cli.commands.{name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is answered with the nearest known one.

        Raises:
            click.UsageError: There is no such command.
        """
        name = args[0]
        known = [*HELP, *ALIASES]
        if not ctx.resilient_parsing and not name.startswith("-") and name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            ending = f"; did you mean {near[0]!r}?" if near else ""
            message = f"there is no command {name!r}{ending}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Offer commands from the table, and options, without loading a command."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=text)
            for name, text in HELP.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands without loading one."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.resilient_parsing:
        click.echo(f"envbuild {__version__}")
        ctx.exit()


@click.group(
    "envbuild",
    cls=Commands,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def commands() -> None:
    """Reproducible GPU environments: recipe, lock, environment, checked and kept."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; no exception leaves it.

    Args:
        arguments: The words after `envbuild`; those of this process if None.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    here = Here()
    ending = Ending()
    try:
        try:
            if arguments is None:
                ending.watch()
            code = _run(words, here)
        except click.exceptions.Exit as stop:
            code = stop.exit_code
        except (KeyboardInterrupt, click.Abort):
            click.echo(ending.text, err=True)
            code = ending.code
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001
            code = _failed(error, words, here)
        _flush()
    except BrokenPipeError:
        return _leave_broken_pipe()
    return code


def _run(words: list[str], here: Here) -> int:
    if instruction := here.environment.get(COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(commands, {"obj": here}, "envbuild", COMPLETE, instruction)
    with commands.make_context("envbuild", words, obj=here) as ctx:
        answer = commands.invoke(ctx)
    _flush()
    return answer if isinstance(answer, int) else 0


def _failed(error: Exception, words: list[str], here: Here) -> int:
    """Print what went wrong, but not between the lines of someone who completes a word."""
    if here.environment.get(COMPLETE):
        return 1
    from envbuild.cli.report import explain

    return explain(error, words, here)


def _flush() -> None:
    """Write what is buffered while errors can still be told; stdout may be closed."""
    click.echo(nl=False)


def _leave_broken_pipe() -> int:
    """Keep the interpreter from complaining when it flushes at its end; return the code."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return _BROKEN_PIPE
