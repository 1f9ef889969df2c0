"""What disks do: they fill up, quotas end, and between two of them there are no hard links."""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.errors import StoreError
from envbuild.findings import Finding, Severity
from envbuild.store.layout import Store
from envbuild.tools.conda_tree import files_of
from envbuild.tools.files import NO_ROOM, make_folder, remove_tree
from envbuild.tools.trying import can_clone, can_link, may_execute, one_file, tells_case

if TYPE_CHECKING:
    from envbuild.tools.conda_archives import Fetched

_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|database or disk is full"
    rf"|os error (?:{errno.ENOSPC}|{errno.EDQUOT})\b"
)
_QUOTA = re.compile(rf"Disk quota exceeded|os error {errno.EDQUOT}\b")
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_MEBIBYTE = 20


def full(store: Store, error: BaseException) -> StoreError | None:
    """Return what to tell where a disk was full or a quota used up, None for another error.

    Args:
        store: The store.
        error: What failed: ours, or an engine's with its own text.
    """
    text = f"{error} {getattr(error, 'details', '')}"
    number = error.errno if isinstance(error, OSError) else None
    if number not in NO_ROOM and not _FULL.search(text):
        return None
    if number == errno.EDQUOT or _QUOTA.search(text):
        message = f"the disk quota for {store.root} is used up"
    else:
        left = ", ".join(
            f"{folder} has {free >> _MEBIBYTE} MiB free now" for folder, free in _free(store)
        )
        message = f"no space left: {left}"
    return StoreError(message, hint="free some: envbuild gc, or use another --store")


def _free(store: Store) -> Iterator[tuple[Path, int]]:
    """Yield the store and its cache, if that is on another disk, with their free bytes."""
    seen: set[int] = set()
    for folder in (store.root, store.cache):
        try:
            device = folder.stat().st_dev
            if device not in seen:
                yield folder, shutil.disk_usage(folder).free
            seen.add(device)
        except OSError:
            continue


def copied(store: Store, prefix: Path, *, size: int) -> tuple[Finding, ...]:
    """Return a note where files of the cache cannot be hard-linked into a prefix, found by trying.

    Args:
        store: The store.
        prefix: A prefix in it, on whose disk the files lie.
        size: Bytes that were installed.
    """
    probe = prefix / f".link-{secrets.token_hex(4)}"
    sample = _some_file(store.cache)
    if sample is None:
        return ()
    try:
        os.link(sample, probe, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            return ()
    else:
        probe.unlink()
        return ()
    return (
        Finding(
            code="files-copied",
            severity=Severity.NOTE,
            where=f"{prefix}",
            what=f"files were copied from {store.cache}, not linked: {size >> _MEBIBYTE} MiB more",
            why="there are no hard links between them",
            hint="put the cache on the store's disk: unset ENVBUILD_CACHE",
        ),
    )


def refuse(store: Store, folder: Path, fetched: "Sequence[Fetched]") -> None:
    """Refuse, before anything is linked, what the store's disk cannot hold; found by trying.

    Args:
        store: The store.
        folder: A folder in the prefix that they are to be linked into.
        fetched: conda's packages, extracted.

    Raises:
        StoreError: Programs cannot be run from there; it has no room for copies; or two files
            differ in case alone where that is no difference.
    """
    if not may_execute(folder):
        message = f"programs cannot be run from {store.root}: its disk is mounted noexec"
        raise StoreError(message, hint="mount it without noexec, or use another --store")
    _refuse_full(store, folder, fetched)
    refuse_alike(folder, _claims(fetched))


def _refuse_full(store: Store, folder: Path, fetched: "Sequence[Fetched]") -> None:
    """Refuse what cannot fit where files are copied: no file system packs tighter than archives.

    Links need no room, so they are tried before anything is refused.
    """
    needed = sum(one.digests.size for one in fetched)
    found = os.statvfs(folder)
    free = found.f_frsize * (found.f_bfree if os.geteuid() == 0 else found.f_bavail)
    sample = _some_file(store.cache)
    if needed <= free or sample is None:
        return
    probe = folder / f".copy-{secrets.token_hex(4)}"
    try:
        if can_link(Path(sample), probe) or can_clone(Path(sample), probe):
            return
    finally:
        probe.unlink(missing_ok=True)
    message = (
        f"{store.root} needs at least {needed >> _MEBIBYTE} MiB for files that are copied from "
        f"{store.cache}, {free >> _MEBIBYTE} MiB are free there"
    )
    hint = "free some: envbuild gc, or put the cache on the store's disk, where files are linked"
    raise StoreError(message, hint=hint)


def _claims(fetched: "Sequence[Fetched]") -> Iterator[tuple[str, str]]:
    from envbuild.tools import conda_before

    packages = [one.package for one in fetched]
    folders = {one.package.url: one.folder for one in fetched}
    files = {one.package.url: files_of(one.package.filename, one.folder) for one in fetched}
    for package, path in conda_before.placed(packages, files, folders):
        yield path, package.filename


def refuse_alike(folder: Path, claims: Iterable[tuple[str, str]]) -> None:
    """Refuse paths that differ in case alone where that is no difference.

    Args:
        folder: A folder in the prefix.
        claims: Each path, relative to the prefix, and whose it is.

    Raises:
        StoreError: There are two of them.
    """
    if tells_case(folder):
        return
    seen: dict[str, tuple[str, str]] = {}
    for path, name in claims:
        first, other = seen.setdefault(path.lower(), (path, name))
        if first != path:
            owners = name if other == name else f"{other} and {name}"
            raise one_file(first, path, owners, folder)


def can_write(folder: Path) -> bool:
    """Say whether a folder can be written, or is still to be made."""
    return not folder.exists() or os.access(folder, os.W_OK)


def linked_cache(store: Store) -> Path:
    """Return a folder that stands for uv's cache where that is read-only: links to what is there.

    uv writes a lock and what it learns of an interpreter into its cache even where it only reads.

    Args:
        store: The store; the folder is made anew in it.
    """
    folder = store.root / ".read-only-cache" / "uv"
    remove_tree(folder)
    make_folder(folder)
    for member in store.uv_cache.iterdir():
        if not member.name.startswith(("interpreter-", ".")):
            (folder / member.name).symlink_to(member.absolute())
    return folder


def _some_file(folder: Path) -> str | None:
    for below, _, names in os.walk(folder / "pkgs"):
        if names:
            return f"{below}/{names[0]}"
    return None
