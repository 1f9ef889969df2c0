"""Every command's help works, has an example, and agrees with the table."""

from collections.abc import Iterator

import click
import pytest

from envbuild.cli.main import commands, main
from envbuild.cli.table import HELP


def _walk(
    command: click.Command, ctx: click.Context
) -> Iterator[tuple[list[str], click.Command, click.Context]]:
    yield ctx.command_path.split()[1:], command, ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from _walk(below, click.Context(below, parent=ctx, info_name=name))


_ROOT = click.Context(commands, info_name="envbuild")


@pytest.mark.parametrize("words", [words for words, _, _ in _walk(commands, _ROOT)], ids=" ".join)
def test_every_command_has_help_with_an_example(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    examples = text.partition("\nExamples:\n")[2].splitlines()
    assert any(" ".join(["envbuild", *words]) in line for line in examples)
    assert "--color" in text


@pytest.mark.parametrize("name", list(HELP))
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = commands.get_command(_ROOT, name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").startswith(HELP[name].removesuffix("."))
