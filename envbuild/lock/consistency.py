"""Whether a lock holds what its recipe asks for, and whether its two halves go together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.findings import Finding, Severity
from envbuild.lock import freeze
from envbuild.lock.changes import STALE_HINT, Path
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import WHEELHOUSE, CondaPackage, PipPackage
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.requirements import PipNeed, pip_needs
from envbuild.recipe.specs import conda_needs
from envbuild.recipe.targets import target
from envbuild.solve import markers
from envbuild.solve.names import Provided, provided, wheel_named
from envbuild.target import Target

Matches = Callable[[Sequence[tuple[str, CondaPackage]]], Sequence[bool]]
Virtual = Callable[[Target], Sequence[tuple[str, str, str]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A finding, and the place in the recipe that it names (None: another file's)."""

    finding: Finding
    path: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    """One thing that conda's engine is asked: does the package match one of the specs?"""

    specs: tuple[str, ...]
    package: CondaPackage
    otherwise: Seen


def consistency(
    lock: Lock, loaded: LoadedRecipe, *, matches: Matches, virtual: Virtual
) -> tuple[Seen, ...]:
    """Return everything in which the lock does not hold what the recipe asks for.

    Args:
        lock: The lock.
        loaded: Its recipe.
        matches: Asks conda's engine whether packages match specs, all in one call.
        virtual: Gives name, version and build of a target's virtual packages.
    """
    seen = [*_fields(lock, loaded), *_pythons(lock, loaded), *_platforms(lock, loaded)]
    questions: list[_Question] = []
    for half in lock.platforms:
        if half.platform not in loaded.recipe.target.platforms:
            continue
        for one in (
            *_conda_needs(half, lock, loaded),
            *_depends(half, loaded, virtual(target(loaded.recipe, half.platform))),
            *_channels(half, loaded),
        ):
            if isinstance(one, Seen):
                seen.append(one)
            else:
                questions.append(one)
        seen += _pip_needs(half, lock, loaded)
        seen += _indexes(half, loaded)
        seen += _both(half, loaded)
    return (*seen, *_unmatched(questions, matches))


def _unmatched(questions: Sequence[_Question], matches: Matches) -> Iterator[Seen]:
    if not questions:
        return
    pairs = [(spec, question.package) for question in questions for spec in question.specs]
    answers = iter(matches(pairs))
    for question in questions:
        fitting = [next(answers) for _ in question.specs]
        if not any(fitting):
            yield question.otherwise


def _seen(loaded: LoadedRecipe, code: str, path: Path, what: str) -> Seen:
    return Seen(
        finding=Finding(
            code=f"lock-{code}",
            severity=Severity.ERROR,
            where=loaded.where(*path),
            what=what,
            hint=STALE_HINT.format(loaded.recipe.name),
        ),
        path=path,
    )


def _inside(lock: Lock, half: PlatformLock, code: str, what: str) -> Seen:
    return Seen(
        finding=Finding(
            code=f"lock-{code}",
            severity=Severity.ERROR,
            where=f"lock of {lock.name} for {half.platform}",
            what=what,
            hint=STALE_HINT.format(lock.name),
        )
    )


def _fields(lock: Lock, loaded: LoadedRecipe) -> Iterator[Seen]:
    """Compare what a lock copies from its recipe."""
    fresh = freeze.copied(loaded.recipe)
    for field, path in (
        ("name", ("name",)),
        ("channels", ("channels",)),
        ("compiler", ("build", "compiler")),
        ("link_scripts", ("link_scripts",)),
    ):
        asked, locked = getattr(fresh, field), getattr(lock, field)
        if asked != locked:
            what = f"`{'.'.join(path)}` is {_shown(asked)}, the lock has {_shown(locked)}"
            yield _seen(loaded, field.replace("_", "-"), path, what)


def _shown(value: str | tuple[str, ...] | None) -> str:
    return value if isinstance(value, str) else ", ".join(value or ()) or "none"


