"""Moving `current`, and the record of who did: switch, roll back, history."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from envbuild.errors import InputError, StoreError
from envbuild.store import journal, leftovers, moved, present
from envbuild.store.journal import Change, Entry, Who
from envbuild.store.layout import Generation, Place, Store
from envbuild.store.raw import read_raw
from envbuild.tools import files, locks

ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One line of an environment's history.

    Attributes:
        number: Its place in the history, from 1; as an argument it means the state after it.
        when: UTC, ISO 8601 with a `Z`.
        who: Who moved it.
        origin: Generation that was current before, None for none.
        to: Generation that became current.
        what: `create`, `switch`, `rollback` or `repair`.
    """

    number: int
    when: str
    who: Who
    origin: str | None
    to: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Switched:
    """What a switch did.

    Attributes:
        generation: What is current now.
        origin: What was current before; the same where there was nothing to do.
    """

    generation: Generation
    origin: str | None

    @property
    def moved(self) -> bool:
        """Whether anything changed."""
        return self.origin != self.generation.identifier


def read(place: Place) -> tuple[Move, ...]:
    """Return the history, the oldest move first; a last line cut off by a crash is left out.

    Raises:
        StoreError: A line is not one of ours.
    """
    moves: list[Entry] = []
    try:
        entries = journal.read(place.store)
        moves.extend(_older(place, entries))
        for entry in entries:
            if entry.change.environment == place.name:
                if entry.change.what == journal.REMOVE:
                    moves.clear()  # what follows is of another environment of that name
                elif entry.change.moves:
                    moves.append(entry)
    except OSError as error:
        raise unusable(place, error) from error
    return tuple(
        Move(
            number=number,
            when=entry.when,
            who=entry.who,
            origin=entry.change.origin,
            to=str(entry.change.to),
            what=entry.change.what,
        )
        for number, entry in enumerate(moves, 1)
    )


def everything(store: Store) -> tuple[Entry, ...]:
    """Return every change of a store, the oldest first.

    Raises:
        StoreError: A line is not one of ours, or cannot be read.
    """
    try:
        places = map(store.place, present.names(store))
        entries = journal.read(store)
        older = [entry for place in places for entry in _older(place, entries)]
        return (*sorted(older, key=lambda entry: entry.when), *entries)
    except OSError as error:
        message = f"{error.filename or store.root}: {error.strerror}"
        raise StoreError(message) from error


def find(place: Place, text: str) -> Generation:
    """Return the complete generation meant by an ID, its beginning, or a history number.

    Raises:
        InputError: Nothing, or more than one generation, answers to `text`.
        StoreError: The generation is incomplete, or the history is damaged.
    """
    numbered: list[str] = []
    if re.fullmatch(r"[1-9][0-9]{0,9}", text):
        numbered = [move.to for move in read(place) if move.number == int(text)]
    return present.find(place, text, also=numbered)


Around = Callable[[Generation], contextlib.AbstractContextManager[None]]
"""What is done before `current` moves to a generation, and undone where it then cannot."""


def switch(
    place: Place, to: str, *, who: Who, now: datetime, around: Around | None = None
) -> Switched:
    """Make another generation current.

    Args:
        place: The environment.
        to: ID, unambiguous beginning of one, or a number of the history.
        who: Who asks for it.
        now: The time, UTC.
        around: Moves what runs from it.

    Raises:
        InputError: There is no such generation.
        StoreError: It is incomplete or was moved, or the store cannot be changed.
    """
    with changing(place, purpose=f"switch {place.name}", who=who):
        target = find(place, to)
        _refuse_moved(target)
        with around(target) if around else contextlib.nullcontext():
            return move_current(target, what="switch", who=who, now=now)


def roll_back(
    place: Place, to: str | None, *, who: Who, now: datetime, around: Around | None = None
) -> Switched:
    """Go back to the state before the current one, or to the one given.

    A second rollback goes further back. `to` and `around` are what `switch` takes.

    Raises:
        InputError: There is no earlier state, or it is gone.
        StoreError: It is incomplete or was moved, or the store cannot be changed.
    """
    with changing(place, purpose=f"rollback {place.name}", who=who):
        target = _state_before(place) if to is None else find(place, to)
        _refuse_moved(target)
        with around(target) if around else contextlib.nullcontext():
            return move_current(target, what=ROLLBACK, who=who, now=now)


