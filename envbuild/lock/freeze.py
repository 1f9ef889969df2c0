"""`freeze`: what the solvers chose becomes a lock."""

from dataclasses import replace
from datetime import UTC, datetime

from packaging.utils import canonicalize_name

from envbuild.lock import digest, spelling
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe import compilers
from envbuild.recipe.model import Recipe
from envbuild.solve.solution import Solution


def freeze(recipe: Recipe, solution: Solution) -> Lock:
    """Return the lock of a recipe from what the solvers chose, everything in one order."""
    return replace(
        copied(recipe),
        cutoff=solution.cutoff.astimezone(UTC),
        platforms=tuple(
            PlatformLock(
                platform=half.platform,
                conda=tuple(sorted(map(_conda, half.conda), key=lambda one: one.name)),
                pip=tuple(
                    sorted(map(_pip, half.pip), key=lambda one: (one.name, one.marker or ""))
                ),
                download_bytes=half.download_bytes,
            )
            for half in sorted(solution.platforms, key=lambda half: half.platform)
        ),
        uncut_indexes=tuple(sorted(set(solution.uncut_indexes))),
    )


def copied(recipe: Recipe) -> Lock:
    """Return a lock without packages that holds what every lock copies from its recipe."""
    asked = digest.asked(recipe)
    return Lock(
        name=recipe.name,
        solve_digest=digest.digest_of(asked),
        cutoff=datetime.min.replace(tzinfo=UTC),
        channels=tuple(spelling.channel(channel) for channel in recipe.channels),
        platforms=(),
        asked=asked,
        host_python=spelling.readable_range(recipe.python or "") if recipe.on_host_python else None,
        compiler=compilers.own(recipe.build.compiler),
        link_scripts=tuple(sorted({name.lower() for name in recipe.link_scripts})),
    )


def _conda(package: CondaPackage) -> CondaPackage:
    return replace(
        package,
        url=spelling.without_login(package.url),
        size=None if package.sha256 else package.size,
        depends=tuple(sorted(package.depends)),
    )


def _pip(package: PipPackage) -> PipPackage:
    return replace(
        package,
        name=canonicalize_name(package.name),
        hashes=tuple(sorted(set(package.hashes))),
        via=tuple(sorted(set(package.via))),
    )
