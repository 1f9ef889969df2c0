"""`envbuild units`: the systemd units of a recipe's services, rendered and compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import options, output, rendering, serving
from envbuild.cli.context import Here
from envbuild.cli.rendering import target_options
from envbuild.findings import errors_of

if TYPE_CHECKING:
    from envbuild.pipeline.units import Rendered
    from envbuild.units.compare import Difference

_RENDER = "render"


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
    envbuild units install h100-pt24
    envbuild units status h100-pt24
    """,
)
def command() -> None:
    """Write the systemd units of a recipe's services, compare and install them.

    `envbuild units NAME` is `envbuild units render NAME`.
    """


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
@target_options
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

    rendered = rendering.make(here, name, told, installed=check and folder is None)
    if check:
        where = folder or rendering.unit_folder(here, user=told["user"])
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
@target_options
@click.pass_obj
def diff(here: Here, /, name: str, folder: Path | None, *, as_json: bool, **told: Any) -> int:  # noqa: ANN401
    """Show how installed units, or those in DIR, differ from what would be rendered.

    Drop-ins are an administrator's and are not looked at. Exit code 1: something differs.
    """
    from envbuild.units import compare

    rendered = rendering.make(here, name, told, installed=folder is None)
    where = folder or rendering.unit_folder(here, user=told["user"])
    found = compare.compare(rendered.files, rendered.name, where)
    if as_json:
        return _show_check(here, rendered, found, where, as_json=True)
    for difference in found:
        click.echo(difference.lines(where), nl=False)
    return 1 if found else 0


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
    where = "" if folder == rendering.SYSTEM else f" {folder}"
    output.next_step(here, f"envbuild units diff {rendered.name}{where}")
    return 1


for _each in (serving.install, serving.remove, serving.status, serving.logs):
    command.add_command(_each)
