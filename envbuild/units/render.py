"""From a recipe's services and slice to the text of units; the only user of jinja2."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2

from envbuild.errors import InputError, RecipeError
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.service_checks import gpu_of
from envbuild.units import cards, names, versions, view
from envbuild.units.model import Manager, Origin, UnitFile
from envbuild.units.view import Place, Unwritable

SHIPPED: Final = Path(__file__).parent.parent / "templates"
_WRITTEN_BY: Final = "Written by `envbuild units"
_NOT_TO_EDIT: Final = "Changes belong into the recipe, or into a drop-in: systemctl edit"


class Templates:
    """The templates that ship, each of which a site's folder may replace.

    A template of the site extends the one that it replaces as `shipped/service.j2`.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        """Look into the folders first, first one first."""
        shipped = jinja2.FileSystemLoader(SHIPPED)
        own = [jinja2.FileSystemLoader(folder) for folder in folders]
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader([*own, shipped, jinja2.PrefixLoader({"shipped": shipped})]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701 - no HTML; values are escaped for their place
            finalize=_one_line,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._found: dict[str, jinja2.Template] = {}

    def text(self, name: str, values: Mapping[str, Any]) -> str:
        """Return the text that a template makes of values.

        Raises:
            InputError: The template is wrong, or a value would not stay on its line.
        """
        try:
            template = self._found.get(name)
            if template is None:
                template = self._found[name] = self._environment.get_template(f"{name}.j2")
                # a ChainMap, which every `render` would walk
                template.globals = dict(template.globals)
            return template.render(values)
        except jinja2.TemplateSyntaxError as error:
            source = error.filename or f"{name}.j2"
            message = f"{source}:{error.lineno}: {error.message}"
            raise InputError(message, source=source, where=f"{error.lineno}") from error
        except (jinja2.TemplateError, ValueError) as error:
            message = f"the template {name}.j2: {error}"
            raise InputError(message, source=f"{name}.j2") from error


def render(
    loaded: LoadedRecipe, origin: Origin, manager: Manager, templates: Templates
) -> tuple[UnitFile, ...]:
    """Return the units of a recipe's services and their slice, sorted by name.

    There is none where the recipe has neither.

    Args:
        loaded: The recipe.
        origin: What the units belong to.
        manager: The systemd that they are for.
        templates: The templates.

    Raises:
        RecipeError: A value cannot stand in a unit; says where.
        InputError: A template is wrong.
    """
    recipe = loaded.recipe
    if not recipe.services and recipe.slice is None:
        return ()
    lacks = versions.missing(manager.version)
    head, of_service = _header(origin, manager), _header_of_service(origin, manager)
    found: dict[str, UnitFile] = {}
    try:
        for unit, template, values in _wanted(loaded, origin, manager):
            shared = unit in {names.NODES, names.PCIE, names.SHARES}
            if shared and unit in found:
                continue
            header = of_service if template in {"mps", "service"} else head
            if shared:
                header = [f"{_WRITTEN_BY}`", _NOT_TO_EDIT]
            text = templates.text(template, {**values, "header": header})
            found[unit] = UnitFile(name=unit, text=versions.fitted(text, lacks), shared=shared)
    except Unwritable as wrong:
        where = loaded.where(*wrong.path)
        field = ".".join(map(str, wrong.path))
        message = f"{where}: {field}: {wrong.what}"
        raise RecipeError(message, source=loaded.source, where=where) from wrong
    return tuple(found[name] for name in sorted(found))


def is_ours(text: str, name: str | None = None) -> bool:
    """Tell whether a unit's text is one that was rendered, for an environment or for all."""
    first, _, _ = text.partition("\n")
    return first in {f"# {_WRITTEN_BY} {name}`", f"# {_WRITTEN_BY}`"} or (
        name is None and first.startswith(f"# {_WRITTEN_BY} ")
    )


def _header(origin: Origin, manager: Manager) -> list[str]:
    """Return the head of units that are the same for every generation."""
    target = f"for systemd {manager.version} ({manager.scope})"
    return [f"{_WRITTEN_BY} {origin.name}`", target, _NOT_TO_EDIT]


def _header_of_service(origin: Origin, manager: Manager) -> list[str]:
    first, target, last = _header(origin, manager)
    made = [] if origin.interpreter is None else [f"made of {origin.interpreter}"]
    return [first, target, f"generation {origin.prefix}", *made, last]


def _wanted(
    loaded: LoadedRecipe, origin: Origin, manager: Manager
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Give each unit's name, its template, and what the template is given."""
    recipe = loaded.recipe
    if manager.scope == "system":
        for unit, values in cards.servers(recipe, origin):
            yield unit, "mps", values
    yield (
        names.slice_of(recipe.name),
        "slice",
        {
            "description": f"All services of {recipe.name}",
            "limits": view.limits(recipe.slice, ("slice",)),
        },
    )
    for name, service in recipe.services.items():
        place = Place(recipe=recipe, name=name, origin=origin, manager=manager)
        yield (
            names.service_unit(recipe.name, name, service.kind),
            "service",
            view.service(place),
        )
        stem = names.stem(recipe.name, name)
        if service.kind == "timer":
            yield f"{stem}.timer", "timer", view.timer(place)
        elif service.kind == "socket":
            yield f"{stem}.socket", "socket", view.socket(place)
        if gpu_of(service) is not None and manager.scope == "system":
            yield names.NODES, "gpu-nodes", {}
            if cards.is_cut(service):
                yield names.SHARES, "gpu-shares", {"nodes": names.NODES}
            if cards.is_watched(service):
                yield names.PCIE, "gpu-pcie", {"nodes": names.NODES}


def _one_line(value: object) -> object:
    """Let a value into a template only where it cannot begin a line of its own.

    Raises:
        ValueError: It holds a line end.
    """
    if (
        isinstance(value, str)
        and not value.isprintable()
        and ("\n" in value or "\r" in value or "\0" in value)
    ):
        message = f"a value may not hold a line end: {value!r}"
        raise ValueError(message)
    return value