def _pythons(lock: Lock, loaded: LoadedRecipe) -> Iterator[Seen]:
    asked = freeze.copied(loaded.recipe).host_python
    if asked != lock.host_python:
        asked_text = "conda's Python" if asked is None else f"the host's Python {asked}".rstrip()
        locked = lock.host_python
        text = "conda's Python" if locked is None else f"the host's Python {locked}".rstrip()
        path = ("python",) if None not in {asked, locked} else ("channels",)
        yield _seen(loaded, "python", path, f"the recipe is on {asked_text}, the lock on {text}")
    for half in lock.platforms:
        python = any(package.name == "python" for package in half.conda)
        if half.pip and lock.host_python is None and not python:
            what = "there are PyPI packages, and no Python that could run them"
            yield _inside(lock, half, "no-python", what)


def _platforms(lock: Lock, loaded: LoadedRecipe) -> Iterator[Seen]:
    for platform in loaded.recipe.target.platforms:
        if lock.for_platform(platform) is None:
            what = f"the lock does not cover {platform}"
            yield _seen(loaded, "platform", ("target", "platforms"), what)


def _conda_needs(
    half: PlatformLock, lock: Lock, loaded: LoadedRecipe
) -> Iterator[Seen | _Question]:
    if lock.host_python is not None:
        return
    packages = {package.name: package for package in half.conda}
    for need in conda_needs(loaded.recipe):
        code = "python" if need.path == ("python",) else "conda-unmet"
        package, spec = packages.get(need.name), need.text
        if package is None and (package := _rebuilt(need.name, half)) is not None:
            spec = f"{need.name} {need.version or '*'}"
        found = "no such package" if package is None else _name(package)
        what = f"`{need.text}` is not met for {half.platform}: the lock has {found}"
        unmet = _seen(loaded, code, need.path, what)
        if package is None:
            yield unmet
        else:
            yield _Question(specs=(spec,), package=package, otherwise=unmet)


def _rebuilt(name: str, half: PlatformLock) -> CondaPackage | None:
    """Return a rebuilt wheel that took the place of a conda package, as conda would name it."""
    wheel = wheel_named(name)
    for one in half.pip:
        if one.index == WHEELHOUSE and one.name == wheel:
            version = one.version.partition("+")[0]
            return CondaPackage(
                name=name, version=version, build="rebuilt", url=f"{WHEELHOUSE}/x/x"
            )
    return None


def _name(package: CondaPackage) -> str:
    channel = package.channel_url.removeprefix("https://").partition("/")[2] or package.channel_url
    return f"{channel}::{package.name} {package.version} {package.build}"


def _depends(
    half: PlatformLock, loaded: LoadedRecipe, virtual: Sequence[tuple[str, str, str]]
) -> Iterator[Seen | _Question]:
    offered = {
        name: CondaPackage(name=name, version=version, build=build, url="")
        for name, version, build in virtual
    }
    packages = {package.name: package for package in half.conda}
    for package in half.conda:
        for spec in package.depends:
            name = spec.partition(" ")[0]
            what = f"{half.platform}: {package.name} {package.version} needs `{spec}`"
            if name.startswith("__"):
                found = offered.get(name)
                has = f"{found.version}" if found else "none"
                path: Path = ("target", "cuda") if name == "__cuda" else ("target",)
                path = ("target", "glibc") if name == "__glibc" else path
                otherwise = _seen(loaded, "virtual", path, f"{what}, the recipe's target has {has}")
            else:
                found = packages.get(name)
                has = f"{found.version} {found.build}" if found else "no such package"
                otherwise = _seen(loaded, "depends", ("conda",), f"{what}, the lock has {has}")
            if found is None:
                yield otherwise
            else:
                yield _Question(specs=(spec,), package=found, otherwise=otherwise)


