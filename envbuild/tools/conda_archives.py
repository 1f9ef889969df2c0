"""conda archives: fetched in parallel, checked, extracted once, found again.

::

    CACHE/STEM-KEY/            an extracted package; KEY: the first half of its SHA-256, or its md5
    CACHE/STEM-KEY.json        written last: where it came from, and what its files looked like
    CACHE/.STEM-KEY.part/      what is being fetched or extracted; rubbish if nobody does
    CACHE/.locks/STEM-KEY      held meanwhile

The folders are linked into prefixes, so an entry is never changed: it is replaced as a whole
where its files are no longer as they were.
"""

import concurrent.futures
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from envbuild.access import Access
from envbuild.errors import EnvbuildError, FetchError
from envbuild.packages import CondaPackage
from envbuild.progress import Progress
from envbuild.tools import addresses, digests, rattler
from envbuild.tools.conda_extract import extract
from envbuild.tools.conda_tree import check_tree, entry_name
from envbuild.tools.digests import Digests
from envbuild.tools.files import NO_ROOM, make_folder, no_room, remove_tree
from envbuild.tools.locks import exclusive

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_THREADS = 6
_FORMAT = 1
PATIENCE_S = 3600.0

FirstDigest = Callable[[CondaPackage, str], None]
"""Told the SHA-256 of an archive whose record has only an md5; raises if it was another before.

It is called from several threads.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """A package that lies extracted in the cache.

    Attributes:
        package: Its record.
        folder: Where it lies.
        digests: Of its archive, as computed when it was fetched.
        fresh: Whether it was fetched now.
    """

    package: CondaPackage
    folder: Path
    digests: Digests
    fresh: bool


def fetch(
    packages: Sequence[CondaPackage],
    *,
    cache: Path,
    access: Access,
    progress: Progress,
    first_digest: FirstDigest,
    session: "Session | None" = None,
    patience_s: float = PATIENCE_S,
) -> tuple[Fetched, ...]:
    """Make sure that every package lies extracted in the cache, and return them in order.

    Every archive is hashed once, as it arrives, and extracted only if hash and size are right.
    After a failure no further archive is begun.

    Args:
        packages: Records; their addresses may be http(s), `file://` or a path.
        cache: Folder of the package cache.
        access: How channels are reached; mirrors are asked instead of the canonical address.
        progress: Is told what arrives.
        first_digest: See `FirstDigest`.
        session: What fetches; by default one made from `access`.
        patience_s: How long to wait for another process that fetches the same package.

    Raises:
        FetchError: An archive cannot be had, has another hash, or cannot be installed.
        StoreError: There is no room, or another process fetches for too long.
    """
    make_folder(cache)
    stoppable = _Stoppable(progress)
    fetcher = _Fetcher(
        cache=cache,
        network=_Network(packages, access, session),
        progress=stoppable,
        first_digest=first_digest,
        patience_s=patience_s,
    )
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        # the largest first: their extraction is then not what everything waits for
        order = sorted(set(packages), key=lambda package: (-(package.size or 0), package.url))
        jobs = {package: pool.submit(fetcher.fetch, package) for package in order}
        try:
            concurrent.futures.wait(jobs.values(), return_when=concurrent.futures.FIRST_EXCEPTION)
        finally:
            stoppable.stop()
            pool.shutdown(cancel_futures=True)
    failures = [
        error
        for job in jobs.values()
        if not job.cancelled() and (error := job.exception()) and not isinstance(error, _Stopped)
    ]
    if failures:
        raise _all_at_once(failures)
    return tuple(jobs[package].result() for package in packages)


def _all_at_once(failures: Sequence[BaseException]) -> BaseException:
    """Return the first failure; what else failed stands in its details."""
    first = failures[0]
    if isinstance(first, EnvbuildError) and len(failures) > 1:
        first.details = "\n".join([first.details, *(str(other) for other in failures[1:])]).strip()
    return first


class _Stopped(Exception):
    """Another package failed, or the user interrupted: this one is given up."""


class _Stoppable:
    """Passes progress on, and ends the downloads once it has been stopped."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def step(self, text: str) -> None:
        self._progress.step(text)

    def amount(self, what: str, done: int, total: int | None) -> None:
        if self._stopped.is_set():
            raise _Stopped
        self._progress.amount(what, done, total)


def _canonical_mirrors(
    packages: Sequence[CondaPackage], places: addresses.Mirrors, access: Access
) -> dict[str, tuple[str, ...]]:
    """Return canonical channel address to mirrors; only the engine knows plain names' addresses."""
    if access.offline:
        return {}
    names = [name for name in places.places if "://" not in name]
    if not names or all("://" not in package.url for package in packages):
        return dict(places.places)
    known = rattler.canonical(names, access=access)
    return {known.get(name, name): urls for name, urls in places.places.items()}


