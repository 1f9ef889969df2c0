"""The PyPI half: uv solves it, told by stand-in wheels what the conda half provides."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.access import Access
from envbuild.errors import NoSolution
from envbuild.packages import CondaPackage, PipPackage
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.requirements import pip_needs
from envbuild.recipe.targets import target as target_of
from envbuild.solve import ask, markers, standins, universal
from envbuild.solve.half import Around, Line, PipHalf, finish
from envbuild.solve.names import provided as provided_by
from envbuild.solve.remote import metadata_reader
from envbuild.solve.solution import Upgrade
from envbuild.solve.wheels import Release, refuse, usable, without
from envbuild.target import Platform, Target
from envbuild.tools import uv
from envbuild.tools.run import Runner, run
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Question, Source, platform_name


def solve(  # noqa: PLR0913 - what a solve depends on
    loaded: LoadedRecipe,
    platform: Platform,
    *,
    conda: Sequence[CondaPackage],
    cutoff: datetime,
    prefer: Sequence[PipPackage] = (),
    upgrade: Upgrade = Upgrade(),  # noqa: B008 - frozen
    access: Access,
    uv_cache: Path,
    metadata_cache: Path,
    runner: Runner = run,
) -> PipHalf:
    """Solve the PyPI half beside a conda half.

    Args:
        loaded: The recipe.
        platform: The platform to solve for.
        conda: The conda half for it, with its Python.
        cutoff: Instant (UTC); a file counts if it was uploaded strictly before it.
        prefer: The old PyPI half, whose versions stay where they can.
        upgrade: What of it may move.
        access: How indexes are reached.
        uv_cache: uv's cache folder.
        metadata_cache: Folder of METADATA by the wheel's SHA-256.
        runner: Starts uv.

    Raises:
        NoSolution: It cannot be solved, or not locked, with the reason.
        FetchError: An index is out of reach.
        ToolError: uv is missing or failed.
    """
    needs = pip_needs(loaded.recipe)
    if not needs:
        return PipHalf(packages=(), download_bytes=0)
    python = _python(conda)
    target = target_of(loaded.recipe, platform)
    provided = provided_by(conda)
    known = ask.sources(loaded, cutoff=cutoff, access=access, without=tuple(provided))
    where = f"Python {python} on {platform}"
    with (
        ask.explained(loaded, needs, where=where, cutoff=cutoff),
        scratch() as (folder, _),
    ):
        standins.write(provided.values(), folder)
        question = Question(
            requirements=[standins.requirement_text(need.requirement, provided) for need in needs],
            python=str(python),
            platform=platform_name(target),
            cutoff=cutoff,
            sources=known,
            constraints=standins.constraints(provided.values()),
            find_links=folder if provided else None,
            not_emitted=tuple(provided),
            pins=_pins((one for one in prefer if one.name not in provided), upgrade),
        )
        answered = ask.ask(question, solve=lambda one: _compile(one, access, uv_cache, runner))
        around = Around(
            needs=needs,
            pairs=((python, platform),),
            provided=provided,
            prefer=prefer,
            answered=answered,
            sources=known,
        )
        lines = _lines(answered.releases, python, target, answered.homes)
        return finish(lines, around, read=metadata_reader(access, known), cache=metadata_cache)


def solve_universal(
    loaded: LoadedRecipe,
    *,
    cutoff: datetime,
    prefer: Sequence[PipPackage] = (),
    upgrade: Upgrade = Upgrade(),  # noqa: B008 - frozen
    access: Access,
    uv_cache: Path,
    metadata_cache: Path,
) -> PipHalf:
    """Solve the PyPI half of a recipe on the host's Python: once, for all that it may run on.

    Args:
        loaded: The recipe.
        cutoff: Instant (UTC); a file counts if it was uploaded strictly before it.
        prefer: The old PyPI half, whose versions stay where they can.
        upgrade: What of it may move.
        access: How indexes are reached.
        uv_cache: uv's cache folder.
        metadata_cache: Folder of METADATA by the wheel's SHA-256.

    Raises:
        NoSolution: It cannot be solved, or a Python or platform of the recipe would lack a wheel.
        FetchError: An index is out of reach.
        ToolError: uv is missing or failed.
    """
    needs = pip_needs(loaded.recipe)
    if not needs:
        return PipHalf(packages=(), download_bytes=0)
    range_ = _range(loaded)
    known = ask.sources(loaded, cutoff=cutoff, access=access)
    question = Question(
        requirements=[str(need.requirement) for need in needs],
        python=range_.lowest,
        platform=None,
        universal=True,
        cutoff=cutoff,
        sources=known,
        pins=_pins(prefer, upgrade),
    )

    def answer(question: Question) -> universal.Universal:
        answered = ask.ask(question, solve=lambda one: _compile(one, access, uv_cache))
        return universal.universal(answered, needs, range_, loaded.recipe)

    where = f"Python {loaded.recipe.python} on {', '.join(loaded.recipe.target.platforms)}"
    with ask.explained(loaded, needs, where=where, cutoff=cutoff):
        found = answer(question)
        if found.missing:
            found = _fewest_or_newest(found, question, answer)
        around = Around(
            needs=needs,
            pairs=found.pairs,
            provided={},
            prefer=prefer,
            answered=found.answered,
            sources=known,
        )
        read = metadata_reader(access, known)
        return finish(found.lines, around, read=read, cache=metadata_cache)


def _fewest_or_newest(
    found: universal.Universal,
    question: Question,
    answer: Callable[[Question], universal.Universal],
) -> universal.Universal:
    """Return an answer with other versions for newer Pythons, since one for all lacks wheels.

    Raises:
        NoSolution: That one lacks wheels too, or there is none; names what the first one lacks.
    """
    try:
        other = answer(replace(question, forks="requires-python"))
    except NoSolution:
        other = found
    if other.missing:
        refuse(found.missing)
    return other


def _range(loaded: LoadedRecipe) -> markers.Pythons:
    """Return the Pythons that a recipe on the host's Python is for."""
    range_ = markers.pythons(loaded.recipe.python or "")
    if range_ is None:
        message = f"{loaded.recipe.python or 'nothing'} names no lowest Python 3"
        raise NoSolution(message, hint="write a range such as >=3.11,<3.15")
    return range_


