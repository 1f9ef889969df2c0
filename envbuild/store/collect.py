"""Giving room back: which generations nobody needs, and removing them or a whole environment."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envbuild.errors import InputError, Refused, StoreError
from envbuild.store import integrate, journal, leftovers, owners, present, uses
from envbuild.store.history import find, locked, origin_of, unusable
from envbuild.store.journal import Change, Who
from envbuild.store.layout import Generation, Place, Store
from envbuild.tools import files, units
from envbuild.tools.interrupts import Piece, gap

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
    places: Sequence[Place],
    *,
    keep: int = DEFAULT_KEEP,
    proc: Path = Path("/proc"),
    unit_folders: Sequence[Path] = units.SYSTEM,
) -> tuple[Collection, ...]:
    """Say what `collect` would remove now.

    Kept are the current generation, the `keep` newest ones, pinned ones, and those that a
    process or another host uses, or a unit names.

    Args:
        places: The environments, of one store.
        keep: How many of the newest complete generations stay.
        proc: Where proc(5) is mounted.
        unit_folders: Where units are installed.

    Raises:
        StoreError: A `current` is damaged.
    """
    listed = [(present.generations(place), present.incomplete(place)) for place in places]
    everything = [one for complete, rubbish in listed for one in (*complete, *rubbish)]
    used = uses.uses(everything, proc=proc, unit_folders=unit_folders)
    return tuple(
        _plan(place, keep, complete, rubbish, used)
        for place, (complete, rubbish) in zip(places, listed, strict=True)
    )


def collect(
    planned: Collection,
    *,
    keep: int = DEFAULT_KEEP,
    who: Who,
    now: datetime,
    proc: Path = Path("/proc"),
    unit_folders: Sequence[Path] = units.SYSTEM,
) -> Collection:
    """Remove what was planned and may still go, under the environment's lock.

    Args:
        planned: What `plan` returned.
        keep: How many of the newest complete generations stay.
        who: Who asks for it.
        now: The time, UTC.
        proc: Where proc(5) is mounted.
        unit_folders: Where units are installed.

    Raises:
        StoreError: The store cannot be changed; what is gone by then stays gone.
    """
    place = planned.place
    with locked(place, purpose=f"gc {place.name}", who=who):
        leftovers.clear_temporary(place)
        (again,) = plan([place], keep=keep, proc=proc, unit_folders=unit_folders)
        announced = {generation.identifier for generation in planned.going}
        done = Collection(
            place=place,
            kept=again.kept,
            old=tuple(old for old in again.old if old.identifier in announced),
            rubbish=tuple(part for part in again.rubbish if part.identifier in announced),
        )
        try:
            with leftovers.hidden(done.old):
                used = uses.uses(done.going, proc=proc, unit_folders=unit_folders)
                done = _without(done, used)
                for generation in done.old:
                    change = Change(what="gc", environment=place.name, origin=generation.identifier)
                    with Piece():
                        journal.note(place.store, change, who=who, now=now)
                        discard(generation)
                for generation in done.rubbish:
                    discard(generation)
        except OSError as error:
            raise unusable(place, error) from error
    return done


def tidy(store: Store, places: Sequence[Place], *, who: Who) -> None:
    """Remove what killed commands left besides builds, where nobody is at work and we may.

    Args:
        store: The store, for its caches.
        places: Environments of it.
        who: Who asks for it; nobody is waited for.
    """
    who = replace(who, patience_s=0, told=None)
    for place in places:
        with (
            contextlib.suppress(StoreError, InputError, OSError),
            locked(place, purpose=f"gc {place.name}", who=who),
        ):
            leftovers.clear_temporary(place)
            leftovers.forget(place)
    leftovers.clear_caches(store)


def _without(planned: Collection, used: Mapping[Generation, str]) -> Collection:
    """Return a plan without what is used by now."""
    late = tuple(
        Kept(generation=generation, reason=used[generation])
        for generation in planned.going
        if used[generation]
    )
    return Collection(
        place=planned.place,
        kept=(*planned.kept, *late),
        old=tuple(old for old in planned.old if not used[old]),
        rubbish=tuple(part for part in planned.rubbish if not used[part]),
    )


def discard(generation: Generation) -> None:
    """Remove a generation: its manifest first, so that no half of it passes for a whole.

    Raises:
        StoreError: It cannot be removed.
    """
    try:
        (generation.place.logs / f"{generation.identifier}.log").unlink(missing_ok=True)
        generation.manifest.unlink(missing_ok=True)
        generation.going.unlink(missing_ok=True)
        files.remove_tree(generation.prefix)
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
    with locked(place, purpose=f"pin {place.name}", who=who):
        generation = find(place, text)
        record = {"when": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "who": who.user, "host": who.host}
        change = Change(what="pin", environment=place.name, to=generation.identifier)
        if is_pinned(generation):
            return generation
        try:
            with journal.noted(place.store, change, who=who, now=now):
                files.write_atomic(generation.own / PIN, json.dumps(record) + "\n")
        except OSError as error:
            raise unusable(place, error) from error
    return generation


def unpin(place: Place, text: str, *, who: Who, now: datetime) -> Generation:
    """Let a generation be collected again; one that is not pinned stays as it is.

    Arguments are those of `pin`.

    Raises:
        InputError: There is no such generation.
        StoreError: It is incomplete, or the store cannot be changed.
    """
    with locked(place, purpose=f"unpin {place.name}", who=who):
        generation = find(place, text)
        change = Change(what="unpin", environment=place.name, origin=generation.identifier)
        if not is_pinned(generation):
            return generation
        try:
            with journal.noted(place.store, change, who=who, now=now):
                (generation.own / PIN).unlink(missing_ok=True)
        except OSError as error:
            raise unusable(place, error) from error
    return generation


def is_pinned(generation: Generation) -> bool:
    """Tell whether a generation is kept from collection."""
    return (generation.own / PIN).is_file()


def remove(
    place: Place, *, home: Path, who: Who, now: datetime, proc: Path = Path("/proc")
) -> Removed:
    """Remove an environment with all its generations and its link by name.

    Its history begins anew with the next environment of that name.

    Args:
        place: The environment.
        home: The user's home directory: its conda forgets the environment, its units are asked.
        who: Who asks for it.
        now: The time, UTC.
        proc: Where proc(5) is mounted.

    Raises:
        InputError: There is no such environment.
        Refused: A process or another host uses one of its generations, or a unit names it.
        StoreError: The store cannot be changed, or the environment's folder is not ours.
    """
    place = place.store.resolved().place(place.name)
    if place.root.is_symlink() or place.generations.is_symlink():
        message = f"{place.root} leads out of the store; nothing was removed"
        raise StoreError(message, hint="remove the link by hand")
    with locked(place, purpose=f"remove {place.name}", who=who):
        try:
            leftovers.clear_temporary(place)
            parts = (*present.generations(place), *present.incomplete(place))
            folders = units.folders(home)
            _refuse_used(place, uses.uses(parts, proc=proc, unit_folders=folders))
            owners.refuse(parts)
            change = Change(what=journal.REMOVE, environment=place.name, origin=origin_of(place))
            with _not_current(place), leftovers.hidden(present.generations(place)):
                _refuse_used(place, uses.uses(parts, proc=proc, unit_folders=folders))
                with Piece():
                    with journal.noted(place.store, change, who=who, now=now):
                        place.history.unlink(missing_ok=True)
                    integrate.unregister(place, home=home)
                    _unlink_by_name(place)
                    for part in parts:
                        with gap():  # one generation goes whole; the next can wait for `remove`
                            pass
                        discard(part)
                    left = _clear(place)
        except OSError as error:
            raise unusable(place, error) from error
    leftovers.clear_caches(place.store)
    return Removed(generations=tuple(part.identifier for part in parts), left=left)


def _plan(
    place: Place,
    keep: int,
    complete: Sequence[Generation],
    incomplete: Sequence[Generation],
    used: Mapping[Generation, str],
) -> Collection:
    here = present.current(place)
    newest = {generation.identifier for generation in complete[max(0, len(complete) - keep) :]}
    kept: list[Kept] = []
    old: list[Generation] = []
    for generation in complete:
        reasons = [
            "current" if here == generation else "",
            "pinned" if is_pinned(generation) else "",
            used[generation],
            owners.foreign(generation),
            f"one of the newest {keep}" if generation.identifier in newest else "",
        ]
        reason = ", ".join(filter(None, reasons))
        if reason:
            kept.append(Kept(generation=generation, reason=reason))
        else:
            old.append(generation)
    rubbish = []
    for part in incomplete:
        if text := ", ".join(filter(None, (used[part], owners.foreign(part)))):
            kept.append(Kept(generation=part, reason=f"incomplete, {text}"))
        else:
            rubbish.append(part)
    return Collection(place=place, kept=tuple(kept), old=tuple(old), rubbish=tuple(rubbish))


def _refuse_used(place: Place, used: Mapping[Generation, str]) -> None:
    for generation, text in used.items():
        if text:
            message = f"{place.name} is in use: {generation.identifier} is {text}"
            raise Refused(message, hint="end these processes, disable these units first")


@contextlib.contextmanager
def _not_current(place: Place) -> Iterator[None]:
    """Take `current` away; put it back where what follows fails before the journal says it is gone.

    Raises:
        OSError: It cannot be changed.
    """
    before = os.readlink(place.current) if place.current.is_symlink() else None  # noqa: PTH115
    try:
        place.current.unlink(missing_ok=True)
        yield
    except BaseException:
        if before is not None and (place.root / before).is_dir() and not _is_removed(place):
            files.swap_link(place.current, before)
        raise


def _is_removed(place: Place) -> bool:
    """Tell whether the journal's last word on an environment is that it was removed."""
    entries = [one for one in journal.read(place.store) if one.change.environment == place.name]
    return bool(entries) and entries[-1].change.what == journal.REMOVE


def _unlink_by_name(place: Place) -> None:
    """Remove the link by name if it leads to this environment."""
    link = place.by_name
    if link.is_symlink() and os.path.normpath(link.parent / link.readlink()) == str(place.current):
        link.unlink()


def _clear(place: Place) -> tuple[Path, ...]:
    """Remove what is ours of an emptied environment, the lock last; return what is left."""
    if not place.logs.is_symlink() and place.logs.is_dir():
        files.remove_tree(place.logs)
    # without this folder it is no environment: so the rest goes before it
    with contextlib.suppress(OSError):  # not empty: something that is not ours lies there
        place.generations.rmdir()
    left = tuple(path for path in sorted(place.root.iterdir()) if path != place.lock)
    if not left:
        place.lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # whoever waited for the lock has made it again
            place.root.rmdir()
    return left
