"""Rebuilt wheels in the place of conda's packages: which may give way, and who needs them.

What the recipe names in `build.packages` may (else the framework), and what depends on it where
that was rebuilt too. conda packages that only those needed stay: a wheel is built with them beside
it, and may link them.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from envbuild.errors import Refused
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe.build import Build
from envbuild.solve.names import provided, wheel_name
from envbuild.wheel.plan import FRAMEWORKS


def candidates(packages: Sequence[CondaPackage], build: Build) -> Iterator[PipPackage]:
    """Yield, as wheels, what a rebuilt wheel may take the place of.

    Args:
        packages: A lock's conda half.
        build: What the recipe says of rebuilt wheels.
    """
    versions = {str(name): one.version for name, one in provided(packages).items()}
    wanted = _with_dependents(packages, _roots(build), lambda _: True)
    for name in sorted(wanted & versions.keys()):
        yield PipPackage(name=name, version=str(versions[name]), hashes=(), via=("recipe",))


def leaving(
    packages: Sequence[CondaPackage], build: Build, rebuilt: Container[str], *, lock: str
) -> tuple[CondaPackage, ...]:
    """Return the conda packages that give way to rebuilt wheels.

    Args:
        packages: A lock's conda half.
        build: What the recipe says of rebuilt wheels.
        rebuilt: Names of the wheels that could be taken.
        lock: The lock's name.

    Raises:
        Refused: conda packages that stay need them.
    """
    roots = {name for name in _roots(build) if name in rebuilt}
    going = _with_dependents(packages, roots, rebuilt.__contains__)
    gone = tuple(one for one in packages if wheel_name(one) in going)
    if staying := list(_dependents(packages, going)):
        names = ", ".join(f"{one.name} {one.version}" for one in staying)
        message = (
            f"{lock}: conda's {', '.join(one.name for one in gone)} cannot give way to the rebuilt "
            f"{', '.join(sorted(going & {wheel_name(one) for one in gone}))}: conda's {names} "
            f"{'needs' if len(staying) == 1 else 'need'} it"
        )
        raise Refused(
            message,
            hint="take them from PyPI (`pypi` of the recipe), or rebuild them as well; `envbuild "
            "lock -U` without --prefer-rebuilt takes conda's again",
            details="\n".join(_needs(staying, gone)),
        )
    return gone


def _roots(build: Build) -> set[str]:
    return {*map(str, build.sources)} or {*FRAMEWORKS}


def _with_dependents(
    packages: Iterable[CondaPackage], names: set[str], may: Callable[[str], bool]
) -> set[str]:
    """Return names of wheels with those of the packages that need them, and so on."""
    found = set(names)
    while (
        more := {
            name
            for one in _dependents(packages, found)
            if (name := wheel_name(one)) is not None and may(name)
        }
        - found
    ):
        found |= more
    return found


def _dependents(packages: Iterable[CondaPackage], names: Container[str]) -> Iterator[CondaPackage]:
    """Yield the packages that need one that stands for a wheel of these, and do not themselves."""
    every = list(packages)
    theirs = {one.name for one in every if (wheel_name(one) or "") in names}
    for one in every:
        needed = {spec.partition(" ")[0] for spec in one.depends}
        if one.name not in theirs and needed & theirs:
            yield one


def _needs(staying: Iterable[CondaPackage], gone: Iterable[CondaPackage]) -> Iterator[str]:
    names = {one.name for one in gone}
    for one in staying:
        for spec in one.depends:
            if spec.partition(" ")[0] in names:
                yield f"{one.name} {one.version} {one.build} needs `{spec}`"
