"""Turns pydantic's errors into problems with a place, in plain words."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from envbuild.document import Node, Path, Problem

_SHOWN: Final = 60
_EXPECTED: Final = {
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "date_type": 'a date such as "2027-03-31"',
    "date_parsing": 'a date such as "2027-03-31"',
    "date_from_datetime_parsing": 'a date such as "2027-03-31"',
    "date_from_datetime_inexact": 'a date such as "2027-03-31"',
}


def complaints(error: ValidationError, root: Node, model: type[BaseModel]) -> list[Problem]:
    """Return one problem per error of pydantic.

    Args:
        error: What validating `root` against `model` raised.
        root: The tree that was validated, for the places.
        model: The model of the whole document, for the known keys.
    """
    return [
        _problem(details, root, model)
        for details in error.errors(include_url=False)
        if not (details["type"] == "too_short" and details["input"])
    ]


def locate(root: Node, location: tuple[str | int, ...]) -> tuple[Path, Node]:
    """Return the deepest node that a location names, with its path.

    A location has steps that are no keys (the branch of a union, `[key]`): they are passed over.
    """
    path: Path = ()
    node = root
    for step in location:
        child = dict(node.children()).get(step)
        if child is not None:
            path, node = (*path, step), child
    return path, node


def known_keys(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the keys that the mapping at `path` may have; none where any key may stand."""
    kinds: list[Any] = [model]
    for step in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, step)]
    return tuple(name for one in _models(kinds) for name in one.model_fields)


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return `; did you mean X?`, or the list of what is known, or nothing."""
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; known are {', '.join(known)}" if known else ""


def describe(node: Node) -> str:
    """Say what stands there, as the end of `expected ..., found ...`."""
    if isinstance(node.value, str):
        shown = node.value
        if len(shown) > _SHOWN:
            shown = f"{shown[: _SHOWN - 3]}..."
        return repr(shown) if shown else "empty text"
    return "a mapping" if isinstance(node.value, Mapping) else "a list"


def _problem(details: ErrorDetails, root: Node, model: type[BaseModel]) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    path, node = locate(root, details["loc"])
    mark = node.mark
    if kind == "missing":
        path = (*path, str(details["loc"][-1]))
        return Problem(mark=mark, path=path, what="is missing")
    if kind == "extra_forbidden":
        known = known_keys(model, path[:-1])
        what = f"unknown key{nearest(str(path[-1]), known)}"
        return Problem(mark=node.key or mark, path=path, what=what)
    if details["loc"] and details["loc"][-1] == "[key]":
        mark = node.key or mark
    return Problem(mark=mark, path=path, what=_what(kind, context, node, details))


def _what(kind: str, context: Mapping[str, Any], node: Node, details: ErrorDetails) -> str:
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {describe(node)}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        known = tuple(str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", "))
        listed = known[0] if len(known) == 1 else f"{', '.join(known[:-1])} or {known[-1]}"
        near = get_close_matches(str(node.value), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"expected {listed}, found {describe(node)}{hint}"
    if kind in {"too_short", "string_too_short"}:
        return "is empty" if kind == "string_too_short" else "needs at least one item"
    bounds = {
        "greater_than_equal": ("ge", "at least"),
        "less_than_equal": ("le", "at most"),
    }
    if kind in bounds:
        key, word = bounds[kind]
        return f"expected a whole number of {word} {context[key]}, found {describe(node)}"
    return str(details["msg"])


def _inside(kind: object, step: str | int) -> Iterator[object]:
    """Give the types that may stand below a type at one step of a path."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _inside(arguments[0], step)
    elif origin in {Union, UnionType}:
        for argument in arguments:
            yield from _inside(argument, step)
    elif origin is tuple and isinstance(step, int):
        yield arguments[0]
    elif origin is dict and isinstance(step, str):
        yield arguments[1]
    elif isinstance(kind, type) and issubclass(kind, BaseModel) and step in kind.model_fields:
        yield kind.model_fields[str(step)].annotation


def _models(kinds: list[Any]) -> Iterator[type[BaseModel]]:
    for kind in kinds:
        if get_origin(kind) in {Annotated, Union, UnionType}:
            yield from _models(list(get_args(kind)))
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind
