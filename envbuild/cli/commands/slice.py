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


def _root(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--root",
        metavar="DIR",
        type=_FOLDER,
        default=Path("/"),
        help="Keep the ledger of the host whose root is DIR.",
    )(_driver_root(function))


@command.command(
    "apply",
    examples="""
    envbuild slice apply h100-mig
    envbuild slice apply --wish a,memory=40G,isolation=mig --wish b,memory=20G,isolation=mig
    envbuild slice apply --again
    """,
)
@_what
@click.option("--again", is_flag=True, help="Make what is in the ledger, as after a boot.")
@options.dry_run_option
@_root
@options.json_option
@click.pass_obj
def apply_command(
    here: Here,
    /,
    name: str | None,
    wishes: tuple[str, ...],
    *,
    again: bool,
    dry_run: bool,
    root: Path,
    driver_root: Path | None,
    as_json: bool,
) -> int:
    """Make the MIG instances of a plan, and remove those of NAME that are no longer wanted.

    What somebody else made, and cards in use, are never touched. A run that was interrupted is
    finished by the next; with nothing to do nothing is changed. MPS servers are units of their
    own and need nothing here.
    """
    from envbuild.pipeline import shares
    from envbuild.shares import apply

    if again:
        if name is not None or wishes or dry_run:
            message = "--again takes no NAME, no --wish and no --dry-run"
            raise click.UsageError(message)
        made = apply.again(root=root, driver_root=driver_root)
        return _told(made, (), as_json=as_json)
    wanted = shares.asked(name, wishes, here.recipe_folders)
    if dry_run:
        return _show(here, shares.plan_here(wanted, driver_root), as_json=as_json)
    done = apply.apply(wanted.owner, wanted.wishes, root=root, driver_root=driver_root)
    if done.plan is not None and done.plan.refusal is not None:
        return _show(here, done.plan, as_json=as_json)
    return _told(done.made, done.dropped, as_json=as_json)


def _told(made: tuple[str, ...], dropped: tuple[str, ...], *, as_json: bool) -> int:
    if as_json:
        output.print_json({"made": list(made), "removed": list(dropped)})
        return 0
    for job in dropped:
        output.result(f"{job}: its instance is removed")
    for job in made:
        output.result(f"{job}: its instance is made")
    if not made and not dropped:
        output.result("nothing to do: every instance is as it shall be")
    return 0


@command.command(
    "show",
    examples="""
    envbuild slice show
    envbuild slice show --json
    """,
)
@_root
@options.json_option
@click.pass_obj
def show_command(_: Here, /, *, root: Path, driver_root: Path | None, as_json: bool) -> int:
    """Show which instances were made for which job, and which units hold cards now.

    Exit code 1: an instance of the ledger is not there; `envbuild slice apply --again` makes it.
    """
    from envbuild.shares import ledger
    from envbuild.shares.apply import found_of
    from envbuild.shares.held import holders
    from envbuild.shares.host import look

    books = ledger.read(root)
    seen = {one.card.uuid: one for one in look(driver_root)} if books.parts else {}
    states = [(part, found_of(part, seen) is not None) for part in books.parts]
    units = holders(root)
    lacking = any(not there for _part, there in states)
    if as_json:
        parts = [
            {
                "owner": part.owner,
                "job": part.job,
                "card": part.card,
                "profile": part.profile,
                "start": part.start,
                "uuid": part.uuid or None,
                "there": there,
            }
            for part, there in states
        ]
        output.print_json({"instances": parts, "units": {unit: list(has) for unit, has in units}})
        return 1 if lacking else 0
    rows = [
        (part.job, part.profile, part.card, f"{part.start}", part.uuid if there else "not there")
        for part, there in states
    ]
    if rows:
        output.result(output.table(("JOB", "PROFILE", "CARD", "SLICE", "UUID"), rows))
    if units:
        output.result(
            output.table(("UNIT", "HAS"), [(unit, ", ".join(has)) for unit, has in units])
        )
    if not rows and not units:
        output.result("no instance was made, and no unit holds a card")
    return 1 if lacking else 0


