"""From a recipe's text to a `Recipe`: found, extended, checked, with the place of everything."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path as File
from typing import Final

from pydantic import ValidationError

from envbuild.document import Document, Mark, Node, Path, Problem, refusal
from envbuild.errors import InputError, RecipeError, UsageProblem
from envbuild.reader import decode, scan
from envbuild.recipe import checks, merge, words
from envbuild.recipe.complaints import complaints, describe, locate
from envbuild.recipe.model import Recipe

Read = Callable[[str], tuple[str, str]]

_ENDING: Final = ".yaml"
_UNNAMED: Final = "unnamed"
_LONGEST_CHAIN: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeSource:
    """One file that a recipe was read from.

    Attributes:
        path: The file; absolute where it was loaded from a folder.
        sha256: Hex digest of its bytes.
    """

    path: File
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedRecipe:
    """A checked recipe with where everything stands.

    Attributes:
        recipe: The recipe.
        sources: Its own file first, then what it extends, in that order.
        source: Its own file as the user named it.
        root: The tree it was read from, for places.
    """

    recipe: Recipe
    sources: tuple[RecipeSource, ...]
    source: str
    root: Node = field(repr=False)

    def mark(self, *path: str | int) -> Mark:
        """Return the place of a field, or of the nearest part around it that is written."""
        return locate(self.root, path)[1].mark

    def where(self, *path: str | int) -> str:
        """Return the place of a field as `recipes/x.yaml:12:5`."""
        return str(self.mark(*path))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """A file's text with its name for messages and its path, if it has one."""

    display: str
    text: str
    path: File | None = None


def find(name: str, folders: Sequence[File]) -> File:
    """Return the file of the recipe of that name: the first folder that has one.

    Raises:
        RecipeError: There is none; says which names are near.
    """
    for folder in folders:
        path = folder / f"{name}{_ENDING}"
        if path.is_file():
            return path
    near = get_close_matches(name, available(folders), n=3)
    looked = ", ".join(str(folder) for folder in folders) or "no folder"
    message = f"there is no recipe {name!r} (looked in {looked})"
    hint = f"did you mean {' or '.join(near)}?" if near else f"write one: envbuild new {name}"
    for folder in folders:
        if (folder / f"{name}.yml").is_file():
            hint = f"recipes end in .yaml: rename {folder / name}.yml"
    raise RecipeError(message, source=name, hint=hint)


def available(folders: Sequence[File]) -> tuple[str, ...]:
    """Return the names of all recipes in the folders, sorted."""
    names = {
        path.stem
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.suffix == _ENDING and path.is_file()
    }
    return tuple(sorted(names))


def load(name_or_path: str, folders: Sequence[File]) -> LoadedRecipe:
    """Load a recipe by its name, or by its path (with a `/`, or ending in `.yaml`).

    Args:
        name_or_path: The name or the path.
        folders: Where names are looked up, first one first; also for `extends`.

    Raises:
        RecipeError: There is none of that name, or it is wrong: all problems at once.
        UsageProblem: It can be neither a name nor a path.
    """
    try:
        first = _file(_path(name_or_path, folders, File()))
    except ValueError as error:
        message = f"a recipe is called by its name or its file: {error}"
        raise UsageProblem(message) from None

    def follow(name: str, child: _Source) -> _Source:
        return _file(_path(name, folders, File(child.display).parent))

    return _assemble(first, follow)


def loads(text: str, *, source: str, read: Read | None = None) -> LoadedRecipe:
    """Load a recipe from its text.

    Args:
        text: The file's text.
        source: Its file name, for messages and because the recipe's name must match it.
        read: Gives (source, text) of the recipe of a name, for `extends`.

    Raises:
        RecipeError: It is wrong: all problems at once.
    """

    def follow(name: str, _child: _Source) -> _Source:
        if read is None:
            message = f"there is no recipe {name!r}"
            raise RecipeError(message, source=name)
        display, parent = read(name)
        return _Source(display=display, text=parent)

    return _assemble(_Source(display=source, text=text), follow)


def _path(name: str, folders: Sequence[File], base: File) -> File:
    if "/" in name or name.endswith((_ENDING, ".yml")):
        return base / name
    return find(words.name(name), folders)


def _file(path: File) -> _Source:
    display = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"{display}: cannot be read: {error.strerror}"
        raise RecipeError(message, source=display) from error
    try:
        return _Source(display=display, text=decode(data, source=display), path=path.resolve())
    except InputError as error:
        raise _as_recipe_error(error) from error


def _as_recipe_error(error: InputError) -> RecipeError:
    return RecipeError(
        error.message,
        source=error.source,
        where=error.where,
        problems=error.problems,
        hint=error.hint,
    )


def _assemble(first: _Source, follow: Callable[[str, _Source], _Source]) -> LoadedRecipe:
    sources, documents, problems = _chain(first, follow)
    roots = [document.root for document in documents]
    problems += [problem for document in documents for problem in document.problems]
    variables, wrong = merge.variables_of(roots)
    problems += wrong
    bodies: list[Node] = []
    spoilt: set[Path] = set()
    for root in roots:
        body, wrong, unusable = merge.substituted(root, variables)
        bodies.append(body)
        problems += wrong
        spoilt |= unusable
    whole = bodies[-1]
    for body in reversed(bodies[:-1]):
        whole = merge.merged(whole, body)
    recipe, wrong = _validate(whole, spoilt, File(first.display).stem)
    problems += wrong
    if problems:
        raise refusal(tuple(problems), source=first.display, error=RecipeError)
    return LoadedRecipe(
        recipe=recipe,
        sources=tuple(
            RecipeSource(
                path=source.path or File(source.display),
                sha256=hashlib.sha256(source.text.encode()).hexdigest(),
            )
            for source in sources
        ),
        source=first.display,
        root=whole,
    )


