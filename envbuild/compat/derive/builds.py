"""The rows of a release of PyTorch or JAX, as far as its wheels say what stands in them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from envbuild.compat.consistency import numbers
from envbuild.compat.derive import libraries
from envbuild.compat.derive.index import Index, Wheel, chosen, pythons
from envbuild.compat.derive.metadata import Metadata, active, pin
from envbuild.target import PLATFORMS, Platform
from envbuild.tools.remote_zip import RemoteZip

PROJECTS = {"pytorch": "torch", "jax": "jax"}
"""The frameworks with the names of their wheels."""

_EXTRA = re.compile(r"cuda(?P<major>1[1-9])(?:[-_]pip)?")
_PLUGIN = re.compile(r"jax-cuda1[0-9]-plugin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """A row as it was read.

    Attributes:
        framework: `pytorch` or `jax`.
        version: The release.
        origin: As in the table.
        platform: conda subdir.
        values: What was read, by column; what is not there was not read.
        sources: Names of where it was read, with a text each.
        uploaded: When the wheel that was read was uploaded (UTC), None where unknown.
        fetched_bytes: How much of the wheel was fetched for its libraries.
    """

    framework: str
    version: str
    origin: str
    platform: Platform
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    uploaded: datetime | None = None
    fetched_bytes: int = 0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells its row from others."""
        return self.framework, self.version, self.origin, self.platform


def derive(
    index: Index,
    framework: str,
    version: str,
    *,
    read_libraries: bool,
    wheels: Mapping[tuple[str, str], str] | None = None,
) -> tuple[Derived, ...]:
    """Return the rows of a release that the index has; none where it lacks the release.

    Args:
        index: Where the wheels are.
        framework: `pytorch` or `jax`.
        version: The release.
        read_libraries: Whether libraries are read, not only METADATA.
        wheels: Name of the wheel to read, by origin and platform; others are chosen.

    Raises:
        FetchError: Something cannot be had.
    """
    rows = _pytorch if framework == "pytorch" else _jax
    return tuple(rows(index, version, read_libraries=read_libraries, named=wheels or {}))


def _pytorch(
    index: Index,
    version: str,
    *,
    read_libraries: bool,
    named: Mapping[tuple[str, str], str],
) -> Iterator[Derived]:
    release = index.versions("torch").get(Version(version), ())
    for platform in PLATFORMS:
        wheels = [wheel for wheel in release if wheel.fits(platform)]
        wheel = chosen(wheels, named.get(("pypi", platform)))
        if wheel is None:
            continue
        metadata = index.metadata(wheel)
        required = active(metadata.requires, platform, _python(wheel))
        values = {
            **_about(wheel, wheels, metadata),
            **_cuda(required),
            "cudnn": pin(required, "nvidia-cudnn"),
            "nccl": pin(required, "nvidia-nccl"),
            "triton": pin(required, "triton"),
        }
        sources = {"wheel": "METADATA and torch/version.py of the wheel"}
        fetched = 0
        if read_libraries:
            found, fetched = _inside(index, wheel, libraries.pytorch)
            values |= found
            sources |= {
                "wheel-libraries": ".comment and mangled names in libc10.so, CUDA_ARCH_FLAGS in "
                "libtorch_python.so",
                "wheel-glibc": "tag of the wheel, and versions of the symbols that libc10.so, "
                "libtorch_python.so and libgomp need",
                "wheel-parts": _PARTS,
            }
        yield Derived(
            framework="pytorch",
            version=version,
            origin="pypi",
            platform=platform,
            values=values,
            sources=sources,
            uploaded=wheel.file.uploaded,
            fetched_bytes=fetched,
        )


_PARTS = "the wheel was read in parts: its sha256 is the one that PyPI lists, it was not computed"


def _about(wheel: Wheel, wheels: Sequence[Wheel], metadata: Metadata) -> dict[str, Any]:
    return {
        "pythons": pythons(wheels) or metadata.pythons,
        "requires_python": metadata.requires_python or wheel.file.requires_python,
        "wheel": wheel.file.filename,
        "sha256": wheel.file.sha256,
    }


def _python(wheel: Wheel) -> str:
    """Return the Python whose markers count: the wheel's own, else one that everything takes."""
    return min(wheel.pythons, default="3.12").removesuffix("t")


