"""What the commands that render units share: their options, and the rendering itself."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import allowing, options
from envbuild.cli.context import Here
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from envbuild.pipeline.units import Rendered
    from envbuild.units.model import Scope

SYSTEM = Path("/etc/systemd/system")


_RESTART = click.Choice(("auto", "never", "rolling"))
restart_option = click.option(
    "--restart",
    type=_RESTART,
    default="auto",
    show_default=True,
    help="What becomes of services that run and change: restarted together, left as they are, or "
    "restarted one by one, no further after one that fails.",
)


def scope_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--user` and `--system`."""
    return click.option(
        "--user/--system",
        "user",
        default=False,
        help="For this user's manager, or for the machine's.  [default: --system]",
    )(function)


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what rendering depends on."""
    for decorate in (
        options.json_option,
        allowing.allow_option,
        options.locked_options,
        options.python_option,
        click.option(
            "-p",
            "--platform",
            type=click.Choice(PLATFORMS),
            help="The hosts' platform.  [default: this machine's]",
        ),
        click.option(
            "--templates",
            metavar="DIR",
            type=click.Path(exists=True, file_okay=False),
            help="Take templates from here first.",
        ),
        click.option(
            "--systemd",
            "version",
            metavar="V",
            type=click.IntRange(min=239),
            help="The hosts' systemd; what it lacks is left out, with a comment.  [default: 252; "
            "of what is installed, this host's]",
        ),
        scope_option,
    ):
        function = decorate(function)
    return function


def make(here: Here, name: str, told: dict[str, Any], *, installed: bool) -> "Rendered":
    """Render a recipe's units.

    Args:
        here: How this command runs.
        name: The recipe's name or file.
        told: What the options of the target say.
        installed: Whether they are for this host's systemd, where no option says for which.
    """
    from envbuild.pipeline.ask import Ask, Pythons
    from envbuild.pipeline.units import make_units
    from envbuild.store import noop
    from envbuild.store.create import Options
    from envbuild.units.model import DEFAULT, Manager
    from envbuild.units.render import Templates

    file = noop.recipe_file(name, here.recipe_folders)
    folder = None if file is None else here.lock_folder(file.stem, recipe=file)
    scope: Scope = "user" if told["user"] else "system"
    platform: Platform = told["platform"] or here.platform
    version = told["version"] or (_running() if installed else None) or DEFAULT
    own = told["templates"] or here.told.get("ENVBUILD_TEMPLATES")
    ask = Ask(
        name=name,
        recipe_folders=here.recipe_folders,
        lock_folder=folder,
        lock_output=here.lock_output,
        platform=platform,
        locked=here.locked,
        frozen=here.frozen,
        exclude_newer=None,
        pythons=Pythons(
            option=told["python"],
            variable=here.python,
            running=Path(sys.executable),
            search=here.environment.get("PATH", ""),
        ),
        facts=lambda: here.facts,
        options=Options(),
        allow=here.allow_option,
    )
    return make_units(
        ask,
        Manager(version=version, scope=scope),
        templates=lambda: Templates((Path(own).expanduser(),) if own else ()),
        store=here.store,
        now=here.now(),
    )


def _running() -> int | None:
    """Return the version of the systemd that runs this machine, None for none."""
    from envbuild.tools.systemd import BOOTED, Systemd

    return Systemd().version() if BOOTED.is_dir() else None


def unit_folder(here: Here, *, user: bool) -> Path:
    """Return where units are installed (systemd.unit(5), "Unit File Load Path")."""
    if not user:
        return SYSTEM
    base = here.environment.get("XDG_CONFIG_HOME") or here.home / ".config"
    return Path(base) / "systemd/user"
