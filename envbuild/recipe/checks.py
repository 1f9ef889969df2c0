"""What a recipe's fields say to each other: the checks that no single field can make."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from packaging.utils import canonicalize_name

from envbuild.document import Path
from envbuild.recipe import requirements, specs
from envbuild.recipe.complaints import nearest
from envbuild.recipe.model import Recipe
from envbuild.recipe.service import Service

Complaint = tuple[Path, str]

_SUFFIXES: Final = (
    ".service",
    ".target",
    ".mount",
    ".socket",
    ".timer",
    ".path",
    ".device",
    ".slice",
    ".automount",
    ".swap",
)


def complaints(
    recipe: Recipe, broken: Collection[str], services: tuple[str, ...]
) -> Iterator[Complaint]:
    """Give the paths of what is wrong, each with the reason.

    Args:
        recipe: The recipe, without the parts that are wrong in themselves.
        broken: Top-level fields that lack such a part; checks that need all of them are not made.
        services: Names of all services that are written, wrong ones among them.
    """
    yield from _services(recipe, services)
    for needed, check in _CHECKS:
        if not needed & set(broken):
            yield from check(recipe)


def _channels(recipe: Recipe) -> Iterator[Complaint]:
    seen: set[str] = set()
    for place, channel in enumerate(recipe.channels):
        if channel in seen:
            yield ("channels", place), f"the channel {channel} stands twice"
        seen.add(channel)
    if "host" in seen and len(seen) > 1:
        yield ("channels",), "'host' stands alone: the machine's Python goes with no conda channel"


def _platforms(recipe: Recipe) -> Iterator[Complaint]:
    platforms = recipe.target.platforms
    for place, platform in enumerate(platforms):
        if platform in platforms[:place]:
            yield ("target", "platforms", place), f"the platform {platform} stands twice"


def _python(recipe: Recipe) -> Iterator[Complaint]:
    has_python = any(specs.name_of(text) == "python" for text in recipe.conda)
    if recipe.python is not None and has_python:
        place = next(i for i, text in enumerate(recipe.conda) if specs.name_of(text) == "python")
        yield ("conda", place), "Python is asked for by the key python as well; say it once"
    if recipe.python is None and recipe.on_host_python:
        yield (
            ("python",),
            'is missing: the versions of the machine\'s Python, such as ">=3.11,<3.15"',
        )
    if recipe.python is None and recipe.pypi and not has_python and not recipe.on_host_python:
        yield ("python",), 'is missing: PyPI packages need one, such as "3.11"'


def _conda(recipe: Recipe) -> Iterator[Complaint]:
    for place, text in enumerate(recipe.conda):
        try:
            specs.parse(text)
        except ValueError as error:
            yield ("conda", place), str(error)


def _conda_channels(recipe: Recipe) -> Iterator[Complaint]:
    for place, text in enumerate(recipe.conda):
        path: Path = ("conda", place)
        channel = specs.channel_of(text)
        if recipe.on_host_python:
            yield path, "a recipe on the machine's Python (channels: [host]) has no conda packages"
        elif channel is not None and channel not in recipe.channels:
            close = nearest(channel, recipe.channels)
            yield path, f"the channel {channel} is none of the recipe's channels{close}"


def _link_scripts(recipe: Recipe) -> Iterator[Complaint]:
    if recipe.link_scripts and recipe.on_host_python:
        yield ("link_scripts",), "only conda packages have link scripts"


def _pypi(recipe: Recipe) -> Iterator[Complaint]:
    collisions = requirements.Collisions()
    for place, text in enumerate(recipe.pypi):
        path: Path = ("pypi", place)
        try:
            need = requirements.parse(text)
        except ValueError as error:
            yield path, str(error)
            continue
        other = collisions.add(need)
        if other is not None:
            what = f"{need.name} is asked for twice ({other.text!r})"
            yield path, f"{what}; write one, or markers that exclude each other"


def _indexes(recipe: Recipe) -> Iterator[Complaint]:
    names: set[str] = set()
    owners: dict[str, str] = {}
    for place, index in enumerate(recipe.indexes):
        path: Path = ("indexes", place)
        if index.name in names:
            yield (*path, "name"), f"the index {index.name} stands twice"
        names.add(index.name)
        for position, package in enumerate(index.packages):
            owner = owners.setdefault(canonicalize_name(package), f"{index.name}")
            if owner != index.name or package in index.packages[:position]:
                what = f"{package} already comes from the index {owner}"
                yield (*path, "packages", position), what


def _services(recipe: Recipe, known: tuple[str, ...]) -> Iterator[Complaint]:
    for name, service in recipe.services.items():
        path: Path = ("services", name)
        yield from _kind(service, path)
        yield from _readiness(service, path)
        for field, others in (("after", service.after), ("requires", service.requires)):
            for place, other in enumerate(others):
                if other == name:
                    yield (*path, field, place), "a service cannot wait for itself"
                elif other not in known and not other.endswith(_SUFFIXES):
                    what = f"there is no service {other!r}{nearest(other, known)}"
                    yield (*path, field, place), what
    yield from _circles(recipe)


def _kind(service: Service, path: Path) -> Iterator[Complaint]:
    for field, kind, value in (
        ("schedule", "timer", service.schedule),
        ("listen", "socket", service.listen),
    ):
        if value and service.kind != kind:
            yield (*path, field), f"is only for kind {kind}; this is kind {service.kind}"
        if not value and service.kind == kind:
            yield (*path, field), f"is missing: a {kind} needs it"
    if not isinstance(service.exec, str) and not service.exec[0].strip():
        yield (*path, "exec"), "the command is empty"


def _readiness(service: Service, path: Path) -> Iterator[Complaint]:
    ready = service.readiness
    if ready is None:
        return
    for kind, value in (("port", ready.port), ("command", ready.command)):
        place: Path = (*path, "readiness", kind)
        if value is not None and ready.kind != kind:
            yield place, f"is only for kind {kind}; this is kind {ready.kind}"
        if value is None and ready.kind == kind:
            yield place, f"is missing: readiness of kind {kind} needs it"


def _circles(recipe: Recipe) -> Iterator[Complaint]:
    """Complain of services that wait for each other in a circle, once per circle."""
    done: set[str] = set()
    for start in recipe.services:
        trail: list[str] = []
        name = start
        stack = [(name, iter(recipe.services[name].after))]
        while stack and start not in done:
            name, others = stack[-1]
            if name not in trail:
                trail.append(name)
            other = next((one for one in others if one in recipe.services), None)
            if other is None:
                stack.pop()
                trail.remove(name)
                done.add(name)
            elif other in trail and other != name:
                circle = " after ".join([*trail[trail.index(other) :], other])
                yield ("services", name, "after"), f"a circle: {circle}"
            elif other not in done and other != name:
                stack.append((other, iter(recipe.services[other].after)))


_CHECKS: Final[tuple[tuple[set[str], Callable[[Recipe], Iterator[Complaint]]], ...]] = (
    (set(), _channels),
    (set(), _platforms),
    ({"python", "conda", "pypi", "channels"}, _python),
    (set(), _conda),
    ({"channels"}, _conda_channels),
    ({"channels"}, _link_scripts),
    (set(), _pypi),
    (set(), _indexes),
)
