"""The store's journal: one line for each change of state, in the order in which they happened.

It is the one record of who did what. Stores of envbuild 0.1.0's beginnings also have a
`history.jsonl` per environment; `store.history` still reads it.
"""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.store.layout import Store
from envbuild.tools import interrupts, locks
from envbuild.tools.files import share
from envbuild.tools.locks import Told

PATIENCE_S = 60.0
REMOVE = "remove"
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Who:
    """Who asks for a change.

    Attributes:
        user: Login name; with the one who called sudo: `root (anna)`.
        host: Name of the machine.
        patience_s: How long to wait for a lock that another process holds; None for as long as
            suits the command.
        told: Is told for whom is waited.
    """

    user: str
    host: str
    patience_s: float | None = field(default=None, compare=False)
    told: Told | None = field(default=None, compare=False)

    def patience(self, default_s: float = PATIENCE_S) -> float:
        """Return how many seconds to wait for a lock, where a command's own patience is given."""
        return default_s if self.patience_s is None else self.patience_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What one line says happened.

    Attributes:
        what: `create`, `switch`, `rollback`, `repair`, `build` (a generation that did not become
            current), `relink`, `migrate`, `pin`, `unpin`, `gc`, `remove`, `channel add` …
        environment: Its name, None for a change of the whole store.
        origin: Generation that was current before; of `unpin` and `gc`, the one meant.
        to: Generation that became current, was built or pinned; of a channel, what was added.
        moves: Whether `current` moved.
    """

    what: str
    environment: str | None
    origin: str | None = None
    to: str | None = None
    moves: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of the journal.

    Attributes:
        when: UTC, ISO 8601 with a `Z`.
        who: Who did it.
        change: What happened.
    """

    when: str
    who: Who
    change: Change


def read(store: Store) -> tuple[Entry, ...]:
    """Return the journal, the oldest line first; a last line cut off by a crash is left out.

    Raises:
        StoreError: A line is not one of ours.
        OSError: It cannot be read.
    """
    return tuple(_entry(where, line) for where, line in lines(store.journal))


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each whole line of a file with its place, none where there is no file.

    Raises:
        OSError: It cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    whole = text[: text.rfind("\n") + 1]
    for number, line in enumerate(whole.split("\n")[:-1], 1):
        yield f"{path}:{number}", line


@contextlib.contextmanager
def noted(store: Store, change: Change, *, who: Who, now: datetime) -> Iterator[None]:
    """Write a line, then let the change happen; where that fails, the line is taken back.

    So no change is without its line; a line without its change is what a kill in between leaves.
    One change of a store happens at a time: keep it short.

    Args:
        store: The store.
        change: What happens.
        who: Who does it.
        now: The time, UTC.

    Raises:
        StoreError: Another process holds the journal for too long.
        OSError: The line cannot be written, or what the change raises.
    """
    record = {
        "when": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "who": who.user,
        "host": who.host,
        "what": change.what,
        "environment": change.environment,
        "from": change.origin,
        "to": change.to,
        "moves": change.moves,
    }
    purpose = " ".join(filter(None, (change.what, change.environment)))
    with (
        locks.exclusive(
            store.journal_lock, timeout_s=who.patience(), purpose=purpose, told=who.told
        ),
        interrupts.Piece(),
    ):
        before = _append(store.journal, json.dumps(record))
        try:
            yield
        except BaseException:
            os.truncate(store.journal, before)
            raise


def note(store: Store, change: Change, *, who: Who, now: datetime) -> None:
    """Write a line of a change that has happened; arguments and errors as those of `noted`."""
    with noted(store, change, who=who, now=now):
        pass


def entry_of(record: dict[str, object], where: str) -> Entry:
    """Return what a line's object says.

    Raises:
        StoreError: It is not one of ours.
    """
    try:
        when, user, host, what = (str(record[key]) for key in ("when", "who", "host", "what"))
        change = Change(
            what=what,
            environment=_text(record["environment"]),
            origin=_text(record["from"]),
            to=_text(record["to"]),
            moves=record["moves"] is True,
        )
    except KeyError as error:
        raise _damaged(where) from error
    return Entry(when=when, who=Who(user=user, host=host), change=change)


def _entry(where: str, line: str) -> Entry:
    return entry_of(loads(where, line), where)


def loads(where: str, line: str) -> dict[str, object]:
    """Return a line's object.

    Raises:
        StoreError: It is none.
    """
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _damaged(where) from error
    if not isinstance(record, dict):
        raise _damaged(where)
    return record


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _damaged(where: str) -> StoreError:
    return StoreError(f"{where}: not a line of a history", hint="remove that line")


def _append(path: Path, line: str) -> int:
    """Append one line and make it last; what a crash left of another one is cut off.

    Returns:
        The file's size before, bytes.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if not size:
            share(descriptor, path)
        start = max(0, size - _TAIL_BYTES)
        before = start + os.pread(descriptor, _TAIL_BYTES, start).rfind(b"\n") + 1
        if before != size:
            os.ftruncate(descriptor, before)
        data = f"{line}\n".encode()
        try:
            _write(descriptor, data)
        except OSError as error:
            os.ftruncate(descriptor, before)
            error.filename = f"{path}"
            raise
    finally:
        os.close(descriptor)
    return before


def _write(descriptor: int, data: bytes) -> None:
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)
