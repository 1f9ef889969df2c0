"""Giving room back: which generations nobody needs, and removing them or a whole environment."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from envbuild.errors import Refused, StoreError
from envbuild.store import integrate, present
from envbuild.store.history import Who, find, locked, unusable
from envbuild.store.layout import Generation, Place, Store
from envbuild.tools import files, processes
from envbuild.tools.processes import Process

PIN = "pinned.json"
DEFAULT_KEEP = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A generation that stays, and why."""

    generation: Generation
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """What a collection removes, or has removed, of one environment.

    Attributes:
        place: The environment.
        kept: What stays, the oldest first.
        old: Complete generations that go.
        rubbish: Folders of builds that did not end; they go too.
    """

    place: Place
    kept: tuple[Kept, ...]
    old: tuple[Generation, ...]
    rubbish: tuple[Generation, ...]

    @property
    def going(self) -> tuple[Generation, ...]:
        """Everything that goes."""
        return (*self.old, *self.rubbish)


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What `remove` did.

    Attributes:
        generations: IDs of the generations that are gone.
        left: Paths in the environment's folder that are not ours and were left.
    """

    generations: tuple[str, ...]
    left: tuple[Path, ...]


def plan(
    places: Sequence[Place], *, keep: int = DEFAULT_KEEP, proc: Path = Path("/proc")
) -> tuple[Collection, ...]:
    """Say what `collect` would remove now.

    Kept are the current generation, the `keep` newest ones, pinned ones, and those that a
    process uses.

    Args:
        places: The environments.
        keep: How many of the newest complete generations stay.
        proc: Where proc(5) is mounted.

    Raises:
        StoreError: A `current` is damaged.
    """
    folders = [
        generation.prefix
        for place in places
        for generation in (*present.generations(place), *present.incomplete(place))
    ]
    running = processes.using(folders, proc=proc)
    return tuple(_plan(place, keep, running) for place in places)


def collect(
    planned: Collection, *, keep: int = DEFAULT_KEEP, proc: Path = Path("/proc")
) -> Collection:
    """Remove what was planned and may still go, under the environment's lock.

    Raises:
        StoreError: The store cannot be changed; what is gone by then stays gone.
    """
    place = planned.place
    with locked(place, purpose=f"gc {place.name}"):
        (now,) = plan([place], keep=keep, proc=proc)
        announced = {generation.identifier for generation in planned.going}
        done = Collection(
            place=place,
            kept=now.kept,
            old=tuple(old for old in now.old if old.identifier in announced),
            rubbish=tuple(part for part in now.rubbish if part.identifier in announced),
        )
        for generation in done.going:
            discard(generation)
    return done


def discard(generation: Generation) -> None:
    """Remove a generation: its manifest first, so that no half of it passes for a whole.

    Raises:
        StoreError: It cannot be removed.
    """
    try:
        generation.manifest.unlink(missing_ok=True)
        files.remove_tree(generation.prefix)
        (generation.place.logs / f"{generation.identifier}.log").unlink(missing_ok=True)
    except NotADirectoryError:
        files.remove_tree(generation.prefix)
    except OSError as error:
        raise unusable(generation.place, error) from error


def pin(place: Place, text: str, *, who: Who, now: datetime) -> Generation:
    """Keep a generation from collection until it is unpinned.

    Args:
        place: The environment.
        text: ID, its beginning, or a number of the history.
        who: Who asks for it; kept beside the generation.
        now: The time, UTC.

    Raises:
        InputError: There is no such generation.
        StoreError: It is incomplete, or the store cannot be changed.
    """
    with locked(place, purpose=f"pin {place.name}"):
        generation = find(place, text)
        record = {"when": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "who": who.user, "host": who.host}
        try:
            files.write_atomic(generation.own / PIN, json.dumps(record) + "\n")
        except OSError as error:
            raise unusable(place, error) from error
    return generation


def unpin(place: Place, text: str) -> Generation:
    """Let a generation be collected again; one that is not pinned stays as it is.

    Raises:
        InputError: There is no such generation.
        StoreError: It is incomplete, or the store cannot be changed.
    """
    with locked(place, purpose=f"unpin {place.name}"):
        generation = find(place, text)
        try:
            (generation.own / PIN).unlink(missing_ok=True)
        except OSError as error:
            raise unusable(place, error) from error
    return generation


def is_pinned(generation: Generation) -> bool:
    """Tell whether a generation is kept from collection."""
    return (generation.own / PIN).is_file()


def remove(place: Place, *, home: Path, proc: Path = Path("/proc")) -> Removed:
    """Remove an environment with all its generations, its history and its link by name.

    Args:
        place: The environment.
        home: The user's home directory, whose conda forgets the environment.
        proc: Where proc(5) is mounted.

    Raises:
        InputError: There is no such environment.
        Refused: A process uses one of its generations.
        StoreError: The store cannot be changed, or the environment's folder is not ours.
    """
    place = Store(root=place.store.root.resolve()).place(place.name)
    if place.root.is_symlink() or place.generations.is_symlink():
        message = f"{place.root} leads out of the store; nothing was removed"
        raise StoreError(message, hint="remove the link by hand")
    with locked(place, purpose=f"remove {place.name}"):
        parts = (*present.generations(place), *present.incomplete(place))
        _refuse_running(place, processes.using([part.prefix for part in parts], proc=proc))
        try:
            integrate.unregister(place, home=home)
            _unlink_by_name(place)
            place.current.unlink(missing_ok=True)
            for part in parts:
                discard(part)
            return Removed(generations=tuple(part.identifier for part in parts), left=_clear(place))
        except OSError as error:
            raise unusable(place, error) from error


def _plan(place: Place, keep: int, running: Mapping[Path, tuple[Process, ...]]) -> Collection:
    here = present.current(place)
    complete = present.generations(place)
    newest = {generation.identifier for generation in complete[max(0, len(complete) - keep) :]}
    kept: list[Kept] = []
    old: list[Generation] = []
    for generation in complete:
        reasons = [
            "current" if here == generation else "",
            "pinned" if is_pinned(generation) else "",
            _running_text(running[generation.prefix]),
            f"one of the newest {keep}" if generation.identifier in newest else "",
        ]
        reason = ", ".join(filter(None, reasons))
        if reason:
            kept.append(Kept(generation=generation, reason=reason))
        else:
            old.append(generation)
    rubbish = []
    for part in present.incomplete(place):
        if text := _running_text(running[part.prefix]):
            kept.append(Kept(generation=part, reason=f"incomplete, {text}"))
        else:
            rubbish.append(part)
    return Collection(place=place, kept=tuple(kept), old=tuple(old), rubbish=tuple(rubbish))


def _running_text(users: Sequence[Process]) -> str:
    if not users:
        return ""
    named = ", ".join(f"{user.pid} ({user.name})" for user in users[:3])
    return f"used by {named}{' and others' if len(users) > 3 else ''}"  # noqa: PLR2004


def _refuse_running(place: Place, running: Mapping[Path, tuple[Process, ...]]) -> None:
    for folder, users in running.items():
        if users:
            message = f"{place.name} is in use: {folder.name} is {_running_text(users)}"
            raise Refused(message, hint="end these processes first")


def _unlink_by_name(place: Place) -> None:
    """Remove the link by name if it leads to this environment."""
    link = place.by_name
    if link.is_symlink() and os.path.normpath(link.parent / link.readlink()) == str(place.current):
        link.unlink()


def _clear(place: Place) -> tuple[Path, ...]:
    """Remove what is ours of an emptied environment, the lock last; return what is left."""
    with contextlib.suppress(OSError):  # not empty: something that is not ours lies there
        place.generations.rmdir()
    place.history.unlink(missing_ok=True)
    if not place.logs.is_symlink() and place.logs.is_dir():
        files.remove_tree(place.logs)
    left = tuple(path for path in sorted(place.root.iterdir()) if path != place.lock)
    if not left:
        place.lock.unlink(missing_ok=True)
        place.root.rmdir()
    return left
