"""`envbuild completion`: the completion script of a shell."""

import click

from envbuild.cli import options

_HOW = {
    "bash": 'eval "$(envbuild completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(envbuild completion zsh)"   # in ~/.zshrc',
    "fish": "envbuild completion fish > ~/.config/fish/completions/envbuild.fish",
}


@options.command("completion", examples="\n".join(_HOW.values()))
@click.argument("shell", type=click.Choice(tuple(_HOW)))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    from envbuild.cli.main import COMPLETE, commands

    classes = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    click.echo(classes[shell](commands, {}, "envbuild", COMPLETE).source())
