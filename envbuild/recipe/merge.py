"""Works `variables` and `extends` into one tree; every value keeps the place it stands at."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from envbuild.document import Node, Path, Problem
from envbuild.recipe import requirements, specs

EXTENDS: Final = "extends"
VARIABLES: Final = "variables"

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_MOST: Final = 200_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def merged(parent: Node, child: Node) -> Node:
    """Return the child's tree with what it takes from its parent.

    Mappings merge key by key; of everything else the child's counts, but the lists of what is
    required (`conda`, `pypi`, `link_scripts`, `indexes`, `smoke`, `allow`) add up: the parent's
    items first, without those that the child has of the same package or name.
    """
    kept = without(parent, {("name",)})
    return _merge(kept, child, ())


def variables_of(chain: Sequence[Node]) -> tuple[dict[str, Node], list[Problem]]:
    """Return the variables of a recipe and those it extends (itself first), and what is wrong."""
    found: dict[str, Node] = {}
    problems: list[Problem] = []
    for root in reversed(chain):
        node = dict(root.children()).get(VARIABLES)
        if node is None:
            continue
        if not isinstance(node.value, Mapping):
            what = "expected a mapping from name to text"
            problems.append(Problem(mark=node.mark, path=(VARIABLES,), what=what))
            continue
        for name, value in node.value.items():
            path = (VARIABLES, name)
            if not _NAME.fullmatch(name):
                what = "a variable's name has letters, digits, '_' and '-'"
                problems.append(Problem(mark=value.key or value.mark, path=path, what=what))
            elif not isinstance(value.value, str):
                what = "the value of a variable is text"
                problems.append(Problem(mark=value.mark, path=path, what=what))
            else:
                found[name] = value
    return found, problems


def substituted(root: Node, variables: Mapping[str, Node]) -> tuple[Node, list[Problem], set[Path]]:
    """Return a tree with `${name}` replaced in every value, what is wrong, and what that spoils.

    `$${` stands for `${`. A variable's value may use other variables.
    """
    work = _Substitution(variables)
    body = without(root, {(VARIABLES,), (EXTENDS,)})
    return work.node(body, ()), work.problems, work.spoilt


def without(root: Node, paths: set[Path]) -> Node:
    """Return a tree without the parts at some paths; a list that loses all its items goes too."""
    if isinstance(root.value, str) or not paths:
        return root
    kept = {
        key: without(child, {path[1:] for path in paths if path[0] == key and path[1:]})
        for key, child in root.children()
        if (key,) not in paths
    }
    if not isinstance(root.value, Mapping):
        return replace(root, value=tuple(kept.values()))
    emptied = {
        key for key, child in kept.items() if child.value == () != root.value[str(key)].value
    }
    items = {str(key): child for key, child in kept.items() if key not in emptied}
    return replace(root, value=items)


class _Substitution:
    """Replaces references; each variable is worked out once, and the whole is bounded."""

    def __init__(self, variables: Mapping[str, Node]) -> None:
        self.variables = variables
        self.values: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.spoilt: set[Path] = set()
        self.characters = 0
        for name in variables:
            self._value(name, ())

    def node(self, node: Node, path: Path) -> Node:
        """Return the node with its references replaced."""
        if isinstance(node.value, str):
            if "${" not in node.value:
                return node
            return replace(node, value=self._text(node, path, ()))
        if isinstance(node.value, Mapping):
            items = {key: self.node(child, (*path, key)) for key, child in node.value.items()}
            return replace(node, value=items)
        listed = (self.node(child, (*path, place)) for place, child in enumerate(node.value))
        return replace(node, value=tuple(listed))

    def _text(self, node: Node, path: Path, inside: tuple[str, ...]) -> str:
        def put(match: re.Match[str]) -> str:
            if match[1] is None:
                return "${"
            what = self._complaint(match, inside)
            value = "" if what else self._value(match[1], inside)
            self.characters += len(value)
            if (VARIABLES, match[1]) in self.spoilt:
                self.spoilt.add(path)
            if not what and self.characters > _MOST:
                what = f"variables put in make more than {_MOST:,} characters"
            if not what:
                return value
            self.spoilt.add(path)
            if self.characters <= _MOST + len(value):
                self.problems.append(Problem(mark=node.mark, path=path, what=what))
            return match[0]

        return _REFERENCE.sub(put, str(node.value))

    def _value(self, name: str, inside: tuple[str, ...]) -> str:
        if name not in self.values:
            path: Path = (VARIABLES, name)
            self.values[name] = self._text(self.variables[name], path, (*inside, name))
        return self.values[name]

    def _complaint(self, match: re.Match[str], inside: tuple[str, ...]) -> str:
        name = match[1]
        if not match[2]:
            return "'${' is not closed; write '$${' for a literal '${'"
        if name in inside:
            return f"the variable {name} is made of itself"
        if name in self.variables:
            return ""
        near = get_close_matches(name, self.variables, n=1)
        other = f"did you mean ${{{near[0]}}}?" if near else f"write $${{{name}}} for a literal one"
        return f"unknown variable ${{{name}}}; {other}"


def _key_of(field: str) -> Callable[[Node], object]:
    """Return the function that gives an item's key within a mapping's text field."""

    def key(node: Node) -> object:
        value = dict(node.children()).get(field)
        return value.value if value is not None else None

    return key


def _text_key(name_of: Callable[[str], str | None]) -> Callable[[Node], object]:
    return lambda node: name_of(node.value) if isinstance(node.value, str) else None


def _itself(node: Node) -> object:
    return node.value if isinstance(node.value, str) else None


def _allow_key(node: Node) -> object:
    return (_key_of("code")(node), _key_of("where")(node))


_ADDING: Final[Mapping[Path, Callable[[Node], object]]] = {
    ("conda",): _text_key(specs.name_of),
    ("pypi",): _text_key(requirements.name_of),
    ("link_scripts",): _itself,
    ("indexes",): _key_of("name"),
    ("allow",): _allow_key,
    ("smoke", "imports"): _itself,
    ("smoke", "commands"): _itself,
}


def _merge(parent: Node, child: Node, path: Path) -> Node:
    if isinstance(parent.value, Mapping) and isinstance(child.value, Mapping):
        items = dict(parent.value)
        for key, node in child.value.items():
            items[key] = _merge(items[key], node, (*path, key)) if key in items else node
        return replace(child, value=items)
    key_of = _ADDING.get(path)
    if key_of and isinstance(parent.value, tuple) and isinstance(child.value, tuple):
        own = {key_of(item) for item in child.value} - {None}
        kept = tuple(item for item in parent.value if key_of(item) not in own)
        return replace(child, value=kept + child.value)
    return child