def _channels(half: PlatformLock, loaded: LoadedRecipe) -> Iterator[_Question]:
    first = {package.channel_url: package for package in reversed(half.conda)}
    channels = [channel.rstrip("/") for channel in loaded.recipe.channels]
    for url, package in first.items():
        names = [one.name for one in half.conda if one.channel_url == url]
        what = f"{half.platform}: {', '.join(names[:5])} come from {url}, no channel of the recipe"
        yield _Question(
            specs=tuple(f"{channel}::{package.name}" for channel in channels),
            package=package,
            otherwise=_seen(loaded, "channel", ("channels",), what),
        )


def _pip_needs(half: PlatformLock, lock: Lock, loaded: LoadedRecipe) -> Iterator[Seen]:
    conda = provided(half.conda)
    for need in pip_needs(loaded.recipe):
        for python in _versions(half, lock, need):
            environment = markers.environment(python, half.platform)
            marker = need.requirement.marker
            if marker is not None and not marker.evaluate(dict(environment)):
                continue
            found = _found(need, half, conda, environment)
            if found is None or not _meets(need, found):
                has = "no such package" if found is None else f"{need.name} {found}"
                what = f"`{need.text}` is not met for {half.platform}: the lock has {has}"
                if lock.host_python is not None:
                    what += f" for Python {python}"
                yield _seen(loaded, "pypi-unmet", need.path, what)
                break


def _versions(half: PlatformLock, lock: Lock, need: PipNeed) -> Sequence[str]:
    """Return the Pythons for which a requirement is looked at."""
    if lock.host_python is None:
        return [package.version for package in half.conda if package.name == "python"][:1]
    try:
        range_ = markers.pythons(lock.host_python)
    except InvalidSpecifier:
        range_ = None
    if range_ is None:
        return []
    texts = [str(need.requirement.marker or ""), *(one.marker or "" for one in half.pip)]
    return [markers.full(version) for version in markers.points(texts, range_)]


def _found(
    need: PipNeed,
    half: PlatformLock,
    conda: Mapping[NormalizedName, Provided],
    environment: Mapping[str, str],
) -> Version | None:
    """Return the version that either half has of what is asked for."""
    for package in half.pip:
        if package.name == need.name and _applies(package, environment):
            return _version(package.version)
    one = conda.get(canonicalize_name(need.name))
    return None if one is None else one.version


def _applies(package: PipPackage, environment: Mapping[str, str]) -> bool:
    return package.marker is None or Marker(package.marker).evaluate(dict(environment))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _meets(need: PipNeed, version: Version) -> bool:
    return all(
        version == _version(one.version)
        if one.operator == "==="
        else SpecifierSet(str(one)).contains(version, prereleases=True)
        for one in need.requirement.specifier
    )


def _indexes(half: PlatformLock, loaded: LoadedRecipe) -> Iterator[Seen]:
    asked = {
        canonicalize_name(name): (index.name, place)
        for place, index in enumerate(loaded.recipe.indexes)
        for name in index.packages
    }
    for package in half.pip:
        index, place = asked.get(canonicalize_name(package.name), (None, None))
        if package.index not in {index, WHEELHOUSE}:
            path: Path = ("indexes",) if place is None else ("indexes", place)
            what = (
                f"{half.platform}: {package.name} comes from {_index(package.index)} in the lock, "
                f"from {_index(index)} in the recipe"
            )
            yield _seen(loaded, "index", path, what)


def _index(name: str | None) -> str:
    return "the default index" if name is None else f"index {name}"


def _both(half: PlatformLock, loaded: LoadedRecipe) -> Iterator[Seen]:
    conda = provided(half.conda)
    for package in half.pip:
        name = canonicalize_name(package.name)
        if name in conda:
            other = conda[name].package
            what = (
                f"{half.platform}: {package.name} is in both halves "
                f"(conda's {other.name} {other.version}, PyPI's {package.version})"
            )
            yield _seen(loaded, "twice", ("pypi",), what)
