"""What a store has: environments, their generations, the current one. Imported on hot paths."""

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from envbuild.errors import InputError, StoreError
from envbuild.store.layout import Generation, Place, Store

_TARGET = re.compile(r"generations/([0-9a-f]{16}(?:-[0-9]+)?)")
_IDENTIFIER = re.compile(r"[0-9a-f]{16}(?:-[0-9]+)?")
ASIDE = ".relink-"
"""How the name of a folder begins in which `store relink` prepares a generation."""
OLD = ".old"
"""How that of a generation ends which it has put away to take its place."""


def existing(store: Store, name: str) -> Place:
    """Return the place of an environment that the store has.

    Raises:
        UsageProblem: It is not a name.
        InputError: The store has no environment of that name.
    """
    return found((store,), name)


def found(stores: Sequence[Store], name: str) -> Place:
    """Return the place of an environment in the first store that has it.

    Raises:
        UsageProblem: It is not a name.
        InputError: No store has an environment of that name.
    """
    for store in stores:
        place = store.place(name)
        if os.path.isdir(place.generations):  # noqa: PTH112 - false where it may not be looked at
            return place
    import difflib

    known = {each for store in stores for each in names(store)}
    near = difflib.get_close_matches(name, sorted(known), n=3)
    also = f"; near: {', '.join(near)}" if near else ""
    where = " or ".join(str(store.root) for store in stores)
    message = f"no environment {name!r} in {where}{also}"
    raise InputError(message, source=name, hint=f"envbuild create {name}")


def own(stores: Sequence[Store], name: str, *, command: str) -> Place:
    """Return the place of an environment that is to be changed: the first store has it.

    Args:
        stores: The user's own store, then others that he runs from.
        name: The environment.
        command: The command that changes it, for the hint.

    Raises:
        UsageProblem: It is not a name.
        InputError: No store has an environment of that name.
        StoreError: Only another store has it.
    """
    place = found(stores, name)
    if place.store == stores[0]:
        return place
    message = f"{name} is not yours: it is in the system's store, {place.store.root}"
    hint = f"sudo envbuild {command} {name}, or envbuild create {name} for one of your own"
    raise StoreError(message, hint=hint)


def names(store: Store) -> tuple[str, ...]:
    """Return the names of the store's environments, sorted."""
    try:
        folders = sorted(store.environments.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ()
    return tuple(folder.name for folder in folders if os.path.isdir(folder / "generations"))  # noqa: PTH112


def current(place: Place) -> Generation | None:
    """Return the generation that `current` names, or None if there is no such link.

    It may be gone: see `complete`.

    Raises:
        StoreError: `current` is not a link to a generation of this environment.
    """
    try:
        to = str(place.current.readlink())
    except FileNotFoundError:
        return None
    except OSError:
        message = f"{place.current} is not a link"
        raise StoreError(message, hint="move it away, then switch to a generation") from None
    found = _TARGET.fullmatch(to)
    if not found:
        message = f"{place.current} points to {to}, which is no generation of {place.name}"
        raise StoreError(message, hint=to_current(place))
    return place.generation(found[1])


def complete(generation: Generation) -> bool:
    """Tell whether a generation's build came to its end: its manifest is there."""
    return generation.manifest.is_file()


def generations(place: Place) -> tuple[Generation, ...]:
    """Return the complete generations in the order in which they were made."""
    found: list[tuple[int, str]] = []
    for name in _folder_names(place.generations):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            stamp = place.generation(name).manifest.stat().st_mtime_ns
            found.append((stamp, name))
    return tuple(place.generation(name) for _, name in sorted(found))


def incomplete(place: Place) -> tuple[Generation, ...]:
    """Return the folders of builds and of relinks that did not end (or have not yet)."""
    candidates = map(place.generation, _folder_names(place.generations))
    builds = (generation for generation in candidates if not complete(generation))
    return (*builds, *map(place.generation, _aside(place.generations)))


def find(place: Place, text: str, *, also: Sequence[str] = ()) -> Generation:
    """Return the complete generation meant by an ID or by the beginning of one.

    Args:
        place: The environment.
        text: What the user wrote.
        also: IDs that the text means in another way (a number of the history).

    Raises:
        InputError: Nothing, or more than one generation, answers to `text`.
        StoreError: The generation is incomplete.
    """
    there = [generation.identifier for generation in generations(place)]
    if text in there:
        return place.generation(text)
    meant = {name for name in there if text and name.startswith(text)} | set(also)
    if not meant and text in {generation.identifier for generation in incomplete(place)}:
        message = f"generation {text} of {place.name} is incomplete: its build did not end"
        raise StoreError(message, hint=f"envbuild create {place.name}")
    if len(meant) > 1:
        message = f"{text!r} means more than one generation of {place.name}"
        raise InputError(message, source=text, hint=f"one of {', '.join(sorted(meant))}")
    identifier = next(iter(meant), "")
    if identifier not in there:
        what = f"generation {identifier} ({text!r}), it is gone" if meant else repr(text)
        message = f"{place.name} has no generation {what}"
        raise InputError(message, source=text, hint=whats_there(place))
    return place.generation(identifier)


def to_current(place: Place) -> str:
    """Return the command that gives an environment without a current generation one."""
    there = generations(place)
    if there:
        return f"envbuild switch {place.name} {there[-1].identifier}"
    return f"envbuild create {place.name}"


def whats_there(place: Place) -> str:
    """Return a hint that names the complete generations, or how to make one."""
    there = [generation.identifier for generation in generations(place)]
    if not there:
        return f"envbuild create {place.name}"
    return f"there are {', '.join(there)} (see: envbuild history {place.name})"


def _aside(folder: Path) -> list[str]:
    """Return the folders that a relink left, but not one that holds a generation's only copy."""
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:  # the environment was removed meanwhile
        return []
    with entries:
        names = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    found = sorted(name for name in names if name.startswith(ASIDE))
    return [name for name in found if name.removeprefix(ASIDE).removesuffix(OLD) in names]


def _folder_names(folder: Path) -> list[str]:
    """Return the names below `generations/` that can be ours, sorted; links are not."""
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:  # the environment was removed meanwhile
        return []
    with entries:
        return sorted(
            entry.name
            for entry in entries
            if _IDENTIFIER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        )
