"""The plan of a recipe's lock, and the lock, as commands need them."""

from typing import TYPE_CHECKING

from envbuild.cli.context import Here
from envbuild.target import Platform

if TYPE_CHECKING:
    from envbuild.lock.model import Lock
    from envbuild.recipe.load import LoadedRecipe
    from envbuild.store.layout import Generation
    from envbuild.wheel.model import Plan


def plan_of(here: Here, name: str, platform: Platform, *, fetch: bool) -> "Plan":
    """Return the plan of a recipe's lock, with what earlier rebuilds took.

    Raises:
        LockError: There is no lock, or it does not cover the platform.
    """
    from envbuild.cli import progress
    from envbuild.pipeline.binaries import Where
    from envbuild.pipeline.planning import make_plan
    from envbuild.rebuild import current, house
    from envbuild.recipe.targets import target
    from envbuild.solve.ask import sources

    loaded, lock = locked(here, name)
    own = loaded.recipe.name
    access = here.access
    where = Where(
        generation=_generation(here, own),
        store=here.store,
        target=target(loaded.recipe, platform),
        python=python_of(here, lock, platform),
        sources=(
            *sources(loaded, cutoff=lock.cutoff, access=access),
            house.source(here.store.wheelhouse, access),
        ),
        access=access,
        fetch=fetch,
    )
    earlier = current.costs(house.House(here.store.wheelhouse))
    with progress.shown(here) as shown:
        return make_plan(loaded, lock, platform, where, here.facts, progress=shown, earlier=earlier)


def locked(here: Here, name: str) -> "tuple[LoadedRecipe, Lock]":
    """Return a recipe and its lock.

    Raises:
        LockError: There is no lock.
    """
    from envbuild.errors import LockError
    from envbuild.lock import files
    from envbuild.recipe.load import load

    loaded = load(name, here.recipe_folders)
    own = loaded.recipe.name
    folder = here.lock_folder(own, recipe=loaded.sources[0].path)
    if folder is None:
        message = f"{own} has no lock, which decides what its wheels are"
        raise LockError(message, source=own, hint=f"envbuild lock {own}")
    return loaded, files.read(folder)


def _generation(here: Here, name: str) -> "Generation | None":
    """Return the current generation, None where there is none or it is damaged."""
    from envbuild.errors import InputError, StoreError
    from envbuild.store import present, use

    try:
        return use.chosen(present.found(here.stores, name), None)
    except (InputError, StoreError):
        return None


def python_of(here: Here, lock: "Lock", platform: Platform) -> str:
    """Return the full version of the lock's Python: conda's, else the machine's."""
    from envbuild.channel import host
    from envbuild.cli.wish import wish

    half = lock.for_platform(platform)
    packages = () if half is None else half.conda
    locked = next((one.version for one in packages if one.name == "python"), None)
    if locked is not None or lock.host_python is None:
        return locked or "3"
    return host.choose(lock.host_python, wish(here, None)).version