class _Network:
    """Session and mirrors, made when the first archive has to be fetched: mostly none has."""

    def __init__(
        self, packages: Sequence[CondaPackage], access: Access, session: "Session | None"
    ) -> None:
        self._packages = packages
        self._access = access
        self._session = session
        self._mirrors: dict[str, tuple[str, ...]] | None = None
        self._guard = threading.Lock()

    def reach(self) -> "tuple[Session, dict[str, tuple[str, ...]]]":
        """Return the session, and mirrors by canonical channel address."""
        from envbuild.tools.http import Session

        with self._guard:
            if self._session is None:
                self._session = Session(self._access)
            if self._mirrors is None:
                places = addresses.mirrors(self._access)
                self._mirrors = _canonical_mirrors(self._packages, places, self._access)
            return self._session, self._mirrors


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fetcher:
    """What the threads of one `fetch` share."""

    cache: Path
    network: _Network
    progress: Progress
    first_digest: FirstDigest
    patience_s: float

    def fetch(self, package: CondaPackage) -> Fetched:
        """Find one package in the cache, or fetch, check and extract it."""
        name = entry_name(package)
        folder = self.cache / name
        known = read_entry(folder)
        if known is None:
            with exclusive(
                self.cache / ".locks" / name,
                timeout_s=self.patience_s,
                purpose=f"fetching {name}",
                told=self.progress.step,
            ):
                known = read_entry(folder)  # another process may have been faster
                if known is None:
                    found = self._make_entry(package, folder)
                    return Fetched(package=package, folder=folder, digests=found, fresh=True)
        if package.sha256 is None:
            self.first_digest(package, known.sha256)
        return Fetched(package=package, folder=folder, digests=known, fresh=False)

    def _make_entry(self, package: CondaPackage, folder: Path) -> Digests:
        part = folder.with_name(f".{folder.name}.part")
        remove_tree(part)  # of a process that was killed
        part.mkdir(mode=0o755)
        try:
            archive, found = self._archive(package, part)
            if package.sha256 is None:
                self.first_digest(package, found.sha256)
            extract(archive, part / "package")
            check_tree(package.filename, part / "package")
            _keep(part / "package", folder, found)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room(self.cache, package.filename, error) from error
        finally:
            remove_tree(part)
        return found

    def _archive(self, package: CondaPackage, part: Path) -> tuple[Path, Digests]:
        """Return a local archive whose hash is right."""
        md5 = package.md5 if package.sha256 is None else None
        size = package.size if package.sha256 is None else None
        local = local_path(package.url)
        if local is not None:
            try:
                found = digests.of_file(local, md5=md5 is not None)
            except OSError as error:
                message = f"{local}: {error.strerror or type(error).__name__}"
                raise FetchError(message, hint="the archive of a local package is gone") from error
            digests.check(found, str(local), sha256=package.sha256, md5=md5, size=size)
            return local, found
        to = part / package.filename
        session, mirrors = self.network.reach()

        def download(url: str) -> Digests:
            return session.download(
                url,
                to,
                sha256=package.sha256,
                md5=md5,
                size=size,
                progress=self.progress,
                what=package.filename,
            )

        return to, self._from_first_good(_addresses(package.url, mirrors), download)

    def _from_first_good(
        self, places: Sequence[str], download: Callable[[str], Digests]
    ) -> Digests:
        """Download from the first place that has the right bytes; say what was wrong with others.

        Raises:
            FetchError: None has; that of the first, the others in its details.
        """
        failures: list[FetchError] = []
        for number, place in enumerate(places, 1):
            try:
                return download(place)
            except FetchError as error:
                failures.append(error)
                if number < len(places):
                    self.progress.step(f"{error.message}; trying the next mirror")
        raise _all_at_once(failures)


def _addresses(url: str, mirrors: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return where to ask for an archive: its channel's mirrors, else its own address."""
    fitting = [channel for channel in mirrors if url.startswith(channel + "/")]
    if not fitting:
        return (url,)
    channel = max(fitting, key=len)
    return tuple(addresses.join(mirror, url.removeprefix(channel)) for mirror in mirrors[channel])


def _keep(extracted: Path, folder: Path, found: Digests) -> None:
    """Move an extracted package to its place, in one step; the marker comes last."""
    entry = {
        "format": _FORMAT,
        "sha256": found.sha256,
        "md5": found.md5,
        "size": found.size,
        "seal": _seal(extracted),
    }
    marker = _marker(folder)
    marker.unlink(missing_ok=True)
    if folder.exists():
        folder.rename(extracted.parent / "damaged")
    extracted.rename(folder)
    # No fsync, here and above: after a power cut, sizes tell a file that did not reach the disk.
    new = extracted.with_name(marker.name)
    new.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    new.chmod(0o644)
    new.rename(marker)


def evict(package: CondaPackage, *, cache: Path, patience_s: float = PATIENCE_S) -> None:
    """Take a package out of the cache: what is linked stays, the next fetch fetches it anew."""
    folder = cache / entry_name(package)
    with exclusive(
        cache / ".locks" / folder.name, timeout_s=patience_s, purpose=f"evicting {folder.name}"
    ):
        _marker(folder).unlink(missing_ok=True)
        if folder.exists():
            remove_tree(folder)


def local_path(url: str) -> Path | None:
    """Return the path that a `file://` address or a plain path means, None for http(s)."""
    parts = urlsplit(url)
    if parts.scheme in {"http", "https"}:
        return None
    return Path(unquote(parts.path)) if parts.scheme == "file" else Path(url)


def read_entry(folder: Path) -> Digests | None:
    """Return the digests of a cached package's archive, or None if it is not there as it was.

    Every file's path, mode, size and modification time is compared with what was extracted.
    """
    try:
        entry = json.loads(_marker(folder).read_bytes())
        known = Digests(sha256=entry["sha256"], md5=entry["md5"], size=entry["size"])
        good = entry["format"] == _FORMAT and entry["seal"] == _seal(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return known if good else None


def _marker(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _seal(folder: Path) -> str:
    """Return a digest of what a folder's files look like from outside."""
    rows: list[str] = []
    pending = [(os.fspath(folder), "")]
    while pending:
        place, below = pending.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                look = entry.stat(follow_symlinks=False)
                path = f"{below}{entry.name}"
                if entry.is_symlink():
                    rows.append(f"{path}\0->{Path(entry.path).readlink()}")
                elif entry.is_dir():
                    rows.append(f"{path}\0{look.st_mode:o}")
                    pending.append((entry.path, f"{path}/"))
                else:
                    rows.append(f"{path}\0{look.st_mode:o}\0{look.st_size}\0{look.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(sorted(rows)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
