"""Moving an older store on to the newest format; `store.formats` lists them.

Nothing is lost at any moment: what is new is written first, then the format is named, then what
is no longer read goes. Killed in between, the same again comes to the end.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.store import formats, history, journal, present
from envbuild.store import manifest as manifests
from envbuild.store.journal import Change, Who
from envbuild.store.layout import STORE_FORMAT, Generation, Place, Store
from envbuild.store.order import loads
from envbuild.tools import files, locks


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """What moving a store on did, or would do.

    Attributes:
        origin: The format that it had.
        to: The format that it has then.
        steps: What was (to be) done, a line each; empty where there was nothing.
    """

    origin: int
    to: int
    steps: tuple[str, ...]


def migrate(store: Store, *, who: Who, now: datetime, dry_run: bool = False) -> Migration:
    """Move a store on to the newest format; again: nothing to do.

    Args:
        store: The store.
        who: Who asks for it.
        now: The time, UTC.
        dry_run: Only say what would be done.

    Raises:
        StoreError: There is none, it is newer, its history is damaged, or it cannot be changed.
    """
    formats.check(store)
    if not store.root.is_dir():
        message = f"there is no store in {store.root}"
        raise StoreError(message, hint="envbuild create quickstart")
    origin = formats.of(store)
    places = [store.place(name) for name in present.names(store)]
    try:
        orders = dict(_orders(store, places))
        told = [place for place in places if place.history.exists()]
        steps = [f"{place.name}: its history goes into the journal" for place in told]
        steps += [
            f"{generation.place.name}: generation {generation.identifier} keeps its order"
            for generation in orders
        ]
        if origin < STORE_FORMAT:
            steps.append(f"the store is of format {STORE_FORMAT}")
        if steps and not dry_run:
            for generation, text in orders.items():
                files.write_atomic(generation.order, text)
            _join(store, told, who)
            change = Change(what="migrate", environment=None)
            with journal.noted(store, change, who=who, now=now):
                formats.name(store)
            for place in told:
                place.history.unlink()
    except OSError as error:
        message = f"{error.filename or store.root}: {error.strerror}"
        raise StoreError(message) from error
    return Migration(origin=origin, to=STORE_FORMAT, steps=tuple(steps))


def _join(store: Store, places: list[Place], who: Who) -> None:
    """Put the histories of environments in front of the journal; what is there already stays."""
    with locks.exclusive(
        store.journal_lock, timeout_s=who.patience(), purpose="store migrate", told=who.told
    ):
        there = [line for _, line in journal.lines(store.journal)]
        known = set(there)
        older = [record for place in places for record in history.older_records(place)]
        older.sort(key=lambda record: str(record["when"]))
        lines = [json.dumps(record) for record in older]
        lines = [line for line in lines if line not in known]
        if lines:
            files.write_atomic(store.journal, "".join(f"{line}\n" for line in [*lines, *there]))


def _orders(store: Store, places: list[Place]) -> Iterator[tuple[Generation, str]]:
    """Yield generations that keep no order, with the one that the cache still has."""
    cached = dict(_cached(store.cache / "orders"))
    for place in places:
        for generation in present.generations(place):
            if generation.order.exists():
                continue
            try:
                digest = manifests.read(generation).environment_digest
            except StoreError:
                continue
            if digest in cached:
                yield generation, cached[digest]


def _cached(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.json")):
        try:
            text = path.read_text(encoding="utf-8")
            yield loads(text).environment_digest, text
        except (OSError, ValueError):
            continue
