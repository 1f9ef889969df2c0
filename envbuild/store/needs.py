"""What a host must have before a generation may run on it: `needs.json`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from envbuild.errors import StoreError
from envbuild.store.layout import Generation
from envbuild.target import Need, Needs

if TYPE_CHECKING:
    from envbuild.recipe.model import Recipe

VERSION = 1
_FIELDS = ("driver", "gpus", "glibc", "cuda")


def from_recipe(recipe: "Recipe") -> Needs:
    """Return what the recipe says; what it does not say is unknown, never guessed."""
    target = recipe.target
    return Needs(
        driver=_need(target.driver),
        gpus=_need(",".join(target.gpus) or None),
        glibc=_need(f">={target.glibc}"),
        cuda=_need(target.cuda or recipe.triangle.cuda),
    )


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
            return Needs(**{field: Need(**data[field]) for field in _FIELDS})
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
