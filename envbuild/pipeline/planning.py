"""`make_plan`: which wheels of a recipe's lock need a rebuild."""

from collections.abc import Mapping
from dataclasses import replace

from envbuild.compat.model import Facts
from envbuild.errors import LockError
from envbuild.lock.digest import applying
from envbuild.lock.model import Lock
from envbuild.pipeline.binaries import Where, readings
from envbuild.progress import Progress
from envbuild.recipe.load import LoadedRecipe
from envbuild.target import Platform
from envbuild.wheel.model import Cost, Plan
from envbuild.wheel.plan import FRAMEWORKS, plan
from envbuild.wheel.readings import Question


def make_plan(
    loaded: LoadedRecipe,
    lock: Lock,
    platform: Platform,
    where: Where,
    tables: Facts,
    *,
    progress: Progress,
    earlier: Mapping[str, Cost] | None = None,
) -> Plan:
    """Return what of a lock needs a rebuild, why, and what that takes.

    Args:
        loaded: The recipe.
        lock: Its lock.
        platform: conda subdir.
        where: Where binaries are looked for.
        tables: The tables of facts.
        progress: Is told what is read.
        earlier: What rebuilds of a package took, by name.

    Raises:
        LockError: The lock does not cover the platform.
        EnvbuildError: Something has to be fetched and cannot be.
    """
    half = lock.for_platform(platform)
    if half is None:
        message = f"the lock of {lock.name} has nothing for {platform}"
        raise LockError(message, source=lock.name, hint="name another --platform")
    half = replace(half, pip=applying(half.pip, platform, python=where.python))
    asked = question(loaded, tables, platform, python=where.python, earlier=earlier)
    units = asked.build.sources.keys() or FRAMEWORKS
    return plan(asked, readings(half, units, where, tables, progress), tables)


def question(
    loaded: LoadedRecipe,
    tables: Facts,
    platform: Platform,
    *,
    python: str,
    earlier: Mapping[str, Cost] | None = None,
) -> Question:
    """Return what a recipe asks of wheels.

    Without `build.cuda_archs` it is code for its cards, as far as the tables know them: never for
    those of this machine.

    Args:
        loaded: The recipe.
        tables: The tables of facts.
        platform: conda subdir.
        python: Full version of Python.
        earlier: What rebuilds of a package took, by name.
    """
    recipe = loaded.recipe
    known = {row.id: row.capability for row in tables.gpus}
    cards = {known[gpu] for gpu in recipe.target.gpus if gpu in known}
    return Question(
        name=recipe.name,
        platform=platform,
        build=recipe.build,
        archs=recipe.build.cuda_archs or tuple(sorted(cards, key=_numbers)),
        cuda=recipe.triangle.cuda,
        python=".".join(python.split(".")[:2]),
        folder=f"{loaded.sources[0].path.parent}",
        earlier=earlier,
    )


def _numbers(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))
