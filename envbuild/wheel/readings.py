"""`Reading`: a package of a lock with what is known of its binaries; `Question`: what is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from envbuild.compat.model import FrameworkBuild
from envbuild.native.judge import plain_name
from envbuild.native.model import ElfFacts, NativeFacts
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe.build import Build
from envbuild.solve.names import wheel_name
from envbuild.target import Platform
from envbuild.wheel.model import Cost, Half, Read


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a plan answers.

    Attributes:
        name: The recipe's name.
        platform: conda subdir.
        build: What the recipe says of rebuilt wheels.
        archs: Compute capabilities to build for: the recipe's, else those of its cards.
        cuda: CUDA of the recipe's triangle, or None.
        python: Major and minor version of Python, or None where it is open.
        folder: The recipe's folder, at which relative paths begin.
        earlier: What rebuilds of a package took, by name.
    """

    name: str
    platform: Platform
    build: Build
    archs: tuple[str, ...] = ()
    cuda: str | None = None
    python: str | None = None
    folder: str = ""
    earlier: Mapping[str, Cost] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One package of a lock, and what is known of its binaries.

    Attributes:
        package: The package.
        distribution: Normalized name of the distribution that it installs, or None for none.
        facts: What was read of its files, or None.
        read: Where they were read, or None.
        row: What the tables say of this build, or None.
        absent: Whether it is a rebuilt wheel that this host's wheelhouse does not have.
    """

    package: CondaPackage | PipPackage
    distribution: str | None
    facts: NativeFacts | None = None
    read: Read | None = None
    row: FrameworkBuild | None = None
    absent: bool = False

    @property
    def half(self) -> Half:
        """The half of the lock that it is of."""
        return "conda" if isinstance(self.package, CondaPackage) else "pypi"

    @property
    def unit(self) -> str | None:
        """Name of the wheel that a rebuild of it gives: conda's libtorch is a part of torch."""
        if isinstance(self.package, CondaPackage):
            return wheel_name(self.package)
        return self.distribution

    @property
    def label(self) -> str:
        """It, as a plan names it."""
        build = self.package.build if isinstance(self.package, CondaPackage) else ""
        return f"{self.package.name} {self.package.version} {build}".strip()

    @property
    def own(self) -> Sequence[ElfFacts]:
        """Its own binaries: no split debug files, and no libraries that a repair tool added.

        Files of GPU code alone have no host compiler, and no card needs each of them.
        """
        files = self.facts.files if self.facts else ()
        host = (one for one in files if one.kind != "debug" and one.machine != "cuda")
        return [one for one in host if plain_name(one.path) == one.path]

    def needs(self, name: str, half: Literal["conda", "pypi"], others: Sequence["Reading"]) -> bool:
        """Say whether it requires a package of a half by name.

        Args:
            name: The other package's name.
            half: Which half has that.
            others: All packages.
        """
        if isinstance(self.package, CondaPackage):
            asked = {spec.partition(" ")[0] for spec in self.package.depends}
            return half == "conda" and name in asked
        return any(
            isinstance(other.package, PipPackage) and self.package.name in other.package.via
            for other in others
            if other.half == half == "pypi" and other.package.name == name
        )
