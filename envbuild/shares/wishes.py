"""Wishes: of a recipe's services, and as they are typed."""

from collections.abc import Iterator

from pydantic import ValidationError

from envbuild.errors import UsageProblem
from envbuild.recipe.model import Recipe
from envbuild.recipe.service import Gpu
from envbuild.recipe.service_checks import count_of, gpu_of
from envbuild.recipe.words import size_bytes
from envbuild.shares.model import Wish
from envbuild.shares.words import of_hundred, size_mib

_KEYS = {"sm": "sm_share", "mem": "memory"}
_EXAMPLE = "NAME,memory=8G,sm=30%,pcie=3G,isolation=mig"


def of_recipe(recipe: Recipe) -> tuple[Wish, ...]:
    """Return what the services of a recipe want, in their order."""
    found: Iterator[Wish] = (
        of_gpu(f"{recipe.name}.{name}", wish, service.user or "")
        for name, service in recipe.services.items()
        if (wish := gpu_of(service)) is not None
    )
    return tuple(found)


def of_gpu(name: str, gpu: Gpu, user: str = "") -> Wish:
    """Return the wish of a service."""
    memory = gpu.memory
    is_share = memory is not None and memory.endswith("%")
    return Wish(
        name=name,
        count=count_of(gpu),
        cards=gpu.cards,
        memory_mib=None if memory is None or is_share else size_mib(memory),
        memory_percent=of_hundred(memory) if memory is not None and is_share else None,
        sm_percent=None if gpu.sm_share is None else of_hundred(gpu.sm_share),
        pcie_bytes=None if gpu.pcie is None else size_bytes(gpu.pcie),
        isolation=gpu.isolation,
        user=user,
    )


def typed(text: str) -> Wish:
    """Return a wish as it was typed: `NAME,memory=8G,sm=30%,pcie=3G,isolation=mig,cards=0+1`.

    Raises:
        UsageProblem: It is no wish.
    """
    name, *settings = text.split(",")
    values: dict[str, object] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        field = _KEYS.get(key, key)
        values[field] = tuple(value.split("+")) if field == "cards" else value
    user = f"{values.pop('user', '')}"
    if not name or "=" in name:
        message = f"--wish {text!r} has no name"
        raise UsageProblem(message, hint=f"a wish is {_EXAMPLE}")
    try:
        return of_gpu(name, Gpu.model_validate(values), user)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f"--wish {text!r}: {where}: {first['msg'].removeprefix('Value error, ')}"
        raise UsageProblem(message, hint=f"a wish is {_EXAMPLE}") from error
