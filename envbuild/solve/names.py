"""Which PyPI distributions a conda package installs, and which CUDA libraries both sides have."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.packages import CondaPackage

_MAPPED_CHANNELS = ("conda-forge", "pytorch", "nvidia")
_PARTS = {"pytorch": "torch", "libtorch": "torch"}
_CUDA_SUFFIX = re.compile(r"-cu\d+$")
_RELEASE = re.compile(r"\d+(\.\d+)*")
_PYTHON = re.compile(r"python(_abi)?(?![\w.-])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provided:
    """A distribution that the conda half installs.

    Attributes:
        name: Its normalized name on PyPI.
        version: Its version; where conda's text is no PEP 440 version, the numbers it begins with.
        exact: Whether conda's text is a PEP 440 version.
        package: The conda record.
    """

    name: NormalizedName
    version: Version
    exact: bool
    package: CondaPackage


@cache
def _names() -> dict[str, str]:
    """Return the rows; the value is empty where the name is the same (normalizing costs time)."""
    rows = (line.partition(" ") for line in _rows("conda_pypi_names.txt"))
    return {conda: pypi for conda, _, pypi in rows}


@cache
def _cuda_wheels() -> dict[str, tuple[str, ...]]:
    rows = (line.split() for line in _rows("cuda_wheels.txt"))
    return {wheel: tuple(conda) for wheel, *conda in rows}


def _rows(filename: str) -> list[str]:
    text = files("envbuild.solve").joinpath("data", filename).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def distribution(package: CondaPackage) -> NormalizedName | None:
    """Return the PyPI name of what a conda package installs, None if that is no distribution.

    A package without a row counts as itself if it depends on Python and its channel is none that
    the rows cover.
    """
    name = _names().get(package.name)
    if name is not None:
        return canonicalize_name(name or package.name)
    if package.name == "python":
        return None
    channel = package.channel_url.rstrip("/")
    mapped = any(f"/{mapped}" in channel for mapped in _MAPPED_CHANNELS)
    if not mapped and any(_PYTHON.match(spec) for spec in package.depends):
        return canonicalize_name(package.name)
    return None


def wheel_name(package: CondaPackage) -> str | None:
    """Return the name of the wheel that can stand for a conda package, None for none.

    Several may be parts of one: conda's `libtorch` is in the wheel `torch`.
    """
    return _PARTS.get(package.name) or distribution(package)


def wheel_named(name: str) -> str:
    """Return the name of the wheel that stands for a conda package of a name, if any does."""
    return _PARTS.get(name) or canonicalize_name(_names().get(name) or name)


def provided(packages: Iterable[CondaPackage]) -> dict[NormalizedName, Provided]:
    """Return what a conda half installs, by PyPI name, sorted.

    Where two conda packages stand for one distribution (`dask` and `dask-core`), the one of the
    distribution's own name counts, else the first by name.
    """
    found: dict[NormalizedName, Provided] = {}
    for package in sorted(packages, key=lambda package: package.name):
        name = distribution(package)
        if name is None or (name in found and canonicalize_name(package.name) != name):
            continue
        try:
            version, exact = Version(package.version), True
        except InvalidVersion:
            numbers = _RELEASE.search(package.version)
            version, exact = Version(numbers.group() if numbers else "0"), False
        found[name] = Provided(name=name, version=version, exact=exact, package=package)
    return dict(sorted(found.items()))


def cuda_rivals(wheel: str) -> tuple[str, ...]:
    """Return names of the conda packages that hold a wheel's CUDA library (`nvidia-cudnn-cu12`)."""
    return _cuda_wheels().get(_CUDA_SUFFIX.sub("", wheel), ())
