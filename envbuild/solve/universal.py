"""One PyPI half for every Python and platform of a recipe: from uv's answer to its lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.recipe.model import Recipe
from envbuild.recipe.requirements import PipNeed
from envbuild.recipe.targets import target as target_of
from envbuild.solve import markers
from envbuild.solve.ask import Answered
from envbuild.solve.half import Line
from envbuild.solve.wheels import Release, Wheel, usable, without
from envbuild.target import Platform, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Universal:
    """uv's universal answer, as far as a recipe's Pythons and platforms reach it.

    Attributes:
        answered: uv's answer.
        lines: A line per release that one of them reaches.
        pairs: Versions of Python and platforms such that no marker changes in between.
        missing: A sentence for each release, Python and platform without a wheel.
    """

    answered: Answered
    lines: tuple[Line, ...]
    pairs: tuple[tuple[Version, Platform], ...]
    missing: tuple[str, ...]


def universal(
    answered: Answered, needs: Sequence[PipNeed], range_: markers.Pythons, recipe: Recipe
) -> Universal:
    """Return what of uv's universal answer a recipe's Pythons and platforms reach.

    Lines that only another system reaches are gone, markers speak of Python and machine alone,
    and wheels are those that any of the recipe's platforms and Pythons can use.
    """
    found = [*(release.marker for release in answered.releases)]
    found += [str(need.requirement.marker) for need in needs if need.requirement.marker]
    versions = markers.points([marker for marker in found if marker], range_)
    targets = [target_of(recipe, platform) for platform in recipe.target.platforms]
    groups: dict[tuple[str, str], list[Release]] = {}
    for release in answered.releases:
        groups.setdefault((release.name, release.version), []).append(release)
    lines: list[Line] = []
    missing: list[str] = []
    for group in groups.values():
        release = group[0]
        reach = markers.reach(
            [one.marker for one in group], versions, [target.platform for target in targets]
        )
        wheels = _wheels(release, reach, targets, missing)
        if reach.pairs:
            lines.append(
                Line(
                    name=canonicalize_name(release.name),
                    version=release.version,
                    marker=reach.marker,
                    pairs=reach.pairs,
                    wheels=wheels,
                    source=answered.homes[release.name],
                )
            )
    return Universal(
        answered=answered,
        lines=tuple(lines),
        pairs=tuple((version, target.platform) for target in targets for version in versions),
        missing=tuple(missing),
    )


def _wheels(
    release: Release, reach: markers.Reach, targets: Sequence[Target], missing: list[str]
) -> tuple[Wheel, ...]:
    """Return the wheels that any reached pair can use; pairs without one go to `missing`."""
    wheels: dict[str, Wheel] = {}
    for target in targets:
        minors = dict.fromkeys(
            (version.major, version.minor)
            for version, platform in reach.pairs
            if platform == target.platform
        )
        for minor in minors:
            fitting = usable(release.wheels, target, minor)
            wheels |= {wheel.filename: wheel for wheel in fitting}
            if not fitting:
                missing.append(without(release, f"{minor[0]}.{minor[1]}", target.platform))
    return tuple(wheels.values())
