"""`make_units`: from a recipe, its lock and a store to the units of its services."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from envbuild.errors import EnvbuildError, StoreError
from envbuild.findings import Findings
from envbuild.pipeline.allow import judge as let_through
from envbuild.pipeline.allow import once
from envbuild.pipeline.ask import Ask
from envbuild.pipeline.orders import read_order
from envbuild.recipe.load import LoadedRecipe, load
from envbuild.store import present, use
from envbuild.store.create import Host, first_identifier, is_of, newest
from envbuild.store.environment import Environment
from envbuild.store.layout import Generation, Place, Store
from envbuild.units import hidden
from envbuild.units.judge import judge
from envbuild.units.model import Manager, Origin, UnitFile
from envbuild.units.render import Templates, render


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """The units of a recipe.

    Attributes:
        name: The recipe.
        generation: The one that they name, None where there is no service.
        files: The units, sorted by name.
        findings: What there is to say about them.
        loaded: The recipe itself, None where they are of an earlier one.
    """

    name: str
    loaded: LoadedRecipe | None
    generation: Generation | None
    files: tuple[UnitFile, ...]
    findings: Findings


def make_units(
    ask: Ask,
    manager: Manager,
    *,
    templates: Callable[[], Templates],
    store: Store,
    now: datetime,
) -> Rendered:
    """Render the units of a recipe; nothing is written, and the environment need not exist.

    Args:
        ask: What is asked.
        manager: The systemd that they are for.
        templates: Finds the templates.
        store: The store that the environment is or would be in.
        now: The instant (UTC).

    Raises:
        RecipeError: The recipe is wrong, or a value of it cannot stand in a unit.
        LockError: A recipe with services has no lock, or it is damaged.
        Refused: The lock does not answer its recipe.
        InputError: A template is wrong.
    """
    loaded = once(load(ask.name, ask.recipe_folders), ask.allow, today=now.date())
    name = loaded.recipe.name
    if not loaded.recipe.services:
        origin = Origin(name=name, prefix="", own="")
        files = render(loaded, origin, manager, templates()) if loaded.recipe.slice else ()
        return Rendered(name=name, loaded=loaded, generation=None, files=files, findings=())
    order, host = read_order(ask, loaded, store=store, now=now)
    place = store.resolved().place(name)
    generation = _generation(place, order.environment_digest)
    findings = (
        *judge(loaded, manager, activation=_activation(generation)),
        *hidden.judge(loaded, manager, prefix=f"{generation.prefix}"),
    )
    return Rendered(
        name=name,
        loaded=loaded,
        generation=generation,
        files=render(loaded, _origin(generation, host), manager, templates()),
        findings=let_through(findings, loaded, today=now.date()),
    )


def _generation(place: Place, digest: str) -> Generation:
    """Return the generation of a digest: the current one, the newest, or the one to be made."""
    with contextlib.suppress(StoreError):
        current = present.current(place)
        if current is not None and is_of(current, digest) and present.complete(current):
            return current
    return newest(place, digest) or place.generation(first_identifier(digest))


def _origin(generation: Generation, host: Host | None) -> Origin:
    interpreter = None
    if host is not None:
        python = host.interpreter
        interpreter = f"{python.path} ({python.version}, sha256 {python.digest})"
    return Origin(
        name=generation.place.name,
        prefix=f"{generation.prefix}",
        own=f"{generation.own}",
        interpreter=interpreter,
    )


def _activation(generation: Generation) -> Environment | None:
    """Return what activation sets, None where the generation is not there."""
    try:
        return use.read(generation).environment if present.complete(generation) else None
    except EnvbuildError:
        return None