def move_current(to: Generation, *, what: str, who: Who, now: datetime) -> Switched:
    """Point `current` to a complete generation and write that down; the lock must be held.

    Nothing is written where it is current already. A link that leads elsewhere is replaced.

    Raises:
        StoreError: The generation is incomplete, or the store cannot be written.
    """
    place = to.place
    if not present.complete(to):
        message = f"generation {to.identifier} of {place.name} is incomplete"
        raise StoreError(message, hint=f"envbuild create {place.name}")
    origin = origin_of(place)
    if origin == to.identifier:
        return Switched(generation=to, origin=origin)
    change = Change(what=what, environment=place.name, origin=origin, to=to.identifier, moves=True)
    try:
        with journal.noted(place.store, change, who=who, now=now):
            files.swap_link(place.current, f"generations/{to.identifier}")
    except OSError as error:
        raise unusable(place, error) from error
    return Switched(generation=to, origin=origin)


@contextlib.contextmanager
def locked(place: Place, *, purpose: str, who: Who) -> Iterator[int]:
    """Hold an existing environment's lock; yields its descriptor.

    Args:
        place: The environment.
        purpose: The command that needs it.
        who: Who asks, how long they wait, and how they are told for whom.

    Raises:
        InputError: The environment does not exist, or is gone by the time the lock is free.
        StoreError: The lock is not free in time, or this user may not change the store.
    """
    present.existing(place.store, place.name)
    with contextlib.ExitStack() as stack:
        try:
            holding = locks.exclusive(
                place.lock, timeout_s=who.patience(), purpose=purpose, told=who.told
            )
            descriptor = stack.enter_context(holding)
        except OSError as error:
            raise unusable(place, error) from error
        if not place.generations.is_dir():  # removed meanwhile: locking has made its folder again
            place.lock.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                place.root.rmdir()
        present.existing(place.store, place.name)
        yield descriptor


@contextlib.contextmanager
def changing(place: Place, *, purpose: str, who: Who) -> Iterator[None]:
    """Hold an environment's lock; then remove what killed commands left. Errors as of `locked`."""
    with locked(place, purpose=purpose, who=who):
        yield
        try:
            leftovers.clear(place)
        except OSError as error:
            raise unusable(place, error) from error
        leftovers.clear_caches(place.store)


def unusable(place: Place, error: OSError) -> StoreError:
    """Return what to tell where the store cannot be read or written."""
    message = f"{error.filename or place.root}: {error.strerror}"
    hint = None
    if isinstance(error, PermissionError):
        hint = f"the owner of {place.store.root} may do it (sudo?)"
    return StoreError(message, hint=hint)


def older_records(place: Place) -> Iterator[dict[str, object]]:
    """Yield what the environment's own file says, from before stores had a journal, as lines of it.

    Raises:
        StoreError: A line is not one of ours.
        OSError: It cannot be read.
    """
    for where, line in journal.lines(place.history):
        found = {**journal.loads(where, line), "environment": place.name, "moves": True}
        journal.entry_of(found, where)
        names = ("when", "who", "host", "what", "environment", "from", "to", "moves")
        yield {name: found[name] for name in names}


def _older(place: Place, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield what only the environment's own file says: `store migrate` puts that into the journal.

    Args:
        place: The environment.
        entries: The journal.
    """
    known = set(entries)
    for record in older_records(place):
        entry = journal.entry_of(record, f"{place.history}")
        if entry not in known:
            yield entry


def _refuse_moved(generation: Generation) -> None:
    data = read_raw(generation)
    if data is not None:
        moved.refuse(generation, str(data.get("prefix")))


def origin_of(place: Place) -> str | None:
    """Return what is current; None also where the link leads elsewhere."""
    try:
        before = present.current(place)
    except StoreError:
        if place.current.is_symlink():
            return None
        raise
    return before.identifier if before else None


def _state_before(place: Place) -> Generation:
    """Return the state before the current one: each move stacks it, a rollback takes it off."""
    states: list[str] = []
    for move in read(place):
        if move.what == ROLLBACK and move.to in states[:-1]:
            states.pop()
            while states[-1] != move.to:
                states.pop()
        elif not states or states[-1] != move.to:
            states.append(move.to)
    here = origin_of(place)
    while states and states[-1] != here and here in states:
        states.pop()
    if states and states[-1] == here:
        states.pop()
    if not states:
        message = f"{place.name} has no earlier state"
        raise InputError(message, source=place.name, hint=f"envbuild history {place.name}")
    before = place.generation(states[-1])
    if not present.complete(before):
        message = f"the state before, generation {before.identifier}, is gone"
        raise InputError(message, source=place.name, hint=present.whats_there(place))
    return before
