"""What a host must have before a generation may run on it: `needs.json`."""

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from envbuild.errors import StoreError
from envbuild.store.layout import Generation
from envbuild.target import MACHINES, NONE, Need, Needs, Platform

if TYPE_CHECKING:
    from envbuild.recipe.model import Recipe

VERSION = 1
_FIRST = ("driver", "gpus", "glibc", "cuda")
_FIELDS = tuple(field.name for field in fields(Needs))


def from_recipe(recipe: "Recipe", platform: Platform) -> Needs:
    """Return what the recipe says; what it does not say is unknown, never guessed.

    A recipe that names no card is for CPUs only: it needs no driver either.

    Args:
        recipe: The recipe.
        platform: conda subdir.
    """
    from envbuild.recipe.targets import target as target_of

    target = recipe.target
    spare = None if target.gpus else NONE
    return Needs(
        driver=_need(target.driver or spare),
        gpus=_need(",".join(target.gpus) or NONE),
        glibc=_need(f">={target.glibc}"),
        cuda=_need(target.cuda or recipe.triangle.cuda or spare),
        branches=_need(",".join(f"R{branch}" for branch in target.driver_branches) or NONE),
        floor=_need(spare),
        codes=_need(spare),
        cards=_need(spare),
        capabilities=_need(spare),
        cpu=_need(target_of(recipe, platform).archspec or MACHINES[platform]),
        platform=_need(platform),
        memory=_need(_memory(recipe)),
    )


def _memory(recipe: "Recipe") -> str:
    """Return the most bytes that a service may take; percent are of any host."""
    from envbuild.recipe.words import size_bytes

    limits = [*(service.limits for service in recipe.services.values()), recipe.slice]
    texts = [one.memory_max for one in limits if one is not None]
    sizes = [size_bytes(text) for text in texts if text and text != "infinity" and text[-1] != "%"]
    return str(max(sizes)) if sizes else NONE


def _need(value: str | None) -> Need:
    return Need(value=value, origin=None if value is None else "recipe")


def dumps(needs: Needs) -> str:
    """Return the text of needs.json."""
    return json.dumps({"version": VERSION, **asdict(needs)}, indent=1, ensure_ascii=False) + "\n"


def loads(text: str | bytes) -> Needs:
    """Return what needs.json says.

    Raises:
        ValueError: It is damaged or of another version.
    """
    try:
        data: dict[str, Any] = json.loads(text)
        if data["version"] == VERSION:
            there = {field: data[field] for field in _FIELDS if field in data or field in _FIRST}
            return Needs(**{field: Need(**need) for field, need in there.items()})
    except (KeyError, TypeError) as error:
        message = f"damaged: {error}"
        raise ValueError(message) from error
    message = "of another version of envbuild"
    raise ValueError(message)


def read(generation: Generation) -> Needs:
    """Return what a generation needs of its host.

    Raises:
        StoreError: Its needs.json is missing, damaged or of another version.
    """
    hint = f"envbuild create {generation.place.name} --reinstall"
    try:
        return loads(generation.needs.read_bytes())
    except OSError as error:
        message = f"{generation.needs} cannot be read: {error.strerror}"
        raise StoreError(message, hint=hint) from error
    except ValueError as error:
        message = f"{generation.needs} is no list of needs: {error}"
        raise StoreError(message, hint=hint) from error
