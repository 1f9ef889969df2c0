"""The YAML of `conda-lock.yml`: fixed text out, text with line numbers in.

Written by hand, because the bytes may not depend on a library's version. Read by libyaml, because
a lock of a hundred packages is read on every `create`; scalars stay text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from envbuild.errors import LockError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9._/+-]*(?::[A-Za-z0-9._/+-]+)*")
_SINGLE = re.compile(r"(?=.*[\"\\])[ -&(-~]+")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_HINT = "lock files are not edited by hand: restore the file, or lock again"
_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: .*)?$|^={7}$", re.MULTILINE)


def scalar(text: str) -> str:
    """Return text as a YAML scalar that every reader takes for text: plain, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if _SINGLE.fullmatch(text):
        return f"'{text}'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\U{ord(character):08x}"


def refuse_conflict(text: str, *, source: str) -> None:
    """Refuse a file that an unfinished merge left behind.

    Raises:
        LockError: A line is a conflict marker of git's.
    """
    if (found := _CONFLICT.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        message = f"{source}:{line}: a conflict marker of git ({found[0][:7]})"
        hint = "take one side of the merge (git checkout --ours or --theirs), then lock again"
        raise LockError(message, source=source, where=str(line), hint=hint)


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A value of a document, its field's name and its place.

    Attributes:
        node: What libyaml read.
        source: The file, for messages.
        field: The field's name (`package[3].hash`); empty for the document.
    """

    node: yaml.Node
    source: str
    field: str = ""

    def refusal(self, *, what: str) -> LockError:
        """Return the error about this value."""
        line = self.node.start_mark.line + 1
        name = f"{self.field}: " if self.field else ""
        return LockError(
            f"{self.source}:{line}: {name}{what}",
            source=self.source,
            where=str(line),
            hint=_HINT,
        )

    def text(self) -> str:
        """Return the text of a scalar.

        Raises:
            LockError: It is a list or a mapping.
        """
        if isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value)
        raise self.refusal(what="expected text")

    def items(self) -> "Iterator[Value]":
        """Give the items of a list.

        Raises:
            LockError: It is no list.
        """
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refusal(what="expected a list")
        for position, item in enumerate(self.node.value):
            yield Value(node=item, source=self.source, field=f"{self.field}[{position}]")

    def mapping(self, *, known: frozenset[str] | None = None) -> "Mapping":
        """Return the entries of a mapping.

        Args:
            known: The keys that may stand in it; None for any.

        Raises:
            LockError: It is no mapping, a key stands twice, is no text or is not known.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refusal(what="expected a mapping")
        entries: dict[str, Value] = {}
        for key, node in self.node.value:
            place = Value(node=key, source=self.source, field=self.field)
            name = place.text()
            if name in entries:
                raise place.refusal(what=f"the key {name!r} stands twice")
            if known is not None and name not in known:
                raise place.refusal(what=f"unknown key {name!r}")
            field = f"{self.field}.{name}" if self.field else name
            entries[name] = Value(node=node, source=self.source, field=field)
        return Mapping(value=self, entries=entries)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapping:
    """A mapping's entries.

    Attributes:
        value: The mapping itself.
        entries: Key to value.
    """

    value: Value
    entries: dict[str, Value]

    def get(self, key: str) -> Value:
        """Return what a key holds.

        Raises:
            LockError: It is missing.
        """
        if key in self.entries:
            return self.entries[key]
        raise self.value.refusal(what=f"the key {key!r} is missing")

    def text(self, key: str) -> str:
        """Return the text that a key holds.

        Raises:
            LockError: It is missing or no text.
        """
        return self.get(key).text()

    def optional(self, key: str) -> str | None:
        """Return the text that a key holds, or None if it is missing.

        Raises:
            LockError: It is no text.
        """
        return self.entries[key].text() if key in self.entries else None


def read(text: str, *, source: str) -> Value:
    """Read one YAML document.

    Args:
        text: The document.
        source: The file, for messages.

    Raises:
        LockError: It is no YAML, is empty, or holds several documents.
    """
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        message = f"{source}:{line}: no YAML: {error.problem or error.context}"
        raise LockError(message, source=source, where=str(line), hint=_HINT) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = f"{source}: no YAML: {str(error).splitlines()[0]}"
        raise LockError(message, source=source, hint=_HINT) from error
    if node is None:
        message = f"{source}: the file is empty"
        raise LockError(message, source=source, hint=_HINT)
    return Value(node=node, source=source)
