"""Sharing cards between jobs: what is wanted, and the cards that there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.compat.model import Facts
from envbuild.errors import InputError, UsageProblem
from envbuild.recipe.load import load
from envbuild.shares.cards import of_model
from envbuild.shares.host import available, look
from envbuild.shares.model import Card, Plan, Wish
from envbuild.shares.plan import plan
from envbuild.shares.wishes import of_recipe, typed


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is to be shared.

    Attributes:
        owner: The recipe, or `-` for wishes that were typed.
        wishes: What jobs want.
        models: The cards that the recipe is for.
    """

    owner: str
    wishes: tuple[Wish, ...]
    models: tuple[str, ...] = ()


def asked(name: str | None, wishes: Sequence[str], folders: tuple[Path, ...]) -> Asked:
    """Return what a recipe and typed wishes ask for.

    Raises:
        RecipeError: The recipe is wrong, or there is none.
        InputError: Nothing is asked for.
        UsageProblem: A wish is none.
    """
    found = [typed(text) for text in wishes]
    owner = "-"
    models: tuple[str, ...] = ()
    if name is not None:
        recipe = load(name, folders).recipe
        owner = recipe.name
        models = recipe.target.gpus
        found = [*of_recipe(recipe), *found]
    if not found:
        message = f"no service of {owner} asks for a card" if name else "there is no wish"
        hint = "gpu: {memory: 8G, sm_share: 30%} in a service, or --wish NAME,memory=8G,sm=30%"
        raise InputError(message, hint=hint)
    names = [wish.name for wish in found]
    for one in names:
        if names.count(one) > 1:
            message = f"two wishes are called {one}"
            raise UsageProblem(message, hint="give each its own name")
    return Asked(owner=owner, wishes=tuple(found), models=models)


def cards_of(model: str, facts: Facts, *, count: int) -> tuple[Card, ...]:
    """Return cards of a model.

    Raises:
        UsageProblem: Nobody knows it.
    """
    for row in facts.gpus:
        if row.id == model:
            return of_model(row, facts, count=count)
    known = ", ".join(row.id for row in facts.gpus)
    message = f"there is no card called {model}"
    raise UsageProblem(message, hint=f"known are {known}")


def plan_here(wanted: Asked, driver_root: Path | None = None) -> Plan:
    """Plan for the cards of this host; nothing is changed.

    Raises:
        HostError: NVML does not answer.
    """
    return plan(wanted.wishes, [available(seen) for seen in look(driver_root)])


def plan_for(wanted: Asked, model: str, facts: Facts, *, count: int = 1) -> Plan:
    """Plan for cards of a model, by what is known of it.

    Raises:
        UsageProblem: Nobody knows it.
    """
    return plan(wanted.wishes, cards_of(model, facts, count=count))
