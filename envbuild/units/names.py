"""The names of units: no two recipes, and no two services, ever get one name.

A service's unit is `envbuild-NAME.SERVICE.service`: a service's name has no dot, so the last one
separates. A slice's is `envbuild-NAME.slice` with NAME escaped as systemd-escape(1) does: there a
dash means nesting.
"""

import functools
import hashlib
import re
from collections.abc import Iterable
from typing import Final

from envbuild.recipe.service import Service

PARENT_SLICE: Final = "envbuild.slice"
NODES: Final = "envbuild-gpu-nodes.service"
"""Makes the cards' device nodes; one for all environments, as the dot in theirs shows."""
SHARES: Final = "envbuild-gpu-shares.service"
"""Makes the MIG instances of the ledger after a boot; one for all environments."""
PCIE: Final = "envbuild-gpu-pcie.service"
"""Watches PCIe traffic; one for all environments."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.")
_LONGEST_USER: Final = 31
_DIGITS: Final = 8
_SUFFIX: Final = {"socket": ".socket", "timer": ".timer"}


@functools.lru_cache(maxsize=256)
def escape(text: str) -> str:
    """Escape a text for a part of a unit's name, as `systemd-escape TEXT` does."""
    parts: list[str] = []
    for place, byte in enumerate(text.encode()):
        character = chr(byte)
        if character == "/":
            parts.append("-")
        elif character in _PLAIN and not (character == "." and place == 0):
            parts.append(character)
        else:
            parts.append(f"\\x{byte:02x}")
    return "".join(parts)


def slice_of(name: str) -> str:
    """Return the slice of an environment, directly below `envbuild.slice`."""
    return f"envbuild-{escape(name)}.slice"


def stem(name: str, service: str) -> str:
    """Return the name of a service's units without the suffix."""
    return f"envbuild-{name}.{service}"


def belongs(file: str, name: str) -> bool:
    """Tell whether a file's name is one of an environment's units."""
    if file == slice_of(name):
        return True
    found = re.fullmatch(r"envbuild-(.+)\.([A-Za-z0-9_-]+)@?\.(service|socket|timer)", file)
    return found is not None and found[1] == name


def mps(name: str, cards: Iterable[str]) -> str:
    """Return the unit of the MPS server of an environment's services that share these cards.

    No service's name begins with `_`, so no service has this one.

    Args:
        name: The environment.
        cards: The cards that they name, none for any.
    """
    named = "-".join(re.sub(r"[^A-Za-z0-9]", "_", card) for card in sorted(cards))
    return f"envbuild-{name}._mps-{named or 'any'}.service"


def service_unit(name: str, service: str, kind: str) -> str:
    """Return the unit that holds a service's command."""
    return f"{stem(name, service)}{'@' if kind == 'template' else ''}.service"


def awaited(name: str, other: str, services: dict[str, Service]) -> str:
    """Return the unit that `after` and `requires` of a recipe mean.

    Args:
        name: The environment.
        other: A service of the recipe, or a unit.
        services: The recipe's services.
    """
    if other not in services:
        return other
    kind = services[other].kind
    if kind == "socket":
        return stem(name, other) + _SUFFIX[kind]
    return service_unit(name, other, kind)


@functools.lru_cache(maxsize=256)
def dynamic_user(name: str) -> str:
    """Return the name of the user that an environment's services have when none is said.

    It is one for all of them, so that they can share caches; a name that is no user's name, or
    too long for one, is told apart by a digest.
    """
    whole = f"eb-{name}"
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", whole)
    if plain == whole and len(whole) <= _LONGEST_USER:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{plain[: _LONGEST_USER - _DIGITS - 1]}-{digest}"
