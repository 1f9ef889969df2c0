"""`Solution`: what the two solvers chose, before it is frozen into a lock."""

from dataclasses import dataclass
from datetime import datetime

from envbuild.findings import Findings
from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformSolution:
    """Both halves for one platform.

    Attributes:
        platform: conda subdir.
        conda: Records sorted by name; empty on the host's Python.
        pip: Distributions sorted by name.
        wheel_bytes: Bytes of the wheels, None where an index does not say.
    """

    platform: Platform
    conda: tuple[CondaPackage, ...]
    pip: tuple[PipPackage, ...]
    wheel_bytes: int | None = None

    @property
    def download_bytes(self) -> int | None:
        """Bytes of the archives and wheels of both halves, None where one is not known."""
        sizes = [package.size for package in self.conda]
        if self.wheel_bytes is None or None in sizes:
            return None
        return sum(filter(None, sizes)) + self.wheel_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """What the solvers chose for every platform of the recipe.

    Attributes:
        platforms: One entry per platform, in the recipe's order.
        cutoff: The instant (UTC) used: a record counts if uploaded strictly before it.
        uncut_indexes: Names of indexes that took no part in the cutoff (`cutoff: none`).
        findings: What the solves had to say.
    """

    platforms: tuple[PlatformSolution, ...]
    cutoff: datetime
    uncut_indexes: tuple[str, ...] = ()
    findings: Findings = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgrade:
    """What of an old lock may move.

    Attributes:
        everything: `--upgrade`: nothing is kept.
        packages: `--upgrade-package NAME`: these are not kept; conda or normalized PyPI names.
    """

    everything: bool = False
    packages: frozenset[str] = frozenset()
