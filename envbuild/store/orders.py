"""Orders that were found good before, kept in the store's cache by the digests of their files."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from envbuild import __version__
from envbuild.store.layout import GENERATION_FORMAT, Store
from envbuild.store.noop import digest_of
from envbuild.store.order import Order, dumps, loads
from envbuild.tools.files import make_folder, write_atomic


def recall(store: Store, recipe: Path, locks: Sequence[Path], platform: str) -> Order | None:
    """Return the order that was made of just these files, or None.

    Args:
        store: The store.
        recipe: The recipe's file, resolved; what it extends is compared as well.
        locks: The files of its lock that the platform reads.
        platform: conda subdir.
    """
    try:
        order = loads(_path(store, recipe, locks, platform).read_bytes())
    except (OSError, ValueError):
        return None
    same = all(digest_of(Path(path)) == digest for path, digest in order.inputs.recipe)
    return order if same else None


def keep(store: Store, recipe: Path, locks: Sequence[Path], order: Order) -> None:
    """Keep an order whose lock answers its recipe.

    A store that cannot be written is left alone: creation will say so.
    """
    path = _path(store, recipe, locks, order.platform)
    with contextlib.suppress(OSError):
        make_folder(path.parent)
        write_atomic(path, dumps(order))


def _path(store: Store, recipe: Path, locks: Sequence[Path], platform: str) -> Path:
    parts = [__version__, GENERATION_FORMAT, platform, f"{recipe}", digest_of(recipe)]
    parts += [[path.name, digest_of(path)] for path in locks]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return store.cache / "orders" / f"{key[:32]}.json"
