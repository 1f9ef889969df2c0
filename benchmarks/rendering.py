"""Rendering units of 200 services with their slices, against jinja2 alone making the same texts.

Both sides run in this process, since reading a recipe is no part of it, and their time is that of
the processor, since neither waits for anything: ours from recipes that are loaded, theirs from the
very values that our templates are given, with the same templates.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from harness import Failed, Result

from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.units import versions
from envbuild.units.model import Manager, Origin
from envbuild.units.render import SHIPPED, Templates, render

RECIPES = 50
SERVICES = 4
BOUND = 1.5
REPEAT = 31
STORE = "/var/lib/envbuild"
SERVICE = """\
  s{number}:
    exec: [python, -m, app.worker, --number, "{number}", --data, "/srv/data set/{number}"]
    environment: {{LEVEL: info, DATA: /srv/data, GREETING: 'say "100 %"'}}
    write: [/srv/data]
    limits: {{cpu_quota: 200%, memory_max: 8G, tasks_max: 200}}
    readiness: {{kind: port, port: {port}}}
"""
SLICE = "slice: {memory_max: 64G, cpu_weight: 200, tasks_max: 2000}\n"


class Kept(Templates):
    """The templates, and what they were given."""

    def __init__(self) -> None:
        """Start with nothing."""
        super().__init__()
        self.given: list[tuple[str, dict[str, Any]]] = []

    def text(self, name: str, values: Mapping[str, Any]) -> str:
        """Keep what a template is given."""
        self.given.append((name, dict(values)))
        return super().text(name, values)


def result() -> Result:
    """Measure both sides in turn; each begins with templates that were not read yet."""
    recipes = [recipe(number) for number in range(RECIPES)]
    kept = Kept()
    told = ours(recipes, kept)
    lacks = versions.missing(Manager().version)
    if sorted(told) != sorted(versions.fitted(text, lacks) for text in theirs(kept.given)):
        message = "the two sides do not make the same texts"
        raise Failed(message)
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(recipes, Templates()),
        "theirs": lambda: theirs(kept.given),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(REPEAT):
        for name in sorted(sides, reverse=bool(number % 2)):
            gc.collect()
            start = time.process_time()
            sides[name]()
            times[name].append(time.process_time() - start)
    return Result(
        name=f"units of {RECIPES * SERVICES} services",
        ours_s=statistics.median(times["ours"]),
        theirs_s=statistics.median(times["theirs"]),
        bound=BOUND,
        theirs_name="jinja2, the same templates and values",
    )


def recipe(number: int) -> LoadedRecipe:
    """Return a recipe with a slice and services, every second one with a card."""
    lines = [f"name: e{number}\nservices:\n"]
    for each in range(SERVICES):
        lines.append(SERVICE.format(number=each, port=8000 + each))
        if each % 2:
            lines.append("    gpu: 1\n")
    return loads("".join([*lines, SLICE]), source=f"e{number}.yaml")


def ours(recipes: list[LoadedRecipe], templates: Templates) -> list[str]:
    """Render as `envbuild units` does."""
    texts: list[str] = []
    for loaded in recipes:
        name = loaded.recipe.name
        prefix = f"{STORE}/envs/{name}/generations/0123456789abcdef"
        origin = Origin(name=name, prefix=prefix, own=f"{prefix}/.envbuild")
        texts += [file.text for file in render(loaded, origin, Manager(), templates)]
    return texts


def theirs(given: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Render as a few lines with jinja2 do."""
    environment = jinja2.Environment(  # noqa: S701 - no HTML
        loader=jinja2.FileSystemLoader(SHIPPED),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return [environment.get_template(f"{name}.j2").render(values) for name, values in given]