@command.command(
    "release",
    examples="""
    envbuild slice release h100-mig
    envbuild slice release -
    """,
)
@click.argument("owner", metavar="NAME")
@_root
@options.json_option
@click.pass_obj
def release_command(
    _: Here, /, owner: str, *, root: Path, driver_root: Path | None, as_json: bool
) -> int:
    """Remove the instances that were made for NAME (`-`: for --wish), where nobody uses them.

    A card that was put into MIG mode for them, and that nothing is left on, is set back.
    """
    from envbuild.shares import apply

    dropped = apply.release(owner, root=root, driver_root=driver_root)
    return _told((), dropped, as_json=as_json)


@command.command(
    "watch",
    examples="""
    envbuild slice watch
    """,
)
@_root
@click.pass_obj
def watch_command(here: Here, /, *, root: Path, driver_root: Path | None) -> None:
    """Watch the PCIe traffic of cards, and lower the CPU quota of units above their limit.

    No kernel mechanism limits PCIe traffic. The counters are those of a whole card; a quota is
    lowered while traffic is above the limit, and raised in small steps while it is well below.
    It runs until it is ended; units with `pcie` start it.
    """
    import os

    from envbuild.shares.watch import Watch, watch

    looking = Watch(root, driver_root, cpus=os.cpu_count() or 1)
    watch(looking, lambda text: output.say(here, text), until=lambda: False)


@command.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    examples="""
    envbuild slice run --mem 8G --sm 30% --pcie 3G -- python serve.py
    envbuild slice run --mem 20G --isolation mig -- nvidia-smi -L
    """,
)
@click.option("--mem", "memory", metavar="SIZE", help="Memory of the card: 8G.")
@click.option("--sm", "sm_share", metavar="PERCENT", help="Multiprocessors: 30%.")
@click.option("--pcie", metavar="RATE", help="Most PCIe traffic, bytes per second; watched: 3G.")
@click.option(
    "--isolation", type=click.Choice(["mig", "mps", "none"]), help="How it is kept apart; mps."
)
@click.option("--card", "cards", metavar="CARD", multiple=True, help="By index, UUID, PCI address.")
@click.option("--as", "user", metavar="USER", help="Run as USER.  [default: who called sudo]")
@click.option("-n", "--dry-run", is_flag=True, help="Print the command that would run.")
@click.argument(
    "words", metavar="[--] COMMAND [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED, required=True
)
@click.pass_obj
def run_command(
    here: Here,
    /,
    words: tuple[str, ...],
    *,
    user: str | None,
    dry_run: bool,
    **gpu: Any,  # noqa: ANN401
) -> None:
    """Run a command with a share of a card, in a unit of its own that ends with it.

    The card is given by the host's ledger and no other card's node can be opened. Without a limit
    it gets a whole card. The exit code is the command's.
    """
    import os
    import shlex

    from envbuild.shares.transient import FOLDER, missing, transient
    from envbuild.tools.systemd import BOOTED

    argv = words[1:] if words[0] == "--" else words
    if not argv:
        message = "there is no command after --"
        raise click.UsageError(message)
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "VIRTUAL_ENV", "CONDA_PREFIX")
    made = transient(
        argv,
        {
            key: value if isinstance(value, str) else list(value)
            for key, value in gpu.items()
            if value
        },
        unit=f"envbuild-run-{os.getpid()}.service",
        user=user or here.environment.get("SUDO_USER") or "root",
        folder=str(Path.cwd()),
        environment={name: here.environment[name] for name in kept if name in here.environment},
        terminal=sys.stdin.isatty() and sys.stdout.isatty(),
    )
    if dry_run:
        output.result(shlex.join(made.argv))
        return
    if not BOOTED.is_dir() or os.geteuid() != 0:
        lacking = "root" if BOOTED.is_dir() else f"a running systemd ({BOOTED} is missing)"
        message = f"a command gets a share of a card by a unit, which needs {lacking}"
        raise HostError(message, hint="sudo envbuild slice run …; --dry-run shows what would run")
    for file in missing(made.files):
        output.write_file(Path("/") / FOLDER / file.name, file.text)
    os.execvp(made.argv[0], list(made.argv))  # noqa: S606 - it replaces this process
