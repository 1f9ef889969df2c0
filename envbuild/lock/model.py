"""`Lock`: exactly what is installed, per platform, with digests."""

from dataclasses import dataclass, field
from datetime import datetime

from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import Platform

CONDA_FILE = "conda-lock.yml"
REQUIREMENTS_FILE = "requirements.{}.txt"


def requirements_file(platform: Platform) -> str:
    """Return the name of the file that holds the PyPI half of one platform."""
    return REQUIREMENTS_FILE.format(platform)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformLock:
    """Both halves for one platform, sorted by name.

    Attributes:
        platform: conda subdir.
        conda: conda's half.
        pip: PyPI's half.
        download_bytes: Bytes of all archives and wheels (the smallest where several can be taken),
            as channels and indexes said when it was locked; None where one did not, or in a lock
            of an earlier envbuild. Locks that differ in it alone are equal.
    """

    platform: Platform
    conda: tuple[CondaPackage, ...]
    pip: tuple[PipPackage, ...]
    download_bytes: int | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """A recipe's lock.

    Attributes:
        name: The recipe's name.
        solve_digest: SHA-256 hex over what decides a solve; only it makes a lock stale.
        cutoff: The instant (UTC) of the solve.
        channels: Names (or URLs without login) in priority order; `host` stands for the
            interpreter of the machine.
        platforms: One entry per platform, sorted.
        asked: What the recipe asked for, which the solve digest covers: pairs of a section's
            name and its normalized content as JSON, sorted (see `envbuild.lock.digest.asked`).
        host_python: Version range of the host's interpreter, or None with conda's.
        uncut_indexes: Names of indexes that took no part in the cutoff.
        compiler: The recipe's `build.compiler`, which activation needs (CC, CXX, CUDAHOSTCXX).
        link_scripts: Names of packages whose link scripts may run.
    """

    name: str
    solve_digest: str
    cutoff: datetime
    channels: tuple[str, ...]
    platforms: tuple[PlatformLock, ...]
    asked: tuple[tuple[str, str], ...] = ()
    host_python: str | None = None
    uncut_indexes: tuple[str, ...] = ()
    compiler: str | None = None
    link_scripts: tuple[str, ...] = ()

    def for_platform(self, platform: Platform) -> PlatformLock | None:
        """Return that platform's halves, or None if the lock does not cover it."""
        return next((half for half in self.platforms if half.platform == platform), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class LockTexts:
    """A lock's files: name (`conda-lock.yml`, `requirements.linux-64.txt`) to text."""

    files: dict[str, str]
