"""What a recipe's fields say to each other: the checks that no single field can make."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from packaging.utils import canonicalize_name

from envbuild.document import Path
from envbuild.packages import WHEELHOUSE
from envbuild.recipe import requirements, service_checks, specs
from envbuild.recipe.complaints import nearest
from envbuild.recipe.model import Recipe

Complaint = tuple[Path, str]


def complaints(
    recipe: Recipe, broken: Collection[str], services: tuple[str, ...]
) -> Iterator[Complaint]:
    """Give the paths of what is wrong, each with the reason.

    Args:
        recipe: The recipe, without the parts that are wrong in themselves.
        broken: Top-level fields that lack such a part; checks that need all of them are not made.
        services: Names of all services that are written, wrong ones among them.
    """
    yield from service_checks.complaints(recipe, services)
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
        if index.name == WHEELHOUSE:
            yield (*path, "name"), "that is what locks call the wheelhouse; name it otherwise"
        names.add(index.name)
        for position, package in enumerate(index.packages):
            owner = owners.setdefault(canonicalize_name(package), f"{index.name}")
            if owner != index.name or package in index.packages[:position]:
                what = f"{package} already comes from the index {owner}"
                yield (*path, "packages", position), what


def _build(recipe: Recipe) -> Iterator[Complaint]:
    seen: dict[str, str] = {}
    for name, package in recipe.build.packages.items():
        path: Path = ("build", "packages", name)
        if (first := seen.setdefault(canonicalize_name(name), name)) != name:
            yield path, f"is the same package as {first}"
        if package.git is not None and package.commit is None:
            yield (*path, "commit"), "is missing: a tag or a branch can be moved, a commit cannot"
        if package.git is not None and package.archive is not None:
            yield (*path, "archive"), "its sources come from git already; name one of the two"
        if package.git is None and (package.tag or package.commit or not package.submodules):
            yield (*path, "git"), "is missing: `tag`, `commit` and `submodules` are of a repository"
        if package.archive is None and package.sha256 is not None:
            yield (*path, "archive"), "is missing: `sha256` is the archive's"


_CHECKS: Final[tuple[tuple[set[str], Callable[[Recipe], Iterator[Complaint]]], ...]] = (
    (set(), _channels),
    (set(), _platforms),
    ({"python", "conda", "pypi", "channels"}, _python),
    (set(), _conda),
    ({"channels"}, _conda_channels),
    ({"channels"}, _link_scripts),
    (set(), _pypi),
    (set(), _indexes),
    ({"build"}, _build),
)
