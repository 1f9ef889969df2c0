"""Moving `current`, and the record of who did: switch, roll back, history."""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from envbuild.errors import InputError, StoreError
from envbuild.store import present
from envbuild.store.layout import Generation, Place
from envbuild.tools import files

LOCK_TIMEOUT_S = 60.0
ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True, slots=True)
class Who:
    """Who asks for a change.

    Attributes:
        user: Login name; with the one who called sudo: `root (anna)`.
        host: Name of the machine.
    """

    user: str
    host: str


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
    try:
        text = place.history.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise unusable(place, error) from error
    whole = text[: text.rfind("\n") + 1]
    return tuple(_move(place, number, line) for number, line in enumerate(whole.splitlines(), 1))


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


def switch(place: Place, to: str, *, who: Who, now: datetime) -> Switched:
    """Make another generation current.

    Args:
        place: The environment.
        to: ID, unambiguous beginning of one, or a number of the history.
        who: Who asks for it.
        now: The time, UTC.

    Raises:
        InputError: There is no such generation.
        StoreError: It is incomplete, or the store cannot be changed.
    """
    with locked(place, purpose=f"switch {place.name}"):
        return move_current(find(place, to), what="switch", who=who, now=now)


def roll_back(place: Place, to: str | None, *, who: Who, now: datetime) -> Switched:
    """Go back to the state before the current one, or to the one given.

    A second rollback goes further back. `to` is what `switch` takes.

    Raises:
        InputError: There is no earlier state, or it is gone.
        StoreError: It is incomplete, or the store cannot be changed.
    """
    with locked(place, purpose=f"rollback {place.name}"):
        target = _state_before(place) if to is None else find(place, to)
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
    origin = _origin(place)
    if origin == to.identifier:
        return Switched(generation=to, origin=origin)
    record = {
        "when": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "who": who.user,
        "host": who.host,
        "from": origin,
        "to": to.identifier,
        "what": what,
    }
    try:
        before = _append(place.history, json.dumps(record))
        try:
            files.swap_link(place.current, f"generations/{to.identifier}")
        except OSError:
            os.truncate(place.history, before)
            raise
    except OSError as error:
        raise unusable(place, error) from error
    return Switched(generation=to, origin=origin)


@contextlib.contextmanager
def locked(place: Place, *, purpose: str, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[int]:
    """Hold an existing environment's lock; yields its descriptor.

    Raises:
        InputError: The environment does not exist, or is gone by the time the lock is free.
        StoreError: The lock is not free in time, or this user may not change the store.
    """
    present.existing(place.store, place.name)
    with contextlib.ExitStack() as stack:
        try:
            holding = files.exclusive(place.lock, timeout_s=timeout_s, purpose=purpose)
            descriptor = stack.enter_context(holding)
        except OSError as error:
            raise unusable(place, error) from error
        if not place.generations.is_dir():  # removed meanwhile: locking has made its folder again
            place.lock.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                place.root.rmdir()
        present.existing(place.store, place.name)
        yield descriptor


def unusable(place: Place, error: OSError) -> StoreError:
    """Return what to tell where the store cannot be read or written."""
    message = f"{error.filename or place.root}: {error.strerror}"
    hint = None
    if isinstance(error, PermissionError):
        hint = f"the owner of {place.store.root} may do it (sudo?)"
    return StoreError(message, hint=hint)


def _move(place: Place, number: int, line: str) -> Move:
    try:
        record = json.loads(line)
        user, host, when, to, what = (
            str(record[key]) for key in ("who", "host", "when", "to", "what")
        )
        origin = record["from"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"{place.history}:{number}: not a line of a history"
        raise StoreError(message, hint="remove that line") from error
    who = Who(user=user, host=host)
    return Move(number=number, when=when, who=who, origin=origin, to=to, what=what)


def _origin(place: Place) -> str | None:
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
    here = _origin(place)
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


def _append(path: Path, line: str) -> int:
    """Append one line and make it last; what a crash left of another one is cut off.

    Returns:
        The file's size before, bytes.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        whole = file.read()
        if not whole:
            os.fchmod(file.fileno(), 0o644)  # whatever the umask of who made it
        before = whole.rfind(b"\n") + 1
        file.truncate(before)
        file.seek(0, os.SEEK_END)
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    return before
