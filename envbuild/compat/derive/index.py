"""What the default index has of a release: its wheels, their METADATA, their libraries."""

import re
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envbuild.access import Access
from envbuild.compat.consistency import numbers
from envbuild.compat.derive.metadata import Metadata, parse
from envbuild.errors import FetchError
from envbuild.target import MACHINES, Platform
from envbuild.tools import index_files, remote_zip, uv
from envbuild.tools.http import Session
from envbuild.tools.index_files import IndexFile
from envbuild.tools.remote_zip import RemoteZip
from envbuild.tools.scratch import scratch
from envbuild.tools.wheel_metadata import MetadataReader

_PREFERRED = "3.11"
_MANYLINUX = re.compile(r"manylinux(?:_2_(?P<minor>[0-9]+)|(?P<year>1|2010|2014))_.*")
_LEGACY = {"1": "5", "2010": "12", "2014": "17"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel of a release.

    Attributes:
        file: What the index says of it.
        version: Its version.
        build: Its build tag, empty for none.
        pythons: Versions of CPython that it is for (`3.13t` is free-threaded); empty for any.
        platforms: Its platform tags.
    """

    file: IndexFile
    version: Version
    build: tuple[()] | tuple[int, str]
    pythons: frozenset[str]
    platforms: frozenset[str]

    @property
    def glibc(self) -> str | None:
        """The oldest glibc that its tags admit, None where none says (PEP 513, 571, 599, 600)."""
        named = [_MANYLINUX.fullmatch(one) for one in self.platforms]
        minors = [int(match["minor"] or _LEGACY[match["year"]]) for match in named if match]
        return f"2.{min(minors)}" if minors else None

    def fits(self, platform: Platform) -> bool:
        """Say whether it is for a platform."""
        machine = MACHINES[platform]
        return any(
            one == "any" or (one.startswith(("manylinux", "linux_")) and one.endswith(machine))
            for one in self.platforms
        )


class Index:
    """The default index, asked once for each thing; may be used from several threads."""

    def __init__(self, session: Session, address: str) -> None:
        """Keep how it is reached.

        Args:
            session: What fetches.
            address: The index's address, which may hold a login.
        """
        self._session = session
        self._address = address
        self._metadata = MetadataReader(session)
        self._guard = threading.Lock()
        self._known: dict[str, Mapping[Version, tuple[Wheel, ...]]] = {}
        self._read: dict[str, Metadata] = {}

    def versions(self, project: str) -> Mapping[Version, tuple[Wheel, ...]]:
        """Return a project's releases with their wheels, without those that were taken back.

        Raises:
            FetchError: The index cannot be reached, or has no such project.
        """
        with self._guard:
            if project not in self._known:
                files = index_files.listed(self._session, self._address, project)
                self._known[project] = _by_version(files)
            return self._known[project]

    def metadata(self, wheel: Wheel) -> Metadata:
        """Return what a wheel says of itself.

        Raises:
            FetchError: It cannot be had, or is no wheel.
        """
        file = wheel.file
        if file.url not in self._read:
            text = self._metadata.read(file.url, size=file.size, name=file.filename)
            self._read[file.url] = parse(text)
        return self._read[file.url]

    def opened(self, wheel: Wheel) -> AbstractContextManager[RemoteZip]:
        """Open a wheel, of which only what is asked for is fetched.

        Raises:
            FetchError: It cannot be had, or is no wheel.
        """
        file = wheel.file
        return remote_zip.opened(self._session, file.url, file.size, file.filename)


def default(access: Access) -> Index:
    """Return the index that the user's settings name, else the one that uv asks.

    Raises:
        FetchError: We are offline.
        ToolError: uv is missing or fails.
    """
    if access.offline:
        message = "what an index has is read anew each time, which cannot be done offline"
        raise FetchError(message, hint="run it without ENVBUILD_OFFLINE")
    address = access.default_index
    if address is None:
        with scratch() as (folder, _):
            engine = uv.Engine(access=access, cache=folder / "uv", python=Path(sys.executable))
            address = uv.default_index(engine)
    return Index(Session(access), address)


def _by_version(files: Iterable[IndexFile]) -> dict[Version, tuple[Wheel, ...]]:
    found: dict[Version, list[Wheel]] = {}
    for file in files:
        try:
            _, version, build, tags = parse_wheel_filename(file.filename)
        except InvalidWheelFilename:
            continue
        if not file.yanked:
            pythons = {python for tag in tags if (python := _python(tag.interpreter, tag.abi))}
            wheel = Wheel(
                file=file,
                version=version,
                build=build,
                pythons=frozenset(pythons),
                platforms=frozenset(tag.platform for tag in tags),
            )
            found.setdefault(version, []).append(wheel)
    return {version: tuple(wheels) for version, wheels in found.items()}


def _python(interpreter: str, abi: str) -> str | None:
    """Return the CPython that a tag is for (`3.13t`), None for a tag of several."""
    digits = interpreter.removeprefix("cp")
    if not interpreter.startswith("cp") or not digits.isdigit() or abi in ("none", "abi3"):
        return None
    return f"{digits[0]}.{digits[1:]}" + ("t" if abi.endswith("t") else "")


def pythons(wheels: Iterable[Wheel]) -> tuple[str, ...]:
    """Return the Pythons that wheels are for, oldest first."""
    found = {python for wheel in wheels for python in wheel.pythons}
    return tuple(sorted(found, key=_order))


def _order(python: str) -> tuple[tuple[int, ...], bool]:
    return numbers(python.removesuffix("t")), python.endswith("t")


def chosen(wheels: Iterable[Wheel], filename: str | None = None) -> Wheel | None:
    """Return the wheel of a name, else the one to read for its release, None where there is none.

    That is the one for Python 3.11, else for the oldest one that is not free-threaded; of several
    builds the last.

    Args:
        wheels: Wheels of one release and platform.
        filename: The name, or None.
    """
    able = list(wheels)
    if filename is not None:
        return next((wheel for wheel in able if wheel.file.filename == filename), None)
    able.sort(key=lambda wheel: wheel.build or (0, ""), reverse=True)
    return min(able, key=_preference, default=None)


def _preference(wheel: Wheel) -> tuple[bool, bool, tuple[int, ...]]:
    oldest, threaded = min((_order(python) for python in wheel.pythons), default=((), False))
    return _PREFERRED not in wheel.pythons, threaded, oldest
