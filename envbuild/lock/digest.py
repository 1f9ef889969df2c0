"""Digests: what decides a solve, and what decides an environment.

The *solve digest* covers what decides a solve, in one spelling; only it makes a lock stale. The
*environment digest* covers one platform's packages with their hashes and what else decides how a
prefix is made; it names the generation. Services, smoke tests, slices, allowed findings,
descriptions and comments are in neither.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from envbuild.lock import spelling
from envbuild.lock.model import Lock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe.build import PackageBuild
from envbuild.recipe.model import Index, Recipe
from envbuild.recipe.requirements import PipNeed, pip_needs
from envbuild.recipe.specs import CondaNeed, conda_needs
from envbuild.solve.markers import environment
from envbuild.target import Platform

_Json = str | list["_Json"] | dict[str, "_Json"] | None


def asked(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """Return what a recipe asks of the solvers, in one spelling.

    Returns:
        Pairs of a section's name (`conda`, `pypi`, `target` …) and its content as JSON, sorted;
        empty sections are left out. No address of an index and no login is in them.
    """
    sections: dict[str, _Json] = {
        "build": _build(recipe),
        "channels": [spelling.channel(channel) for channel in recipe.channels],
        "conda": _sorted(spec(need) for need in conda_needs(recipe) if need.path[:1] == ("conda",)),
        "cutoff": " ".join((recipe.cutoff or "").split()),
        "indexes": [_index(one) for one in sorted(recipe.indexes, key=lambda one: one.name)],
        "link_scripts": _sorted(name.lower() for name in recipe.link_scripts),
        "pypi": _sorted(map(requirement, pip_needs(recipe))),
        "python": spelling.version_range(recipe.python or ""),
        "target": _target(recipe),
        "triangle": _kept(
            {
                "cuda": spelling.tight(recipe.triangle.cuda or ""),
                "cudnn": spelling.tight(recipe.triangle.cudnn or ""),
                "framework": spelling.named_range(recipe.triangle.framework or ""),
            }
        ),
    }
    return tuple((name, _text(content)) for name, content in sections.items() if content)


def solve_digest(recipe: Recipe) -> str:
    """Return the SHA-256 (hex) over what decides the solve of a recipe."""
    return digest_of(asked(recipe))


def digest_of(sections: Iterable[tuple[str, str]]) -> str:
    """Return the solve digest (hex) of what `asked` returned."""
    return _sha256(dict(sections))


def spec(need: CondaNeed) -> str:
    """Return a conda match spec of a recipe in one spelling."""
    words = need.text.split(" ")
    return " ".join([words[0], *map(spelling.version_range, words[1:2]), *words[2:]])


def requirement(need: PipNeed) -> str:
    """Return a PyPI requirement of a recipe in one spelling."""
    asked_for = need.requirement
    extras = ",".join(sorted(canonicalize_name(extra) for extra in asked_for.extras))
    text = str(canonicalize_name(asked_for.name)) + (f"[{extras}]" if extras else "")
    text += f" @ {asked_for.url}" if asked_for.url else str(asked_for.specifier)
    if asked_for.marker is not None:
        text += f" ; {asked_for.marker}"
    return text + "".join(f" --hash={one}" for one in sorted(need.hashes))


def environment_digest(
    lock: Lock, platform: Platform, *, interpreter: str | None, python: str, store_format: int
) -> str:
    """Return the SHA-256 (hex) that names what a lock makes of a prefix on one platform.

    Args:
        lock: The lock.
        platform: One of its platforms.
        interpreter: Digest of the host's interpreter, None with conda's.
        python: Full version of the interpreter, which decides the markers of a universal lock.
        store_format: Number of the way in which the store makes prefixes.

    Raises:
        KeyError: The lock does not cover the platform.
    """
    half = lock.for_platform(platform)
    if half is None:
        raise KeyError(platform)
    content: dict[str, _Json] = {
        "conda": [_conda(package) for package in half.conda],
        "pip": [_pip(package) for package in applying(half.pip, platform, python=python)],
        "platform": platform,
        "interpreter": interpreter,
        "compiler": lock.compiler,
        "link_scripts": list(lock.link_scripts),
        "store_format": str(store_format),
    }
    return _sha256(content)


def applying(
    packages: Iterable[PipPackage], platform: Platform, *, python: str
) -> tuple[PipPackage, ...]:
    """Return the packages whose markers hold on a platform's CPython of that full version."""
    where = environment(python, platform)
    return tuple(
        package
        for package in packages
        if package.marker is None or Marker(package.marker).evaluate(where)
    )


def _target(recipe: Recipe) -> _Json:
    target = recipe.target
    return _kept(
        {
            "archspec": target.archspec,
            "cuda": spelling.tight(target.cuda or ""),
            "driver": spelling.version_range(target.driver or ""),
            "driver_branches": _sorted(target.driver_branches),
            "firmware": spelling.version_range(target.firmware or ""),
            "glibc": target.glibc,
            "gpus": _sorted(gpu.lower() for gpu in target.gpus),
            "platforms": _sorted(target.platforms),
        }
    )


def _build(recipe: Recipe) -> _Json:
    build = recipe.build
    return _kept(
        {
            "compiler": " ".join((build.compiler or "").split()),
            "cuda_archs": _sorted(build.cuda_archs),
            "cxx_abi": build.cxx_abi,
            "flags": list(build.flags),
            "packages": _sorted(map(_source, build.sources.items())),
            "when": build.when if build.when != "auto" else None,
        }
    )


def _source(item: tuple[str, PackageBuild]) -> str:
    """Return a rebuilt package with what pins its sources; how it is built decides no solve."""
    name, source = item
    pinned = source.commit or source.sha256 or ""
    return f"{name} {pinned or ('archive' if source.archive else '')}"


def _index(index: Index) -> _Json:
    address = spelling.without_login(index.url).rstrip("/")
    return _kept(
        {
            "name": index.name,
            "address_sha256": hashlib.sha256(address.encode()).hexdigest(),
            "packages": _sorted(canonicalize_name(name) for name in index.packages),
            "cutoff": " ".join((index.cutoff or "").split()),
        }
    )


def _conda(package: CondaPackage) -> _Json:
    entry: dict[str, _Json] = {"file": package.filename}
    if package.sha256 is not None:
        return {**entry, "sha256": package.sha256}
    return {**entry, "md5": package.md5, "size": str(package.size)}


def _pip(package: PipPackage) -> _Json:
    return {"name": package.name, "version": package.version, "hashes": list(package.hashes)}


def _sorted(values: Iterable[str]) -> _Json:
    return [*sorted({" ".join(value.split()) for value in values})]


def _kept(values: Mapping[str, _Json]) -> _Json:
    return {key: value for key, value in values.items() if value}


def _text(content: _Json) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _sha256(content: Mapping[str, _Json]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
