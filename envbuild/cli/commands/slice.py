"""`envbuild slice`: shares of cards for several jobs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import HostError, Refused

if TYPE_CHECKING:
    from envbuild.pipeline.shares import Asked
    from envbuild.shares.model import Plan

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(
    "slice",
    cls=options.Group,
    examples="""
    envbuild slice plan h100-share
    envbuild slice plan --gpu h100 --wish tune,memory=40G,sm=80% --wish serve,memory=8G,sm=30%
    """,
)
def command() -> None:
    """Share cards between jobs: memory, multiprocessors and PCIe traffic.

    MIG keeps jobs apart where `isolation: mig` asks for it and a card has it, else MPS does.
    """


def _what(function: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        click.option(
            "--wish",
            "wishes",
            multiple=True,
            metavar="WISH",
            help="A job: NAME,memory=8G,sm=30%,pcie=3G,isolation=mig; may be given several times.",
        ),
        click.argument("name", required=False, metavar="[NAME|FILE]"),
    ):
        function = decorate(function)
    return function


def _driver_root(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--driver-root",
        metavar="DIR",
        type=_FOLDER,
        help="Take NVML of the driver whose files are below DIR.",
    )(function)


@command.command(
    "plan",
    examples="""
    envbuild slice plan h100-share
    envbuild slice plan h100-share --gpu h100 --json
    envbuild slice plan --gpu h200 --cards 2 --wish a,memory=50%,isolation=mig
    """,
)
@_what
@click.option("--gpu", metavar="MODEL", help="Plan for cards of MODEL, not for those of this host.")
@click.option(
    "--cards", metavar="N", type=click.IntRange(1, 64), default=1, help="How many of them; 1."
)
@_driver_root
@options.json_option
@click.pass_obj
def plan_command(
    here: Here,
    /,
    name: str | None,
    wishes: tuple[str, ...],
    *,
    gpu: str | None,
    cards: int,
    driver_root: Path | None,
    as_json: bool,
) -> int:
    """Show which job gets which part of which card; nothing is changed.

    NAME's services say what they want (`gpu:`), and each --wish. On a host without cards the plan
    is for the first card that the recipe is for.

    Exit code 0: there is a plan; 1: what is wanted cannot be, and the nearest that can is said.
    """
    from envbuild.pipeline import shares

    wanted = shares.asked(name, wishes, here.recipe_folders)
    if gpu is not None:
        found = shares.plan_for(wanted, gpu, here.facts_of("gpus"), count=cards)
    else:
        found = _planned(here, wanted, driver_root)
    return _show(here, found, as_json=as_json)


def _planned(here: Here, wanted: "Asked", driver_root: Path | None) -> "Plan":
    """Plan for this host, or for a card of the recipe where this host has none."""
    from envbuild.pipeline import shares

    try:
        return shares.plan_here(wanted, driver_root)
    except HostError:
        if not wanted.models:
            raise
        output.say(here, f"no card here: a plan for the first that {wanted.owner} is for")
        return shares.plan_for(wanted, wanted.models[0], here.facts_of("gpus"))


def _show(here: Here, found: "Plan", *, as_json: bool) -> int:
    from envbuild.cli import shares_text

    if as_json:
        output.print_json(shares_text.data(found))
        return 0 if found.refusal is None else 1
    if found.refusal is not None:
        raise _refused(found)
    output.result(shares_text.drawn(found, color=_colored(here)))
    return 0


def _colored(here: Here) -> bool:
    if here.color:
        return here.color == "always"
    return sys.stdout.isatty()


def _refused(found: "Plan") -> Refused:
    refusal = found.refusal
    if refusal is None:
        message = "a plan that stands is not refused"
        raise AssertionError(message)
    sure = "" if refusal.certain else " (the search was given up)"
    nearest = refusal.nearest
    hint = f"the nearest that can be for {refusal.job}: {nearest}" if nearest else None
    return Refused(f"{refusal.job}: {refusal.why}{sure}", hint=hint)
