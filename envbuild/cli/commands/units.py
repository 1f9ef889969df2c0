"""`envbuild units`: the systemd units of a recipe's services, rendered and compared."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.findings import errors_of
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from envbuild.pipeline.units import Rendered
    from envbuild.units.compare import Difference
    from envbuild.units.model import Scope

_RENDER = "render"
_SYSTEM = Path("/etc/systemd/system")


class _Units(options.Group):
    """`units NAME` renders: any word that is no command of the group is a recipe."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command's name before a recipe's."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = [_RENDER, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; of a recipe, what renders its units."""
        return super().get_command(ctx, cmd_name) or self.commands[_RENDER]


@click.group(
    "units",
    cls=_Units,
    examples="""
    envbuild units h100-pt24
    envbuild units h100-pt24 --output units/ --store /var/lib/envbuild
    envbuild units h100-pt24 --check
    envbuild units diff h100-pt24
    """,
)
def command() -> None:
    """Write the systemd units of a recipe's services, and compare them.

    `envbuild units NAME` is `envbuild units render NAME`.
    """


def _target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        options.json_option,
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
            default=252,
            show_default=True,
            help="The hosts' systemd; what it lacks is left out, with a comment.",
        ),
        click.option("--user", is_flag=True, help="For a user's manager, not the machine's."),
    ):
        function = decorate(function)
    return function


@command.command(
    _RENDER,
    examples="""
    envbuild units h100-pt24
    envbuild units h100-pt24 --output units/ --store /var/lib/envbuild
    envbuild units h100-pt24 --output units/ --check
    envbuild units render h100-pt24 --systemd 257 --json
    """,
)
@options.recipe_argument
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write them here, and remove what an earlier rendering left of NAME.",
)
@click.option("--check", is_flag=True, help="Compare instead, with DIR or what is installed.")
@_target_options
@click.pass_obj
def render(
    here: Here,
    /,
    name: str,
    *,
    folder: Path | None,
    check: bool,
    as_json: bool,
    **told: Any,  # noqa: ANN401
) -> int:
    """Render the units of a recipe's services and their slice: print them, or write them to DIR.

    Nothing on the system is touched, and the environment need not exist: its place in the store
    is known from the lock. The same recipe, lock and store give the same bytes. With --check the
    exit code is 1 where something differs.
    """
    from envbuild.units import compare

    rendered = _rendered(here, name, told)
    if check:
        where = folder or _installed(here, user=told["user"])
        found = compare.compare(rendered.files, rendered.name, where)
        return _show_check(here, rendered, found, where, as_json=as_json)
    if folder is not None:
        changed = compare.write(rendered.files, rendered.name, folder)
        return _show_written(here, rendered, changed, folder, as_json=as_json)
    if as_json:
        units = [{"name": file.name, "text": file.text} for file in rendered.files]
        output.print_json(_data(rendered) | {"units": units})
    else:
        output.print_findings(here, rendered.findings, err=True)
        if rendered.files:
            output.result("\n".join(f"# {file.name}\n{file.text}" for file in rendered.files))
        else:
            output.say(here, _nothing(rendered))
    return _code(rendered)


@command.command(
    "diff",
    examples="""
    envbuild units diff h100-pt24
    envbuild units diff h100-pt24 units/
    """,
)
@options.recipe_argument
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@_target_options
@click.pass_obj
def diff(here: Here, /, name: str, folder: Path | None, *, as_json: bool, **told: Any) -> int:  # noqa: ANN401
    """Show how installed units, or those in DIR, differ from what would be rendered.

    Drop-ins are an administrator's and are not looked at. Exit code 1: something differs.
    """
    from envbuild.units import compare

    rendered = _rendered(here, name, told)
    where = folder or _installed(here, user=told["user"])
    found = compare.compare(rendered.files, rendered.name, where)
    if as_json:
        return _show_check(here, rendered, found, where, as_json=True)
    for difference in found:
        click.echo(difference.lines(where), nl=False)
    return 1 if found else 0


def _rendered(here: Here, name: str, told: dict[str, Any]) -> "Rendered":
    from envbuild.pipeline.ask import Ask, Pythons
    from envbuild.pipeline.units import make_units
    from envbuild.store import noop
    from envbuild.store.create import Options
    from envbuild.units.model import Manager
    from envbuild.units.render import Templates

    file = noop.recipe_file(name, here.recipe_folders)
    folder = None if file is None else here.lock_folder(file.stem, recipe=file)
    scope: Scope = "user" if told["user"] else "system"
    platform: Platform = told["platform"] or here.platform
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
    )
    return make_units(
        ask,
        Manager(version=told["version"], scope=scope),
        templates=lambda: Templates((Path(own).expanduser(),) if own else ()),
        store=here.store,
        now=here.now(),
    )


def _installed(here: Here, *, user: bool) -> Path:
    """Return where units are installed (systemd.unit(5), "Unit File Load Path")."""
    if not user:
        return _SYSTEM
    base = here.environment.get("XDG_CONFIG_HOME") or here.home / ".config"
    return Path(base) / "systemd/user"


def _code(rendered: "Rendered") -> int:
    return 1 if errors_of(rendered.findings) else 0


def _data(rendered: "Rendered") -> dict[str, object]:
    made = rendered.generation
    return {
        "name": rendered.name,
        "generation": None if made is None else made.identifier,
        "prefix": None if made is None else str(made.prefix),
        "findings": output.findings_json(rendered.findings),
    }


def _nothing(rendered: "Rendered") -> str:
    return f"{rendered.name}: its recipe has no services and no slice"


def _rows(found: "Sequence[Difference]") -> list[dict[str, str]]:
    return [{"name": one.name, "change": one.change} for one in found]


def _show_written(
    here: Here,
    rendered: "Rendered",
    changed: "Sequence[Difference]",
    folder: Path,
    *,
    as_json: bool,
) -> int:
    if as_json:
        data = {"folder": str(folder), "units": [file.name for file in rendered.files]}
        output.print_json(_data(rendered) | data | {"changed": _rows(changed)})
        return _code(rendered)
    output.print_findings(here, rendered.findings, err=True)
    words = {"missing": "written", "differs": "written", "left over": "removed"}
    for difference in changed:
        output.result(f"{folder / difference.name}: {words[difference.change]}")
    if not rendered.files:
        output.result(_nothing(rendered))
    elif not changed:
        output.result(f"{rendered.name}: {len(rendered.files)} units in {folder} are as rendered")
    return _code(rendered)


def _show_check(
    here: Here, rendered: "Rendered", found: "Sequence[Difference]", folder: Path, *, as_json: bool
) -> int:
    if as_json:
        output.print_json(
            _data(rendered) | {"folder": str(folder), "same": not found, "units": _rows(found)}
        )
        return 1 if found else _code(rendered)
    output.print_findings(here, rendered.findings, err=True)
    for difference in found:
        output.result(f"{folder / difference.name}: {difference.change}")
    if not found:
        output.result(f"{rendered.name}: {len(rendered.files)} units in {folder} are as rendered")
        return _code(rendered)
    where = "" if folder == _SYSTEM else f" {folder}"
    output.next_step(here, f"envbuild units diff {rendered.name}{where}")
    return 1
