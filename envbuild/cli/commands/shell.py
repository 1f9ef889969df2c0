"""`envbuild shell`: become a shell in an environment."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from envbuild.cli import handover, options, output, whose
from envbuild.cli.context import Here
from envbuild.errors import ToolMissing
from envbuild.store import present, shells, use

_FALLBACKS = ("bash", "zsh", "sh")


@options.command(
    "shell",
    examples="""
    envbuild shell quickstart
    envbuild shell h100-pt24 --generation 3f9a
    """,
)
@options.generation_option
@options.environment_argument()
@click.pass_obj
def command(here: Here, name: str, generation: str | None) -> None:
    """Start a shell in an environment; `exit` returns.

    It is $SHELL, else the first of bash, zsh and sh that is there. bash and zsh read the user's
    own start files first and show the environment's name in the prompt.
    """
    activation = use.held(present.found(here.stores, name), generation)
    whose.say(here, activation.generation.place)
    handover.warn(here, activation)
    given = handover.environment(here)
    outer = given.get(shells.INSIDE)
    if outer:
        output.say(here, f"inside the shell of {outer}; exit returns to it")
    given[shells.INSIDE] = name
    shell = _shell(given)
    if not sys.stdin.isatty():
        use.execute([shell], activation.environment.apply(given))
    kind = Path(shell).name
    if kind == "bash":
        descriptor = os.memfd_create("envbuild", 0)  # inherited: bash reads it as its start file
        os.write(descriptor, shells.bash_start(activation, descriptor).encode())
        use.execute([shell, "--rcfile", f"/dev/fd/{descriptor}", "-i"], given)
    if kind == "zsh":
        folder = Path(tempfile.mkdtemp(prefix="envbuild-zsh-"))
        shells.write_zsh_start(activation, folder, given.get("ZDOTDIR"))
        use.execute([shell, "-i"], {**given, "ZDOTDIR": str(folder)})
    output.say(here, f"{kind} does not show it, but this is a shell in {name}; exit returns")
    use.execute([shell], activation.environment.apply(given))


def _shell(environment: dict[str, str]) -> str:
    """Return the path of the shell to start."""
    search = environment.get("PATH", os.defpath)
    for candidate in (environment.get("SHELL"), *_FALLBACKS):
        if candidate and (found := shutil.which(candidate, path=search)):
            return found
    message = "there is no shell"
    raise ToolMissing(message, hint="set SHELL")
