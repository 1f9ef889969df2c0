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
    """

    platform: Platform
    conda: tuple[CondaPackage, ...]
    pip: tuple[PipPackage, ...]


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
