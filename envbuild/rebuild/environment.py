"""The environment that a wheel is built in: what the lock has from the lock, the rest with hashes.

A wheel built against numpy or torch is built against the very files that it will run with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.errors import InputError, NoSolution
from envbuild.packages import CondaPackage, PipPackage
from envbuild.solve import ask, standins
from envbuild.solve.markers import environment as marker_environment
from envbuild.solve.names import provided as provided_by
from envbuild.solve.wheels import refuse, usable, without
from envbuild.target import Target
from envbuild.tools import uv
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Question, Source, platform_name


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """What a build environment is made of.

    Attributes:
        python: The interpreter that the environment is made with.
        python_version: Its full version.
        target: This machine.
        conda: The lock's conda half, which is there beside it.
        pip: The lock's PyPI half, as it applies here.
        sources: The indexes by the names that packages give.
        cutoff: The lock's instant (UTC): files count if uploaded strictly before it.
    """

    python: Path
    python_version: str
    target: Target
    conda: Sequence[CondaPackage]
    pip: Sequence[PipPackage]
    sources: Sequence[Source]
    cutoff: datetime


def solve(requires: Sequence[str], around: Around, engine: uv.Engine) -> tuple[PipPackage, ...]:
    """Return the packages that the sources require for their build, with hashes.

    Args:
        requires: PEP 508 lines, as the sources have them.
        around: What is there already.
        engine: How uv is run.

    Raises:
        InputError: A line is no requirement.
        NoSolution: It cannot be solved with what the lock has.
        FetchError: An index is out of reach.
        ToolError: uv is missing or failed.
    """
    markers = marker_environment(around.python_version, around.target.platform)
    needs = [_requirement(line) for line in requires]
    needs = [one for one in needs if one.marker is None or one.marker.evaluate({**markers})]
    if not needs:
        return ()
    provided = provided_by(around.conda)
    locked = {package.name: package for package in around.pip}
    with scratch() as (folder, _):
        standins.write(provided.values(), folder)
        pins = "".join(f"{one.name}=={one.version}\n" for one in locked.values())
        question = Question(
            requirements=[standins.requirement_text(one, provided) for one in needs],
            python=around.python_version,
            platform=platform_name(around.target),
            cutoff=around.cutoff,
            sources=around.sources,
            constraints=standins.constraints(provided.values()) + pins,
            find_links=folder if provided else None,
            not_emitted=tuple(provided),
        )
        try:
            answered = ask.ask(question, solve=lambda one: uv.compile_lock(one, engine))
        except NoSolution as error:
            error.message = f"what its build requires does not go with the lock: {error.message}"
            error.details = standins.plain_words(error.details)
            error.hint = "take another version of it, or of what the lock has"
            raise
    python = tuple(map(int, around.python_version.split(".")[:2]))
    missing: list[str] = []
    packages: list[PipPackage] = []
    for release in answered.releases:
        name = canonicalize_name(release.name)
        if name in locked and locked[name].version == release.version:
            packages.append(locked[name])
            continue
        wheels = usable(release.wheels, around.target, (python[0], python[1]))
        hashes = tuple(sorted({wheel.sha256 for wheel in wheels if wheel.sha256}))
        if not hashes:
            short = f"{python[0]}.{python[1]}"
            missing.append(without(release, short, around.target.platform))
        packages.append(
            PipPackage(
                name=name,
                version=release.version,
                hashes=hashes,
                index=answered.homes[release.name].name,
            )
        )
    refuse(missing)
    return tuple(sorted(packages, key=lambda package: package.name))


def make(folder: Path, packages: Sequence[PipPackage], around: Around, engine: uv.Engine) -> None:
    """Make a virtual environment that can be seen at another path, and install packages into it.

    Args:
        folder: Where; it is made anew.
        packages: What is installed, by hash.
        around: What it is made of.
        engine: How uv is run.

    Raises:
        FetchError: A wheel is out of reach, or has another hash.
        ToolError: uv is missing or failed.
    """
    uv.make_environment(folder, engine, beside_base=bool(around.conda))
    install(folder, packages, around, engine)


def install(
    folder: Path, packages: Sequence[PipPackage], around: Around, engine: uv.Engine
) -> None:
    """Install packages into a virtual environment that is there; errors as of `make`."""
    inside = replace(engine, python=folder / "bin/python")
    uv.install(packages, inside, sources=around.sources)


def _requirement(line: str) -> Requirement:
    try:
        return Requirement(line)
    except InvalidRequirement as error:
        message = f"the sources require {line!r} for their build, which is no requirement"
        raise InputError(message) from error
