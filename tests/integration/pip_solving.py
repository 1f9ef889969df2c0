"""Solving a PyPI half in tests: a recipe's text, a conda half by names, an index on localhost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe import load
from envbuild.solve import pip
from envbuild.solve.half import PipHalf
from envbuild.solve.solution import Upgrade
from envbuild.target import Platform

CUTOFF = datetime(2026, 1, 1, tzinfo=UTC)


def conda(*names: str, python: str = "3.11.9") -> tuple[CondaPackage, ...]:
    """Return records of conda-forge, each given as `name=version`."""
    return tuple(
        CondaPackage(
            name=name,
            version=version,
            build="0",
            url=f"https://conda.anaconda.org/conda-forge/linux-64/{name}-{version}-0.conda",
            sha256="0" * 64,
        )
        for name, _, version in (one.partition("=") for one in (f"python={python}", *names))
    )


@dataclass(kw_only=True)
class Solver:
    """Solves with one set of caches.

    Attributes:
        folder: Where the caches are.
        index: Address of the default index, None for uv's own.
        environment: What the engines are told about the network.
        offline: Whether only caches count.
    """

    folder: Path
    index: str | None
    environment: dict[str, str] = field(default_factory=dict)
    offline: bool = False

    @property
    def access(self) -> Access:
        return Access(default_index=self.index, environment=self.environment, offline=self.offline)

    def solve(
        self,
        recipe: str,
        *,
        half: Sequence[CondaPackage] | None = None,
        prefer: Sequence[PipPackage] = (),
        upgrade: Upgrade = Upgrade(),  # noqa: B008
        cutoff: datetime = CUTOFF,
        platform: Platform = "linux-64",
    ) -> PipHalf:
        return pip.solve(
            load.loads(f'name: r\npython: "3.11"\n{recipe}', source="recipes/r.yaml"),
            platform,
            conda=conda() if half is None else half,
            cutoff=cutoff,
            prefer=prefer,
            upgrade=upgrade,
            access=self.access,
            uv_cache=self.folder / "uv",
            metadata_cache=self.folder / "metadata",
        )

    def universal(
        self, recipe: str, *, prefer: Sequence[PipPackage] = (), cutoff: datetime = CUTOFF
    ) -> PipHalf:
        return pip.solve_universal(
            load.loads(f"name: r\nchannels: [host]\n{recipe}", source="recipes/r.yaml"),
            cutoff=cutoff,
            prefer=prefer,
            access=self.access,
            uv_cache=self.folder / "uv",
            metadata_cache=self.folder / "metadata",
        )


def pins(half: PipHalf) -> dict[str, str]:
    return {package.name: package.version for package in half.packages}


def codes(half: PipHalf) -> list[str]:
    return [finding.code for finding in half.findings]


def one(half: PipHalf, name: str) -> PipPackage:
    return next(package for package in half.packages if package.name == name)
