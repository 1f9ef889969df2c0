"""Reads what other tools write: a conda `environment.yml`, a pip `requirements.txt`.

What a recipe can say is taken; what it cannot is refused with its line and the reason; what makes
no difference to a lock is left out, and said.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from envbuild.document import Mark, Node, Problem, refusal
from envbuild.errors import RecipeError
from envbuild.reader import decode, read
from envbuild.recipe import requirements, specs, words
from envbuild.recipe.complaints import describe, nearest
from envbuild.target import PLATFORMS, Platform

_KEYS: Final = ("name", "channels", "dependencies", "prefix", "platforms")
_COMMENT: Final = re.compile(r"(^|\s)#.*$")
_PIP_SAID: Final = re.compile(
    r"--(require-hashes|only-binary|prefer-binary|no-deps|no-cache-dir|disable-pip-version-check)\b"
)
_PIP_INDEX: Final = re.compile(r"(-i|--index-url|--extra-index-url|-f|--find-links|--no-index)\b")
_PIP_FILE: Final = re.compile(r"(-r|--requirement|-c|--constraint)\b")


@dataclass(kw_only=True, slots=True)
class Foreign:
    """What a foreign file asks for.

    Attributes:
        channels: conda channels, in order; empty if it names none.
        platforms: conda subdirs; empty if it names none.
        python: Version or range, or None if it names none.
        conda: Match specs, Python not among them.
        pypi: Requirements with their hashes.
        notes: What was left out or changed, each a line.
    """

    channels: list[str] = field(default_factory=list)
    platforms: list[Platform] = field(default_factory=list)
    python: str | None = None
    conda: list[str] = field(default_factory=list)
    pypi: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def wants_python(self) -> bool:
        """Whether Python has to be named beside what the conda packages bring."""
        named = any(specs.name_of(text) == "python" for text in self.conda)
        return not named and (bool(self.pypi) or not self.conda)


def load(path: Path) -> Foreign:
    """Read a foreign file.

    Raises:
        InputError: It cannot be read, or has lines that a recipe cannot take.
    """
    try:
        text = decode(path.read_bytes(), source=str(path))
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise RecipeError(message, source=str(path)) from error
    return loads(text, source=str(path))


def loads(text: str, *, source: str) -> Foreign:
    """Read a foreign file: conda's if its name ends in .yml or .yaml, else pip's.

    Raises:
        InputError: There are lines that a recipe cannot take: all of them, with the reason.
    """
    reader = _Reader(source)
    if source.lower().endswith((".yml", ".yaml")):
        reader.environment(read(text, source=source).root)
    else:
        for mark, line in _logical_lines(text, source):
            reader.pip_line(line, mark)
    if reader.problems:
        raise refusal(tuple(reader.problems), source=source, error=RecipeError)
    return reader.found


class _Reader:
    """Collects what a file asks for, and what is wrong with it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found = Foreign()
        self.problems: list[Problem] = []
        self.needs = requirements.Collisions()

    def environment(self, root: Node) -> None:
        """Take a conda environment file."""
        if not isinstance(root.value, Mapping):
            self._problem(root, f"expected the mapping of an environment, found {describe(root)}")
            return
        for key, node in root.value.items():
            if key == "channels":
                self._channels(node)
            elif key == "platforms":
                self._platforms(node)
            elif key == "dependencies":
                self._dependencies(node)
            elif key not in _KEYS:
                place = node.key or node.mark
                what = f"a recipe cannot take the key {key!r}{nearest(key, _KEYS)}"
                self.problems.append(Problem(mark=place, what=what))
        if not self.found.channels:
            self.found.channels.append("conda-forge")
            self._note(root, "it names no channel; conda-forge is taken")

    def _problem(self, node: Node, what: str) -> None:
        self.problems.append(Problem(mark=node.mark, what=what))

    def _note(self, node: Node, what: str) -> None:
        self.found.notes.append(f"{node.mark}: {what}")

    def _items(self, node: Node, what: str) -> Iterator[tuple[Node, str]]:
        """Give the texts of a list; complain of everything else."""
        if not isinstance(node.value, tuple):
            self._problem(node, f"expected a list of {what}, found {describe(node)}")
            return
        for item in node.value:
            if isinstance(item.value, str):
                yield item, item.value.strip()
            else:
                self._problem(item, f"expected one of the {what}, found {describe(item)}")

    def _channels(self, node: Node) -> None:
        defaults: list[Node] = []
        for item, text in self._items(node, "channels"):
            if text == "nodefaults":
                continue
            if text == "defaults":
                defaults.append(item)
                continue
            try:
                channel = words.channel(text)
            except ValueError as error:
                self._problem(item, str(error))
                continue
            if channel not in self.found.channels:
                self.found.channels.append(channel)
        for item in defaults:
            what = "'defaults' stands for conda's configured channels"
            if self.found.channels:
                self._note(item, f"{what}; it was left out")
            else:
                self._problem(item, f"{what}; name the ones that are meant, such as conda-forge")

    def _platforms(self, node: Node) -> None:
        for item, text in self._items(node, "platforms"):
            known = [platform for platform in PLATFORMS if platform == text]
            self.found.platforms += known
            if not known:
                self._note(item, f"the platform {text} was left out; known: {', '.join(PLATFORMS)}")

    def _dependencies(self, node: Node) -> None:
        if not isinstance(node.value, tuple):
            self._problem(node, f"expected a list of packages, found {describe(node)}")
            return
        for item in node.value:
            if isinstance(item.value, str):
                self._conda(item, item.value)
            elif isinstance(item.value, Mapping) and set(item.value) == {"pip"}:
                for line, text in self._items(item.value["pip"], "requirements"):
                    self.pip_line(_uncommented(text), line.mark)
            else:
                found = describe(item)
                if isinstance(item.value, Mapping):
                    found = " and ".join(f"'{key}:'" for key in item.value) or "nothing"
                self._problem(item, f"expected a package or 'pip:', found {found}")

    def _conda(self, node: Node, text: str) -> None:
        try:
            need = specs.parse(_uncommented(text))
        except ValueError as error:
            self._problem(node, str(error))
            return
        if need.channel is not None and need.channel not in self.found.channels:
            self.found.channels.append(need.channel)
            self._note(node, f"the channel {need.channel} was added to the channels, last")
        plain = need.channel is None and need.build is None
        if need.name == "python" and plain and self._python(need.version):
            return
        self.found.conda.append(need.text)

    def _python(self, version: str | None) -> bool:
        """Keep the version of Python where a recipe's key can say it."""
        if version is None or self.found.python is not None:
            return version is None
        try:
            self.found.python = words.python(version)
        except ValueError:
            return False
        return True

    def pip_line(self, line: str, mark: Mark) -> None:
        """Take one requirement, or one option, as pip has it in a file."""
        if not line:
            return
        if _PIP_SAID.match(line):
            self.found.notes.append(f"{mark}: {line.split(maxsplit=1)[0]} was left out")
            return
        reason = _refused_option(line)
        if reason:
            self.problems.append(
                Problem(mark=mark, what=f"{reason}: {words.without_login(line)!r}")
            )
            return
        try:
            need = requirements.parse(line)
        except ValueError as error:
            self.problems.append(Problem(mark=mark, what=words.without_login(str(error))))
            return
        other = self.needs.add(need)
        if other is not None:
            if not requirements.same(other, need):
                what = f"{need.name} is asked for twice: {other.text!r} and {need.text!r}"
                self.problems.append(Problem(mark=mark, what=what))
            return
        hashes = [f"--hash=sha256:{digest}" for digest in need.hashes]
        self.found.pypi.append(" ".join([need.text, *hashes]))


def _refused_option(line: str) -> str:
    """Return why an option cannot be taken, or nothing."""
    if _PIP_INDEX.match(line):
        return "an index is named in the recipe's indexes, with the packages that come from it"
    if _PIP_FILE.match(line):
        return "another file is not followed; give that file to --from itself"
    return ""


def _uncommented(text: str) -> str:
    return _COMMENT.sub("", text).strip()


def _logical_lines(text: str, source: str) -> Iterator[tuple[Mark, str]]:
    """Give the lines of a requirements file, joined where one ends in a backslash."""
    parts: list[str] = []
    start = 1
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not parts:
            start = number
        line = _uncommented(raw)
        parts.append(line.removesuffix("\\").strip())
        if line.endswith("\\"):
            continue
        yield Mark(source=source, line=start, column=1), " ".join(filter(None, parts))
        parts = []
    if parts:
        yield Mark(source=source, line=start, column=1), " ".join(filter(None, parts))
