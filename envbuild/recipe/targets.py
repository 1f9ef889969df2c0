"""What the solvers are told about the machine: computed from the recipe, never looked up."""

from envbuild.recipe.model import Recipe
from envbuild.target import MACHINES, Platform, Target


def target(recipe: Recipe, platform: Platform) -> Target:
    """Return the target of a recipe on one platform.

    `__cuda` is the target's own, else the triangle's, else there is none: it is never left to a
    solver's default.
    """
    wish = recipe.target
    archspec = wish.archspec
    if archspec is not None and archspec.startswith(tuple(MACHINES.values())):
        archspec = archspec if archspec.startswith(MACHINES[platform]) else None
    return Target(
        platform=platform,
        glibc=wish.glibc,
        cuda=wish.cuda or recipe.triangle.cuda,
        archspec=archspec,
    )
