"""A document as a tree: text, lists and mappings, of which every value knows its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from envbuild.errors import InputError

Path = tuple[str | int, ...]
_LONGEST: Final = 500

Plain = str | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A place in a file.

    Attributes:
        source: The file as the user named it.
        line: Line, from 1.
        column: Column in characters, from 1.
    """

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        """Write it as compilers do, so that editors can jump there."""
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value with its place; the same node may stand in several places (aliases).

    Attributes:
        value: Text, a list of nodes, or a mapping from key to node.
        mark: Where the value begins.
        key: Where the key begins that holds the value, or None for items and the top.
        size: What it weighs: its nodes and their text, aliases counted each time.
    """

    value: "str | tuple[Node, ...] | Mapping[str, Node]"
    mark: Mark
    key: Mark | None = None
    size: int = 1

    def children(self) -> "Iterator[tuple[str | int, Node]]":
        """Give the keys or positions in it with their nodes; none for text."""
        if isinstance(self.value, Mapping):
            yield from self.value.items()
        elif isinstance(self.value, tuple):
            yield from enumerate(self.value)

    def plain(self) -> Plain:
        """Return the value as text, lists and dicts."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        return {key: child.plain() for key, child in self.value.items()}

    def walk(self, path: Path = ()) -> "Iterator[tuple[Path, Node]]":
        """Give every node with its path, this one first."""
        yield path, self
        for step, child in self.children():
            yield from child.walk((*path, step))


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong with a file.

    Attributes:
        mark: Where.
        path: The field, or () for the file as a whole.
        what: What is wrong, without a full stop at its end.
    """

    mark: Mark
    path: Path = ()
    what: str

    def __str__(self) -> str:
        """Write `source:line:column: field: what`."""
        field = f"{field_name(self.path)}: " if self.path else ""
        what = self.what if len(self.what) <= _LONGEST else f"{self.what[:_LONGEST]}…"
        return f"{self.mark}: {field}{what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document that could be read.

    Attributes:
        root: Its tree.
        problems: What is wrong with it although it could be read (keys that stand twice, tags).
    """

    root: Node
    problems: tuple[Problem, ...] = ()

    @property
    def value(self) -> Plain:
        """Return the document as text, lists and dicts."""
        return self.root.plain()

    @property
    def marks(self) -> Mapping[Path, Mark]:
        """Return the place of every value."""
        return {path: node.mark for path, node in self.root.walk()}

    @property
    def keys(self) -> Mapping[Path, Mark]:
        """Return the place of the key of every value that stands in a mapping."""
        return {path: node.key for path, node in self.root.walk() if node.key is not None}


def refusal(
    problems: tuple[Problem, ...],
    *,
    source: str,
    error: type[InputError] = InputError,
    hint: str | None = None,
) -> InputError:
    """Return the error that tells all problems of a file, in the order of its lines."""
    ordered = sorted(
        dict.fromkeys(problems),
        key=lambda one: (
            one.mark.source != source,
            one.mark.source,
            one.mark.line,
            one.mark.column,
        ),
    )
    first = ordered[0]
    if len(ordered) == 1:
        place = f"{first.mark.line}:{first.mark.column}"
        return error(str(first), source=source, where=place, hint=hint, problems=())
    lines = tuple(str(problem) for problem in ordered)
    place = f"{first.mark.line}:{first.mark.column}"
    return error(
        f"{source}: {len(ordered)} problems", source=source, where=place, problems=lines, hint=hint
    )


def field_name(path: Path) -> str:
    """Write a path as people do: `gpu.archs[1]`."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{step}" if name else step
    return name
