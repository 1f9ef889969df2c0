"""The embedded `host` channel: which interpreter of this machine a recipe gets.

This is the part that others use; how it is asked, read and packed is in the modules beside it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envbuild.channel.added import added_pythons
from envbuild.channel.facts import HostFacts, facts
from envbuild.channel.interpreter import HostPython, Unfit, ask
from envbuild.channel.pack import digest, libraries, pack
from envbuild.channel.sources import watched
from envbuild.errors import HostError, RecipeError
from envbuild.findings import Finding, Findings, Severity
from envbuild.tools.run import Runner, run

__all__ = [
    "ADDED",
    "HostFacts",
    "HostPython",
    "Wish",
    "changed",
    "choose",
    "digest",
    "facts",
    "libraries",
    "pack",
    "still",
    "watched",
]

_NAME = re.compile(r"python3(\.\d+)?")
_PATCHES = range(100)
_BARE = re.compile(r"(\d+(?:\.\d+)*)(?:\.\*)?")
ADDED = "channel add-python"
"""`origin` of an interpreter that was added to the store's channels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """Where to look for an interpreter, in this order.

    Attributes:
        option: What `--python` names: a path, or a name on PATH; taken or refused, never skipped.
        variable: The same from ENVBUILD_PYTHON.
        channels: The store's folder of local channels, for what `channel add-python` added.
        running: The interpreter that envbuild runs on.
        search: The user's PATH.
    """

    option: str | None = None
    variable: str | None = None
    channels: Path | None = None
    running: Path | None = None
    search: str = ""


def choose(wanted: str, wish: Wish, *, runner: Runner = run) -> HostPython:
    """Choose the interpreter that a recipe is built on.

    Args:
        wanted: Version range of the recipe (`>=3.11,<3.15`, `3.12`); empty takes any.
        wish: Where to look.
        runner: Starts interpreters.

    Raises:
        HostError: None fits; the message names every one and why it was not taken.
        RecipeError: `wanted` is no version range.
    """
    allowed = version_range(wanted)
    variable = ("ENVBUILD_PYTHON", wish.variable, "ENVBUILD_PYTHON=")
    for origin, named, label in (("--python", wish.option, ""), variable):
        if named:
            path = _named(named, wish.search)
            try:
                python = ask(path, origin=origin, search=wish.search, runner=runner)
                return _in_range(python, allowed)
            except Unfit as error:
                message = f"{label}{named}: {error}"
                raise HostError(message, hint=_hint(wanted)) from error
    refused: list[str] = []
    for attempt in (_added, _running, _on_path):
        found = list(attempt(wish, allowed, refused, runner))
        if found:
            return max(found, key=_order)
    message = f"no CPython of this machine fits {wanted or 'the recipe'}"
    message += f": {'; '.join(refused)}" if refused else ": there is none on PATH"
    raise HostError(message, hint=_hint(wanted))


def changed(old_path: str, old_digest: str, python: HostPython) -> Findings:
    """Return a finding if the interpreter is not the one that an environment was made of.

    Args:
        old_path: The interpreter in the environment's manifest.
        old_digest: Its digest there.
        python: What would be taken now.

    Raises:
        HostError: Its files cannot be read.
    """
    if digest(python) == old_digest:
        return ()
    same = old_path == str(python.path)
    what = "it was updated" if same else f"{python.path} would be taken now, not {old_path}"
    return (
        Finding(
            code="interpreter-changed",
            severity=Severity.WARNING,
            where=old_path,
            what=f"the machine's Python is another one: {what} ({python.version})",
            why="generations keep their own copy of the interpreter that they were made of",
            hint=None if same else f"to stay with the old one: --python {old_path}",
        ),
    )


def still(path: Path, old_digest: str, *, runner: Runner = run) -> bool:
    """Return whether the interpreter at a path has the files it had, whatever their times say.

    The first import by root, for one, writes bytecode and so changes its folders' mtimes.
    """
    try:
        return digest(ask(path, runner=runner)) == old_digest
    except (Unfit, HostError):
        return False


def version_range(text: str) -> SpecifierSet:
    """Return a recipe's range of Python versions; a bare `3.12` means 3.12 and its patches.

    Raises:
        RecipeError: It is none.
    """
    try:
        bare = _BARE.fullmatch(text)
        return SpecifierSet(f"=={bare[1]}.*" if bare else text)
    except InvalidSpecifier as error:
        message = f"python: {text!r} is not a range of versions"
        raise RecipeError(message, where="python", hint="write it like >=3.11,<3.15") from error


def _hint(wanted: str) -> str:
    return f"install a CPython {wanted}".rstrip() + ", or name one with --python PATH"


def _order(python: HostPython) -> tuple[int, ...]:
    return tuple(int(part) for part in python.version.split("."))


def _in_range(python: HostPython, allowed: SpecifierSet) -> HostPython:
    if python.version not in allowed:
        message = f"{python.version} is not in {allowed}"
        raise Unfit(message)
    return python


def _named(named: str, search: str) -> Path:
    """Return the path of an interpreter that was named by path, or by name on PATH."""
    if "/" not in named:
        for folder in _folders(search):
            if os.access(folder / named, os.X_OK):
                return folder / named
    return Path(named).absolute()


def _folders(search: str) -> Iterator[Path]:
    """Yield the absolute folders of a PATH; a relative one means another one in each place."""
    for part in dict.fromkeys(search.split(os.pathsep)):
        if part.startswith("/"):
            yield Path(part)


def _added(
    wish: Wish, allowed: SpecifierSet, refused: list[str], runner: Runner
) -> Iterator[HostPython]:
    del runner
    for python in reversed(added_pythons(wish.channels)) if wish.channels else ():
        try:
            yield replace(_in_range(python, allowed), origin=ADDED)
        except Unfit as error:
            refused.append(f"{python.archive} (added): {error}")


def _running(
    wish: Wish, allowed: SpecifierSet, refused: list[str], runner: Runner
) -> Iterator[HostPython]:
    if wish.running is not None:
        yield from _asked(wish.running, "running", allowed, refused, runner)


def _on_path(
    wish: Wish, allowed: SpecifierSet, refused: list[str], runner: Runner
) -> Iterator[HostPython]:
    seen = {os.path.realpath(wish.running)} if wish.running else set()
    for folder in _folders(wish.search):
        try:
            paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
        except OSError:
            continue
        for path in paths:
            real = os.path.realpath(path)
            if real in seen or not os.access(real, os.X_OK):
                continue
            seen.add(real)
            minor = path.name.removeprefix("python")
            if "." in minor and not any(f"{minor}.{patch}" in allowed for patch in _PATCHES):
                refused.append(f"{path}: {minor} is not in {allowed}")
            else:
                yield from _asked(path, "PATH", allowed, refused, runner, wish.search)


def _asked(
    path: Path,
    origin: str,
    allowed: SpecifierSet,
    refused: list[str],
    runner: Runner,
    search: str = "",
) -> Iterator[HostPython]:
    """Yield the interpreter at a path if it fits, or note why it does not."""
    try:
        yield _in_range(ask(path, origin=origin, search=search, runner=runner), allowed)
    except Unfit as error:
        refused.append(f"{path}: {error}")