def _compile(question: Question, access: Access, cache: Path, runner: Runner = run) -> uv.Answer:
    engine = uv.Engine(access=access, cache=cache, python=Path(sys.executable), run=runner)
    return uv.compile_lock(question, engine)


def _python(conda: Sequence[CondaPackage]) -> Version:
    """Return the full version of the conda half's Python."""
    for package in conda:
        if package.name == "python":
            return Version(package.version)
    message = "the recipe asks for PyPI packages, but its conda half has no Python"
    raise NoSolution(message, hint="add `python: 3.11` to the recipe")


def _pins(prefer: Iterable[PipPackage], upgrade: Upgrade) -> list[PipPackage]:
    """Return what of the old half has to stay where it can."""
    moving = {canonicalize_name(name) for name in upgrade.packages}
    return [one for one in prefer if not upgrade.everything and one.name not in moving]


def _lines(
    releases: Sequence[Release], python: Version, target: Target, homes: Mapping[str, Source]
) -> list[Line]:
    """Return a line per release for one Python and platform."""
    lines: list[Line] = []
    missing: list[str] = []
    for release in releases:
        wheels = usable(release.wheels, target, (python.major, python.minor))
        if not wheels:
            missing.append(without(release, f"{python.major}.{python.minor}", target.platform))
        lines.append(
            Line(
                name=canonicalize_name(release.name),
                version=release.version,
                marker=None,
                pairs=((python, target.platform),),
                wheels=wheels,
                source=homes[release.name],
            )
        )
    refuse(missing)
    return lines
