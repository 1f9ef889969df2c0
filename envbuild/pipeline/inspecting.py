"""Fetching what is to be inspected: the wheel of a requirement, the packages of a lock."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envbuild.access import Access
from envbuild.compat.derive import index as indexes
from envbuild.errors import FetchError, InputError, NoSolution
from envbuild.lock.model import PlatformLock
from envbuild.native.inspect import inspect
from envbuild.native.model import NativeFacts
from envbuild.native.tree import Unreadable
from envbuild.packages import WHEELHOUSE, PipPackage
from envbuild.progress import Progress
from envbuild.rebuild.house import House
from envbuild.solve.wheels import platform_tags
from envbuild.target import Platform
from envbuild.tools import index_files
from envbuild.tools.http import Session
from envbuild.tools.http_errors import StatusError
from envbuild.tools.index_files import IndexFile
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Source

_NEWEST_GLIBC = "2.99"


@dataclass(frozen=True, kw_only=True, slots=True)
class For:
    """Whose wheels are meant.

    Attributes:
        platform: conda subdir.
        python: Major and minor version of CPython.
    """

    platform: Platform
    python: tuple[int, int]


def read(path: Path) -> NativeFacts:
    """Return what the binaries of a file or folder say.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return inspect(path)
    except Unreadable as error:
        raise InputError(str(error), source=f"{path}") from error


def requirement(text: str, meant: For, *, access: Access, progress: Progress) -> NativeFacts:
    """Fetch the wheel that a requirement means, with its hash, and read it.

    It is the one that an installer would choose for that Python and platform on the newest glibc.

    Args:
        text: Such as `torch==2.4.0`.
        meant: Whose wheel.
        access: How the user's index is reached.
        progress: Is told what arrives.

    Raises:
        InputError: The text is no requirement.
        NoSolution: The index has no such wheel.
        FetchError: It cannot be had, or has another hash.
    """
    try:
        wanted = Requirement(text)
    except InvalidRequirement as error:
        message = f"{text!r} is no requirement such as torch==2.4.0"
        raise InputError(message, source=text) from error
    name = canonicalize_name(wanted.name)
    try:
        found = indexes.default(access).versions(name)
    except StatusError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        message = f"the index has no package {name}"
        raise NoSolution(message, hint="see whether the name is right") from error
    fitting = sorted(wanted.specifier.filter(found), reverse=True)
    for version in fitting:
        wheel = _best((one.file for one in found[version]), meant)
        if wheel is not None:
            return _fetched(wheel, Session(access), progress)
    there = [one.file.filename for one in found[fitting[0]]] if fitting else []
    details = "\n".join(there or map(str, sorted(found)[-20:]))
    what = f"the index has no wheel of {text}"
    raise _no_wheel(what, meant, details)


def _no_wheel(what: str, meant: For, details: str = "") -> NoSolution:
    python = ".".join(map(str, meant.python))
    return NoSolution(
        f"{what} for Python {python} on {meant.platform}",
        hint="name another version, --python or --platform",
        details=details,
    )


def _best(files: Iterable[IndexFile], meant: For) -> IndexFile | None:
    """Return the file whose tag an installer likes most, of equal ones the last build."""
    platforms = platform_tags(meant.platform, _NEWEST_GLIBC)
    own = cpython_tags(meant.python, platforms=platforms)
    pure = compatible_tags(meant.python, f"cp{meant.python[0]}{meant.python[1]}", platforms)
    ranks = {tag: rank for rank, tag in enumerate((*own, *pure))}
    rated: list[tuple[int, tuple[int, str], IndexFile]] = []
    for file in files:
        tags, build = _tags(file.filename)
        best = min((ranks[tag] for tag in tags if tag in ranks), default=None)
        if best is not None:
            rated.append((-best, build, file))
    return max(rated, key=lambda row: row[:2])[2] if rated else None


def _tags(filename: str) -> tuple[frozenset[Tag], tuple[int, str]]:
    try:
        _, _, build, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return frozenset(), (0, "")
    return tags, build or (0, "")


def _fetched(file: IndexFile, session: Session, progress: Progress) -> NativeFacts:
    """Fetch a file into a folder of its own, check its hash, and read it."""
    if file.sha256 is None:
        message = f"the index gives no sha256 for {file.filename}"
        raise FetchError(message, hint="fetch it yourself and name the file")
    with scratch() as (folder, _):
        path = folder / Path(file.filename).name
        session.download(file.url, path, sha256=file.sha256, size=file.size, progress=progress)
        return read(path)


def locked(
    half: PlatformLock,
    meant: For,
    sources: Sequence[Source],
    *,
    cache: Path,
    access: Access,
    progress: Progress,
) -> Iterator[NativeFacts]:
    """Fetch every package of a lock, by hash, and yield what its binaries say.

    Conda packages come into the package cache, as `create` has them; wheels are read one at a time
    and not kept.

    Args:
        half: The lock's packages of one platform, markers applied.
        meant: Whose wheels, where a package has several.
        sources: The recipe's indexes.
        cache: Folder of the package cache.
        access: How channels and indexes are reached.
        progress: Is told what arrives.

    Raises:
        FetchError: Something cannot be had, or has another hash.
        NoSolution: A package has no wheel for that Python.
    """
    if half.conda:
        from envbuild.tools import conda_archives

        fetched = conda_archives.fetch(
            half.conda,
            cache=cache,
            access=access,
            progress=progress,
            first_digest=lambda _package, _sha256: None,
        )
        for one in fetched:
            yield replace(read(one.folder), name=one.package.filename)
    session = Session(access)
    default = indexes.default(access) if any(one.index is None for one in half.pip) else None
    addresses = {source.name: source.url for source in sources if source.name is not None}
    for package in half.pip:
        if package.index == WHEELHOUSE:
            yield read(_rebuilt(package, addresses[WHEELHOUSE] or ""))
            continue
        files: Iterable[IndexFile]
        if package.index is None and default is not None:
            versions = default.versions(package.name)
            files = (one.file for one in versions.get(Version(package.version), ()))
        else:
            address = addresses.get(package.index or "") or ""
            files = index_files.listed(session, address, package.name)
        there = [one for one in files if one.sha256 in package.hashes]
        if not there:
            message = f"the index lacks the wheel of {package.name} {package.version} of the lock"
            raise FetchError(message, hint="see whether that mirror is complete, or lock again")
        wheel = _best(there, meant)
        if wheel is None:
            what = f"the lock has no wheel of {package.name} {package.version}"
            raise _no_wheel(what, meant)
        yield _fetched(wheel, session, progress)


def _rebuilt(package: PipPackage, address: str) -> Path:
    """Return the file of a rebuilt wheel in a wheelhouse that is a folder.

    Raises:
        FetchError: It is not there.
    """
    parts = urlsplit(address)
    folder = Path(unquote(parts.path))
    if parts.scheme == "file":
        for kept in House(folder).wheels(package.name):
            if kept.sha256 in package.hashes:
                return kept.path
    message = f"{package.name} {package.version} was rebuilt, and {address} does not have it here"
    raise FetchError(message, hint="envbuild wheel list")
