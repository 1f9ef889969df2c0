"""`envbuild wheel`: which wheels need a rebuild, rebuilding them, and the wheelhouse."""

import click

from envbuild.cli import complete, options, output, rebuilt, wheelhouse
from envbuild.cli.context import Here
from envbuild.target import PLATFORMS, Platform


@options.group(
    "wheel",
    examples="""
    envbuild wheel plan h100-pt24
    envbuild wheel rebuild rebuild-demo
    envbuild wheel list
    """,
)
def command() -> None:
    """Say which wheels need a rebuild, and why; rebuild, list, show and collect them."""


for _command in (rebuilt.rebuild, wheelhouse.list_, wheelhouse.show, wheelhouse.gc):
    command.add_command(_command)


@command.command(
    "plan",
    examples="""
    envbuild wheel plan h100-pt24
    envbuild wheel plan h100-pt24-wheel --fetch --json
    envbuild wheel plan rebuild-demo --check
    """,
)
@click.argument("name", shell_complete=complete.recipes)
@click.option(
    "--fetch",
    is_flag=True,
    help="Fetch what neither the environment nor a cache has, by hash, and read it.",
)
@click.option("--check", is_flag=True, help="Exit with 1 if something needs a rebuild.")
@click.option("--platform", type=click.Choice(PLATFORMS), help="By default this machine's.")
@options.json_option
@click.pass_obj
def plan(
    here: Here, name: str, platform: Platform | None, *, fetch: bool, check: bool, as_json: bool
) -> int:
    """Say which wheels of a lock need a rebuild, each with what was read.

    It is held against what the recipe's `build` asks for: compiler, string ABI, GPU code. The
    binaries of the current generation are read, else those in the caches, else what is known of a
    build counts. Exit code 0 whatever the answer is.
    """
    from envbuild.cli import planned, planning

    found = planning.plan_of(here, name, platform or here.platform, fetch=fetch)
    if as_json:
        output.print_json(planned.as_json(found))
    else:
        output.result(planned.text(found))
    return int(check and bool(found.rebuilds))
