"""The format of a store: which envbuild may use it. Imported on hot paths.

====== =========================================================================================
format what a store of it holds
====== =========================================================================================
1      `history.jsonl` in each environment; nothing names the format
2      one journal for the whole store; generations keep their order; `format.json`
====== =========================================================================================

An older store is used as it is: what differs is read in both places (`store.migrate` moves it
on). A newer one is refused.
"""

import json

from envbuild.errors import StoreError
from envbuild.store import present
from envbuild.store.layout import STORE_FORMAT, Store

_FIRST = 1


def of(store: Store) -> int:
    """Return the format of a store; one that names none is of the first.

    Raises:
        StoreError: What it names is no format.
    """
    try:
        found = json.loads(store.format.read_bytes())["format"]
    except (FileNotFoundError, NotADirectoryError):
        return _FIRST
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{store.format} does not name a store's format: {error}"
        raise StoreError(message) from error
    if type(found) is int and found >= _FIRST:
        return found
    message = f"{store.format} names {found!r}, which is no store's format"
    raise StoreError(message)


def check(store: Store) -> None:
    """Refuse a store that only a later envbuild knows.

    Raises:
        StoreError: It is newer, or names no format.
    """
    found = of(store)
    if found > STORE_FORMAT:
        message = f"{store.root}: store format {found} is newer than this envbuild ({STORE_FORMAT})"
        raise StoreError(message, hint="upgrade envbuild, or use another --store")


def begin(store: Store) -> None:
    """Name the format of a store that has no environment yet.

    Raises:
        OSError: It cannot be written.
    """
    if not store.format.exists() and not present.names(store):
        name(store)


def name(store: Store) -> None:
    """Write down that a store is of the newest format.

    Raises:
        OSError: It cannot be written.
    """
    from envbuild.tools.files import make_folder, write_atomic

    make_folder(store.root)
    write_atomic(store.format, json.dumps({"format": STORE_FORMAT}) + "\n")
