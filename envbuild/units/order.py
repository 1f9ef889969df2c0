"""What a service requires, wants, is bound to and follows."""

from collections.abc import Sequence
from typing import Final

from envbuild.recipe.model import Recipe
from envbuild.recipe.service_checks import gpu_of
from envbuild.units import cards, names

ONLINE: Final = "network-online.target"
_AFTER_CARDS: Final = ("nvidia-persistenced.service", "nvidia-fabricmanager.service")


def of_service(
    recipe: Recipe, name: str, *, system: bool, server: str | None
) -> dict[str, Sequence[str]]:
    """Return the units that a service's unit names.

    Args:
        recipe: The recipe.
        name: The service.
        system: Whether its unit is for the machine's manager.
        server: The unit of its MPS server, or None.
    """
    wish, known = recipe.services[name], recipe.services
    requires = [names.awaited(recipe.name, other, known) for other in wish.requires]
    after = [*requires, *(names.awaited(recipe.name, other, known) for other in wish.after)]
    if gpu_of(wish) is not None and system:
        own = [names.NODES, *([names.SHARES] if cards.is_cut(wish) else [])]
        requires += own
        after += [*own, *_AFTER_CARDS]
    if server:
        after.append(server)
    after = list(dict.fromkeys(after))
    wants = [ONLINE] if ONLINE in after and ONLINE not in requires else []
    if system and cards.is_watched(wish):
        wants.append(names.PCIE)
    return {
        "binds": [server] if server else [],
        "requires": list(dict.fromkeys(requires)),
        "wants": wants,
        "after": after,
    }
