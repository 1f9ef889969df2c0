"""The only reader of YAML: every scalar stays text, and every value knows its place.

A document is read from the parser's events, so nothing is ever resolved to a number, a date or a
boolean. Anchors, aliases and merge keys (`<<`) work; tags are refused; so is a key that stands
twice. `key:` with nothing behind it means that the key is absent.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from envbuild.document import Document, Mark, Node, Path, Problem, refusal

MAX_CHARACTERS: Final = 1_000_000
MAX_DEPTH: Final = 40
MAX_KEY: Final = 250
MAX_SIZE: Final = 100_000


def read(text: str, *, source: str) -> Document:
    """Read one document and refuse it when anything is wrong with it.

    Args:
        text: The file's text; a byte order mark and any kind of line end are fine.
        source: The file as the user named it, for marks and messages.

    Raises:
        InputError: Not YAML, or empty, or there are problems; all of them at once.
    """
    document = scan(text, source=source)
    if document.problems:
        raise refusal(document.problems, source=source)
    return document


def scan(text: str, *, source: str) -> Document:
    """Read one document and keep the problems that do not prevent reading it.

    Raises:
        InputError: It is not YAML, is empty, too large or too deep, or holds several documents.
    """
    builder = _Builder(text.removeprefix("\ufeff"), source)
    try:
        root = builder.document()
    except _Stop as stop:
        raise refusal((*builder.problems, stop.problem), source=source) from stop.__cause__
    return Document(root=root, problems=tuple(builder.problems))


def decode(data: bytes, *, source: str) -> str:
    """Return a file's bytes as text; a byte order mark stays.

    Raises:
        InputError: The bytes are not UTF-8; says where.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        what = f"not UTF-8 text: byte 0x{data[error.start]:02x}"
        problem = Problem(mark=Mark(source=source, line=line, column=column), what=what)
        raise refusal((problem,), source=source) from error


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _TabScanner(Scanner):
    """ruamel's scanner, with tabs between two tokens of a line as YAML 1.2 has them."""

    def scan_to_next_token(self) -> None:
        """Skip blanks; a tab only where it does not indent."""
        super().scan_to_next_token()
        reader = self.reader
        while reader.peek() == "\t":
            start = reader.buffer.rfind("\n", 0, reader.pointer) + 1
            if not reader.buffer[start : reader.pointer].strip(" "):
                return
            while reader.peek() in "\t ":
                reader.forward()
            super().scan_to_next_token()


