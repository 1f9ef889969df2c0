"""`envbuild check`: is this recipe fine, its text, its lock, and both against the facts."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envbuild.cli import allowing, options, output
from envbuild.cli.context import Here
from envbuild.findings import errors_of

if TYPE_CHECKING:
    from envbuild.lock.model import Lock
    from envbuild.recipe.load import LoadedRecipe


@options.command(
    "check",
    examples="""
    envbuild check h100-pt24
    envbuild check recipes/train.yaml --json
    """,
)
@click.argument("names", metavar="NAME|FILE…", nargs=-1, required=True)
@allowing.allow_option
@options.json_option
@click.pass_obj
def command(here: Here, names: tuple[str, ...], *, as_json: bool) -> int:
    """Say whether a recipe is fine: its text, its lock, both against what is known.

    Nothing is solved and no network is used. Exit code 1: an error is left that the recipe does
    not allow.
    """
    from envbuild.access import Access
    from envbuild.pipeline.allow import once
    from envbuild.pipeline.check import check_recipe
    from envbuild.tools.rattler_process import ahead

    code = 0
    rows: list[dict[str, object]] = []
    facts = here.facts
    today = here.now().date()
    with closing(ahead(Access())) as engine:
        for name in names:
            loaded = once(_loaded(here, name), here.allow_option, today=today)
            lock = _lock(here, loaded)
            looked = check_recipe(loaded, lock, facts, today=today, engine=engine)
            refused = bool(errors_of(looked.findings))
            code = max(code, int(refused))
            own = loaded.recipe.name
            if not as_json:
                output.print_findings(here, looked.findings)
                there = "its lock answers it" if looked.locked else "it has no lock"
                output.result(f"{own}: {'not fine' if refused else f'fine, {there}'}")
            row = {"name": own, "fine": not refused, "locked": looked.locked}
            rows.append({**row, "findings": output.findings_json(looked.findings)})
    if as_json:
        output.print_json({"recipes": rows})
    return code


def _loaded(here: Here, name: str) -> "LoadedRecipe":
    """Load a recipe by its name, or from a file."""
    from envbuild.recipe import load

    path = Path(name)
    if path.suffix == ".yaml" or "/" in name:
        return load.load(path.stem, (path.parent, *here.recipe_folders))
    return load.load(name, here.recipe_folders)


def _lock(here: Here, loaded: "LoadedRecipe") -> "Lock | None":
    from envbuild.lock import files

    folder = here.lock_folder(loaded.recipe.name, recipe=loaded.sources[0].path)
    return None if folder is None else files.read(folder)