def _inside(
    index: Index, wheel: Wheel, read: Callable[[RemoteZip], dict[str, Any]]
) -> tuple[dict[str, Any], int]:
    """Return what a wheel's libraries say, and how many bytes were fetched for it."""
    with index.opened(wheel) as archive:
        found = read(archive)
        needs = [version for version in (wheel.glibc, found.get("glibc")) if version]
        return {**found, "glibc": max(needs, key=numbers, default=None)}, archive.fetched_bytes


def _cuda(required: Mapping[str, Requirement]) -> dict[str, str]:
    """Return the CUDA whose run time is required (major and minor), nothing without one."""
    version = pin(required, "cuda-toolkit", "nvidia-cuda-runtime")
    return {} if version is None else {"cuda": ".".join(version.split(".")[:2])}


def _jax(
    index: Index,
    version: str,
    *,
    read_libraries: bool,
    named: Mapping[tuple[str, str], str],
) -> Iterator[Derived]:
    platform: Platform = "linux-64"
    wheel = chosen(index.versions("jax").get(Version(version), ()))
    if wheel is None:
        return
    metadata = index.metadata(wheel)
    for major in _majors(metadata):
        origin = f"cuda{major}"
        required = _of_extra(metadata, major, platform)
        plugin = _plugin(index, required, platform, named.get((origin, platform)))
        values: dict[str, Any] = {"pythons": metadata.pythons, "cuda_major": major}
        sources = {"jax": "METADATA of jax on PyPI"}
        fetched = 0
        if plugin is None and (origin, platform) in named:
            values["wheel"] = None  # the one that is looked for is not there
        if plugin is not None:
            one, wheels, extras = plugin
            own = index.metadata(one)
            for extra in extras:
                required |= active(own.requires, platform, _python(one), extra)
            values |= _about(one, wheels, own)
            sources |= {f"jax-cuda{major}-plugin": f"METADATA of jax-cuda{major}-plugin on PyPI"}
            if read_libraries:
                found, fetched = _inside(index, one, libraries.jax)
                values |= found
                sources |= {
                    "plugin-libraries": "fatbin headers, .comment and symbol versions of the "
                    "libraries in the wheel of the plugin, and its tag",
                    "wheel-parts": _PARTS,
                }
        if not any(name.startswith("nvidia-") for name in required):
            continue  # declared before its plugin existed: it cannot be installed
        values |= {
            "requires_python": metadata.requires_python or wheel.file.requires_python,
            "cudnn": pin(required, "nvidia-cudnn"),
            "nccl": pin(required, "nvidia-nccl"),
            "nvcc": pin(required, "nvidia-cuda-nvcc"),
        }
        yield Derived(
            framework="jax",
            version=version,
            origin=origin,
            platform=platform,
            values=values,
            sources=sources,
            uploaded=(wheel if plugin is None else plugin[0]).file.uploaded,
            fetched_bytes=fetched,
        )


def _majors(metadata: Metadata) -> list[str]:
    found = (_EXTRA.fullmatch(extra) for extra in metadata.extras)
    return sorted({match["major"] for match in found if match})


def _of_extra(metadata: Metadata, major: str, platform: Platform) -> dict[str, Requirement]:
    """Return what the extra for a major version of CUDA adds, before 0.4.26 that for pip."""
    python = max(metadata.pythons, key=Version, default="3.12")
    for extra in (f"cuda{major}", f"cuda{major}-pip", f"cuda{major}_pip"):
        required = active(metadata.requires, platform, python, extra)
        if any(name.startswith("nvidia-") or _PLUGIN.fullmatch(name) for name in required):
            return required
    return {}


def _plugin(
    index: Index, required: Mapping[str, Requirement], platform: Platform, filename: str | None
) -> tuple[Wheel, list[Wheel], frozenset[str]] | None:
    """Return the wheel of the plugin that is required, all of its release, and the extras."""
    for name, requirement in required.items():
        if not _PLUGIN.fullmatch(name):
            continue
        versions = index.versions(name)
        able = [one for one in versions if requirement.specifier.contains(one, prereleases=True)]
        wheels = [wheel for wheel in versions[max(able)] if wheel.fits(platform)] if able else []
        wheel = chosen(wheels, filename)
        return None if wheel is None else (wheel, wheels, frozenset(requirement.extras))
    return None