def _text_node(text: str, mark: Mark) -> Node:
    return Node(value=text, mark=mark, size=1 + len(text) // 20)


class _Builder:
    """Builds the tree of one document from the parser's events."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.problems: list[Problem] = []
        self.anchors: dict[str, Node] = {}
        self.open: set[str] = set()

    def document(self) -> Node:
        """Return the tree of the only document.

        Raises:
            _Stop: It cannot be read any further.
        """
        start = Mark(source=self.source, line=1, column=1)
        if len(self.text) > MAX_CHARACTERS:
            what = f"too large: more than {MAX_CHARACTERS:,} characters"
            raise _Stop(Problem(mark=start, what=what))
        self.events = self._events()
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    what = "a second document begins here; only one is read"
                    raise _Stop(Problem(mark=self._mark(event), what=what))
                root = self._node(next(self.events), ())
                if root is None:
                    break
            elif isinstance(event, StreamEndEvent):
                break
        if root is None:
            raise _Stop(Problem(mark=start, what="the file is empty"))
        return root

    def _events(self) -> Iterator[Event]:
        yaml = YAML(typ="safe", pure=True)
        yaml.Scanner = _TabScanner
        try:
            yield from yaml.parse(self.text)
        except ReaderError as error:
            before = self.text[: error.position]
            column = len(before) - before.rfind("\n")
            mark = Mark(source=self.source, line=before.count("\n") + 1, column=column)
            character = ord(self.text[error.position])
            what = f"not YAML: the character U+{character:04X} may not stand in a text file"
            raise _Stop(Problem(mark=mark, what=what)) from error
        except MarkedYAMLError as error:
            raise _Stop(self._syntax(error)) from error
        except YAMLError as error:
            mark = Mark(source=self.source, line=1, column=1)
            raise _Stop(Problem(mark=mark, what=f"not YAML: {error}")) from error

    def _syntax(self, error: MarkedYAMLError) -> Problem:
        place = error.problem_mark or error.context_mark
        line, column = (place.line + 1, place.column + 1) if place else (1, 1)
        mark = Mark(source=self.source, line=line, column=column)
        lines = self.text.split("\n")
        if line <= len(lines) and lines[line - 1][column - 1 : column] == "\t":
            return Problem(mark=mark, what="not YAML: a tab may not indent; use spaces")
        what = f"not YAML: {error.problem}"
        if error.context and error.context_mark:
            what += f" ({error.context} that begins on line {error.context_mark.line + 1})"
        return Problem(mark=mark, what=what)

    def _mark(self, event: Event) -> Mark:
        place = event.start_mark
        return Mark(source=self.source, line=place.line + 1, column=place.column + 1)

    def _problem(self, mark: Mark, path: Path, what: str) -> None:
        self.problems.append(Problem(mark=mark, path=path, what=what))

    def _node(self, event: Event, path: Path) -> Node | None:
        """Read the node that begins with `event`; None if nothing stands there."""
        mark = self._mark(event)
        if isinstance(event, AliasEvent):
            return self._alias(event, mark, path)
        if len(path) > MAX_DEPTH:
            what = f"nested more than {MAX_DEPTH} levels deep"
            raise _Stop(Problem(mark=mark, path=path[:3], what=what))
        tag = event.tag if isinstance(event, ScalarEvent | CollectionStartEvent) else None
        if tag is not None:
            self._problem(mark, path, f"a tag ({tag}) is not read; every value is text")
        anchor = event.anchor if isinstance(event, NodeEvent) else None
        if anchor is not None:
            self.open.add(anchor)
        node: Node | None
        if isinstance(event, ScalarEvent):
            absent = not event.style and event.value == "" and tag is None
            node = None if absent else _text_node(str(event.value), mark)
        elif isinstance(event, SequenceStartEvent):
            node = self._list(mark, path)
        else:
            node = self._mapping(mark, path)
        if anchor is not None:
            self.open.discard(anchor)
            self.anchors[anchor] = node or Node(value="", mark=mark)
        return node

    def _alias(self, event: AliasEvent, mark: Mark, path: Path) -> Node | None:
        node = self.anchors.get(event.anchor)
        if event.anchor in self.open:
            self._problem(mark, path, f"the alias *{event.anchor} contains itself")
        elif node is None:
            self._problem(mark, path, f"no anchor &{event.anchor} stands before this alias")
        else:
            return Node(value=node.value, mark=mark, size=node.size)
        return None

    def _bounded(self, size: int, mark: Mark) -> int:
        if size > MAX_SIZE:
            what = "too large, with its aliases written out"
            raise _Stop(Problem(mark=mark, what=what))
        return size

    def _list(self, mark: Mark, path: Path) -> Node:
        items: list[Node] = []
        size = 1
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            item = self._node(event, (*path, len(items)))
            if item is None:
                if not isinstance(event, AliasEvent):
                    self._problem(self._mark(event), (*path, len(items)), "is an empty item")
                continue
            items.append(item)
            size = self._bounded(size + item.size, mark)
        return Node(value=tuple(items), mark=mark, size=size)

    def _mapping(self, mark: Mark, path: Path) -> Node:
        seen: dict[str, Mark] = {}
        children: dict[str, Node] = {}
        merged: list[Node] = []
        size = 1
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            key_mark = self._mark(event)
            key, is_merge = self._key(event, key_mark, path)
            child = self._node(next(self.events), (*path, key))
            if key in seen:
                what = f"the key stands twice: first on line {seen[key].line} ({seen[key]})"
                self._problem(key_mark, (*path, key), what)
                continue
            seen[key] = key_mark
            if child is None:
                continue
            if is_merge:
                merged.extend(self._merge_sources(child, path))
            else:
                children[key] = Node(
                    value=child.value, mark=child.mark, key=key_mark, size=child.size
                )
            size = self._bounded(size + child.size, mark)
        for source in merged:
            for step, child in source.children():
                if str(step) not in seen:
                    children.setdefault(str(step), child)
        return Node(value=children, mark=mark, size=size)

    def _key(self, event: Event, mark: Mark, path: Path) -> tuple[str, bool]:
        """Return a key and whether it is the merge key."""
        node = self._node(event, path)
        if node is None or not isinstance(node.value, str):
            what = "a key must be text" if node else "a key is missing before the colon"
            raise _Stop(Problem(mark=mark, path=path, what=what))
        if len(node.value) > MAX_KEY:
            what = f"a key is longer than {MAX_KEY} characters"
            raise _Stop(Problem(mark=mark, path=path, what=what))
        is_merge = isinstance(event, ScalarEvent) and not event.style and node.value == "<<"
        return node.value, is_merge

    def _merge_sources(self, node: Node, path: Path) -> list[Node]:
        sources = list(node.value) if isinstance(node.value, tuple) else [node]
        if not all(isinstance(source.value, Mapping) for source in sources):
            what = "behind << stands a mapping, or a list of mappings"
            self._problem(node.mark, (*path, "<<"), what)
            return []
        return sources
