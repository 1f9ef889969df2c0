"""A store that a group shares: whose a generation is, and letting a group in.

The store's own folders are set-group-ID and group-writable (2775), its locks, journal and ledger
too (0664), as git's `core.sharedRepository=group` has it (git-config(1)). A generation belongs to
who made it: others of the group run it, make it current and roll back to it, but cannot change a
file of it, so only its maker or root removes it. Each user has caches of his own, since a file of
another user is not hard-linked (fs.protected_hardlinks, proc(5)).
"""

import grp
import os
import pwd
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from envbuild.errors import HostError, StoreError, UsageProblem
from envbuild.store.journal import Change, Who, note
from envbuild.store.layout import Generation, Store
from envbuild.tools import files


def foreign(generation: Generation) -> str:
    """Return who may remove a generation where this user may not, else empty."""
    try:
        owner = generation.prefix.stat().st_uid
    except FileNotFoundError:
        return ""
    if os.geteuid() in {0, owner}:
        return ""
    return f"made by {_user(owner)}, who may remove it"


def refuse(generations: Iterable[Generation]) -> None:
    """Refuse where one of these generations is another user's.

    Raises:
        StoreError: One is.
    """
    for generation in generations:
        if whose := foreign(generation):
            message = f"generation {generation.identifier} of {generation.place.name} is {whose}"
            raise StoreError(message, hint="ask for it, or use sudo")


def share(store: Store, group: str, *, who: Who, now: datetime) -> int:
    """Let a group use a store together, which is made where it is missing; return the group's ID.

    Args:
        store: The store.
        group: Name or number of the group.
        who: Who asks for it.
        now: The time, UTC.

    Raises:
        UsageProblem: There is no such group.
        HostError: This user is not in the group, or the store is another user's.
    """
    number = _group(group)
    files.make_folder(store.root)
    owner = store.root.stat().st_uid
    try:
        _move_caches(store, owner)
        for path in _own(store):
            os.chown(path, -1, number, follow_symlinks=False)
            path.chmod(0o2775 if path.is_dir() else files.GROUP_FILE)
    except PermissionError as error:
        message = f"{error.filename}: cannot be given to the group {group}: {error.strerror}"
        raise HostError(
            message, hint="the store's owner may do it, for a group of his own; or use sudo"
        ) from error
    note(store, Change(what="share", environment=None, to=group), who=who, now=now)
    return number


def _group(text: str) -> int:
    try:
        return int(text) if text.isdigit() else grp.getgrnam(text).gr_gid
    except KeyError:
        message = f"there is no group {text!r}"
        raise UsageProblem(message, hint="`getent group` names them") from None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _move_caches(store: Store, owner: int) -> None:
    """Put the caches that are there where their owner looks for them from now on."""
    cache = store.root / "cache"
    there = [path for path in cache.iterdir() if not path.name.isdigit()] if cache.is_dir() else []
    for path in there:
        files.make_folder(cache / str(owner))
        path.rename(cache / str(owner) / path.name)


def _own(store: Store) -> Iterator[Path]:
    """Yield the store's own folders and files, outer ones first; generations and caches are not."""
    yield store.root
    yield from (path for path in sorted(store.root.iterdir()) if path.is_file())
    for folder in (store.root / "cache", store.by_name, store.environments):
        if folder.is_dir():
            yield folder
    if store.channels.is_dir():
        yield store.channels
        yield from sorted(store.channels.rglob("*"))
    if store.environments.is_dir():
        for place in sorted(store.environments.iterdir()):
            yield place
            yield from (path for path in sorted(place.iterdir()) if not path.is_symlink())
