"""What an environment needs of a host: what its recipe says, and what follows from the facts."""

from dataclasses import replace

from envbuild.compat.model import Facts
from envbuild.compat.needs import complete
from envbuild.lock.model import Lock
from envbuild.pipeline.against import subject_of
from envbuild.recipe.load import LoadedRecipe
from envbuild.store import needs
from envbuild.target import Need, Needs, Platform


def needs_of(loaded: LoadedRecipe, lock: Lock, platform: Platform, facts: Facts) -> Needs:
    """Return what the environment of a lock needs of a host.

    Args:
        loaded: The recipe.
        lock: Its lock.
        platform: conda subdir.
        facts: The tables.
    """
    said = replace(needs.from_recipe(loaded.recipe, platform), disk=_disk(lock, platform))
    return complete(said, subject_of(loaded, lock, platform), facts)


def _disk(lock: Lock, platform: Platform) -> Need:
    half = lock.for_platform(platform)
    if half is None or half.download_bytes is None:
        return Need(value=None, origin="the lock has no sizes")
    return Need(value=str(half.download_bytes), origin="lock: its archives, before unpacking")
