"""What an environment needs of a host: what its recipe says, and what follows from the facts."""

from envbuild.compat.model import Facts
from envbuild.compat.needs import complete
from envbuild.lock.model import Lock
from envbuild.pipeline.against import subject_of
from envbuild.recipe.load import LoadedRecipe
from envbuild.store import needs
from envbuild.target import Needs, Platform


def needs_of(loaded: LoadedRecipe, lock: Lock, platform: Platform, facts: Facts) -> Needs:
    """Return what the environment of a lock needs of a host.

    Args:
        loaded: The recipe.
        lock: Its lock.
        platform: conda subdir.
        facts: The tables.
    """
    said = needs.from_recipe(loaded.recipe, platform)
    return complete(said, subject_of(loaded, lock, platform), facts)
