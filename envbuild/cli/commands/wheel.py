"""`envbuild wheel`: which wheels need a rebuild."""

from typing import TYPE_CHECKING

import click

from envbuild.cli import complete, options, output
from envbuild.cli.context import Here
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from envbuild.lock.model import Lock
    from envbuild.store.layout import Generation
    from envbuild.wheel.model import Plan


@options.group(
    "wheel",
    examples="""
    envbuild wheel plan h100-pt24
    """,
)
def command() -> None:
    """Say which wheels need a rebuild, and why."""


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
    from envbuild.cli import planned

    found = _plan(here, name, platform or here.platform, fetch=fetch)
    if as_json:
        output.print_json(planned.as_json(found))
    else:
        output.result(planned.text(found))
    return int(check and bool(found.rebuilds))


def _plan(here: Here, name: str, platform: Platform, *, fetch: bool) -> "Plan":
    from envbuild.cli import progress
    from envbuild.errors import LockError
    from envbuild.lock import files
    from envbuild.pipeline.binaries import Where
    from envbuild.pipeline.planning import make_plan
    from envbuild.recipe.load import load
    from envbuild.recipe.targets import target
    from envbuild.solve.ask import sources

    loaded = load(name, here.recipe_folders)
    own = loaded.recipe.name
    folder = here.lock_folder(own, recipe=loaded.sources[0].path)
    if folder is None:
        message = f"{own} has no lock, which decides what its wheels are"
        raise LockError(message, source=own, hint=f"envbuild lock {own}")
    lock = files.read(folder)
    access = here.access
    where = Where(
        generation=_generation(here, own),
        store=here.store,
        target=target(loaded.recipe, platform),
        python=_python(here, lock, platform),
        sources=sources(loaded, cutoff=lock.cutoff, access=access),
        access=access,
        fetch=fetch,
    )
    with progress.shown(here) as shown:
        return make_plan(loaded, lock, platform, where, here.facts, progress=shown)


def _generation(here: Here, name: str) -> "Generation | None":
    """Return the current generation, None where there is none or it is damaged."""
    from envbuild.errors import InputError, StoreError
    from envbuild.store import present, use

    try:
        return use.chosen(present.found(here.stores, name), None)
    except (InputError, StoreError):
        return None


def _python(here: Here, lock: "Lock", platform: Platform) -> str:
    """Return the full version of the lock's Python: conda's, else the machine's."""
    from envbuild.channel import host
    from envbuild.cli.wish import wish

    half = lock.for_platform(platform)
    packages = () if half is None else half.conda
    locked = next((one.version for one in packages if one.name == "python"), None)
    if locked is not None or lock.host_python is None:
        return locked or "3"
    return host.choose(lock.host_python, wish(here, None)).version
