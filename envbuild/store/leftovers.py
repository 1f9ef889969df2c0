"""Removing what killed commands left in a store: the next one that changes it does so."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.store import present, uses
from envbuild.store.layout import Generation, Place, Store
from envbuild.tools import abandoned, files, locks, scratch

_LOCK = "lock"


@contextlib.contextmanager
def hidden(generations: Sequence[Generation]) -> Iterator[None]:
    """Hide manifests, so that no `run` takes one of these generations; then show those left.

    Where this is killed, the next command shows them (`clear_temporary`).

    Raises:
        OSError: They cannot be changed.
    """
    try:
        for generation in generations:
            generation.manifest.rename(generation.going)
        yield
    finally:
        for generation in generations:
            _show(generation)


def _show(generation: Generation) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        generation.going.rename(generation.manifest)


def clear(place: Place) -> None:
    """Remove half-built generations and temporary files; the environment's lock must be held.

    What a process uses stays, and what another user of a shared store made.

    Raises:
        OSError: Something cannot be removed.
    """
    clear_temporary(place)
    parts = present.incomplete(place)
    used = uses.uses(parts) if parts else {}
    for part in parts:
        if not used[part]:
            with contextlib.suppress(PermissionError):
                files.remove_tree(part.prefix)
                (place.logs / f"{part.identifier}.log").unlink(missing_ok=True)


def clear_temporary(place: Place) -> None:
    """Remove what was to replace a file or link; the environment's lock must be held.

    A generation that was about to be removed, and is whole, is shown again.

    Raises:
        OSError: Something cannot be removed.
    """
    for part in present.incomplete(place):
        _show(part)
    for folder in (place.root, *(one.own for one in present.generations(place))):
        for path in list(folder.iterdir()):
            if files.temporary_of(path.name) is not None:
                with contextlib.suppress(PermissionError):
                    path.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        for path in list(place.by_name.parent.iterdir()):
            if files.temporary_of(path.name) == place.by_name.name:
                with contextlib.suppress(PermissionError):
                    path.unlink(missing_ok=True)


def clear_caches(store: Store) -> None:
    """Remove what was being made by processes that are gone, as far as we may."""
    scratch.sweep()
    files.remove_abandoned(store.root)
    scratch.sweep(store.root)
    scratch.sweep(store.cache)
    abandoned.sweep_packages(store.package_cache)
    abandoned.sweep_wheels(store.uv_cache)
    for parent in (store.cache / "host", store.metadata_cache):
        for folder in _below(parent):
            files.remove_abandoned(folder)
            scratch.sweep(folder)
    files.remove_abandoned(store.cache / "orders")
    for root in _below(store.environments):
        clear_emptied(root)


def _below(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def clear_emptied(root: Path) -> None:
    """Remove the folder of what is no environment any more, or not yet, where nobody is there."""
    with contextlib.suppress(OSError, StoreError):
        if [path.name for path in root.iterdir()] in ([], [_LOCK]):
            with locks.exclusive(root / _LOCK, timeout_s=0, purpose=f"removing {root.name}"):
                _remove_emptied(root)


def forget(place: Place) -> None:
    """Let an environment without generations be none; logs of failed builds stay."""
    if present.incomplete(place) or present.generations(place) or place.current.is_symlink():
        return
    with contextlib.suppress(OSError):  # something that is not ours lies there
        place.generations.rmdir()
        with contextlib.suppress(OSError):  # not empty
            place.logs.rmdir()
        _remove_emptied(place.root)


def _remove_emptied(root: Path) -> None:
    """Remove an environment's folder where it holds the lock alone, which must be held."""
    if [path.name for path in root.iterdir()] == [_LOCK]:
        (root / _LOCK).unlink()
        root.rmdir()