def _chain(
    first: _Source, follow: Callable[[str, _Source], _Source]
) -> tuple[list[_Source], list[Document], list[Problem]]:
    """Read a recipe and what it extends, itself first."""
    sources = [first]
    documents: list[Document] = []
    problems: list[Problem] = []
    while len(documents) < len(sources):
        document = _document(sources[-1])
        documents.append(document)
        parent = dict(document.root.children()).get(merge.EXTENDS)
        if parent is None:
            break
        problem, source = _parent(parent, sources, follow)
        if problem is not None:
            problems.append(problem)
        if source is not None:
            sources.append(source)
    return sources, documents, problems


def _parent(
    node: Node, sources: list[_Source], follow: Callable[[str, _Source], _Source]
) -> tuple[Problem | None, _Source | None]:
    path = (merge.EXTENDS,)
    if not isinstance(node.value, str):
        what = f"expected the name of one recipe, found {describe(node)}"
        return Problem(mark=node.mark, path=path, what=what), None
    try:
        source = follow(node.value, sources[-1])
    except ValueError as error:
        return Problem(mark=node.mark, path=path, what=str(error)), None
    except RecipeError as error:
        hint = f"; {error.hint}" if error.hint and error.hint.startswith("did") else ""
        return Problem(mark=node.mark, path=path, what=f"{error.message}{hint}"), None
    known = [(one.path or one.display) for one in sources]
    if (source.path or source.display) in known or len(sources) > _LONGEST_CHAIN:
        circle = " extends ".join([*(one.display for one in sources), source.display])
        return Problem(mark=node.mark, path=path, what=f"a circle: {circle}"), None
    return None, source


def _document(source: _Source) -> Document:
    try:
        document = scan(source.text, source=source.display)
    except InputError as error:
        raise _as_recipe_error(error) from error
    if not isinstance(document.root.value, Mapping):
        what = f"expected a mapping with the keys of a recipe, found {describe(document.root)}"
        problem = Problem(mark=document.root.mark, what=what)
        raise refusal((problem,), source=source.display, error=RecipeError)
    return document


def _validate(root: Node, spoilt: set[Path], stem: str) -> tuple[Recipe, list[Problem]]:
    """Check a whole tree; what is wrong in itself is left out of the checks of the whole.

    Args:
        root: The tree.
        spoilt: Paths that are known to be wrong.
        stem: What the recipe has to be called.
    """
    problems: list[Problem] = _characters(root)
    recipe: Recipe | None = None
    try:
        recipe = Recipe.model_validate(root.plain())
    except ValidationError as error:
        found = complaints(error, root, Recipe)
        problems += [one for one in found if not _is_within(one.path, spoilt)]
        spoilt = spoilt | {problem.path for problem in found}
    gone = {path[:2] if path[0] == "services" else path for path in spoilt if path}
    if recipe is None or gone:
        recipe = _rest(root, gone)
    services = dict(dict(root.children()).get("services", root).children())
    broken = {str(path[0]) for path in gone}
    for short, what in checks.complaints(recipe, broken, tuple(map(str, services))):
        path = _as_written(short, gone)
        mark = locate(root, path)[1].mark
        problems.append(Problem(mark=mark, path=path, what=what))
    if "name" not in broken and recipe.name != stem:
        what = f"expected {stem!r} as the file is called, found {recipe.name!r}"
        problems.append(Problem(mark=locate(root, ("name",))[1].mark, path=("name",), what=what))
    return recipe, problems


def _rest(root: Node, gone: set[Path]) -> Recipe:
    """Return the recipe without its wrong parts; what cannot be without them is added to `gone`."""
    while True:
        rest = merge.without(root, gone)
        plain = {str(key): part.plain() for key, part in rest.children()}
        try:
            return Recipe.model_validate({"name": _UNNAMED} | plain)
        except ValidationError as error:
            wrong = [one.path for one in complaints(error, rest, Recipe)]
            gone |= {_as_written(path[:-1], gone) for path in wrong}


def _as_written(path: Path, gone: set[Path]) -> Path:
    """Return the place, in the whole tree, of what has a path in the tree without `gone`."""
    written: Path = ()
    for step in path:
        place = step
        if isinstance(place, int):
            items = [one[-1] for one in gone if one[:-1] == written]
            for other in sorted(one for one in items if isinstance(one, int)):
                place += other <= place
        written = (*written, place)
    return written


def _is_within(path: Path, parts: set[Path]) -> bool:
    return any(path[: len(part)] == part for part in parts)


def _characters(root: Node) -> list[Problem]:
    return [
        Problem(mark=node.mark, path=path, what="a NUL character may not stand in a recipe")
        for path, node in root.walk()
        if isinstance(node.value, str) and "\0" in node.value
    ]
