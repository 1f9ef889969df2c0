"""What is held against the facts: a recipe's wishes and, where there is one, its lock."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import Platform

_CUDA_IN_BUILD = re.compile(r"cuda[_-]?(?P<major>1[0-9])[._]?(?P<minor>[0-9])(?![0-9])")
_SUFFIX = re.compile(r"-cu(?:1[0-9])$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One package of a lock.

    Attributes:
        kind: Which half it is of.
        name: Its name there.
        version: Its version.
        build: conda's build string; empty for a wheel.
        extras: Extras of a wheel that a recipe asks for.
    """

    kind: Literal["conda", "pypi"]
    name: str
    version: str
    build: str = ""
    extras: tuple[str, ...] = ()

    @property
    def plain_name(self) -> str:
        """Its name without the suffix of a CUDA version (`nvidia-cudnn-cu12`)."""
        return _SUFFIX.sub("", self.name)

    @property
    def cuda(self) -> str | None:
        """The CUDA that its build string names (`12.4`), or None."""
        match = _CUDA_IN_BUILD.search(self.build)
        return f"{match['major']}.{match['minor']}" if match else None

    def __str__(self) -> str:
        """Return it as a finding names it."""
        return f"{self.name} {self.version}" + (f" {self.build}" if self.build else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is checked, for one platform.

    Attributes:
        name: The recipe's name.
        platform: conda subdir.
        gpus: Names of cards.
        driver: Range of drivers (version specifiers), or None.
        cuda: CUDA of the recipe's triangle, or None.
        cudnn: cuDNN of the recipe's triangle, or None.
        compiler: Host compiler (`gcc 12`), or None.
        python: Major and minor version of Python, or None where it is open or the host's.
        glibc: The oldest glibc that it must run on, or None.
        asks_cuda: Whether the recipe asks for CUDA at all: by cards, a version, or a package.
        locked: Whether the parts are a lock's, all of them.
        parts: The lock's packages; without a lock, what the recipe asks for in one version.
        places: Where the recipe says it, by the attribute above; else the name stands for it.
    """

    name: str
    platform: Platform
    gpus: tuple[str, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    compiler: str | None = None
    python: str | None = None
    glibc: str | None = None
    asks_cuda: bool = True
    locked: bool = False
    parts: tuple[Part, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def where(self, attribute: str) -> str:
        """Return where the recipe says something."""
        return self.places.get(attribute, f"{self.name}: {attribute}")

    def pypi(self, plain_name: str) -> Part | None:
        """Return the wheel of a name (without the suffix of a CUDA version), or None."""
        found = (one for one in self.parts if one.kind == "pypi" and one.plain_name == plain_name)
        return next(found, None)

    def conda(self, name: str) -> Part | None:
        """Return the conda package of a name, or None."""
        found = (one for one in self.parts if one.kind == "conda" and one.name == name)
        return next(found, None)


def part_of(package: CondaPackage | PipPackage) -> Part:
    """Return a package as the facts look at it."""
    if isinstance(package, CondaPackage):
        return Part(kind="conda", name=package.name, version=package.version, build=package.build)
    return Part(kind="pypi", name=package.name, version=package.version)
