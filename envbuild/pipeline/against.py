"""Holding a recipe and its lock against the facts."""

import re
from collections.abc import Iterator
from datetime import date

from envbuild.compat.check import check
from envbuild.compat.model import Facts
from envbuild.compat.subject import Part, Subject, part_of
from envbuild.findings import Finding, Findings, Severity
from envbuild.lock.model import Lock
from envbuild.pipeline import allow
from envbuild.recipe import compilers
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.requirements import pip_needs
from envbuild.recipe.specs import conda_needs
from envbuild.target import Platform

_PYTHON = re.compile(r"\d+\.\d+(?=$|\.)")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_ANY = re.compile(r"\d+\.\d+\.\*")


def against_facts(
    loaded: LoadedRecipe, lock: Lock | None, facts: Facts, *, today: date
) -> Findings:
    """Return what the facts say against a recipe and its lock; what is let through are notes.

    Args:
        loaded: The recipe.
        lock: Its lock; without one the recipe's own exact versions are looked at.
        facts: The tables.
        today: The day (UTC).
    """
    found = [
        finding
        for platform in loaded.recipe.target.platforms
        for finding in (
            *check(subject_of(loaded, lock, platform), facts),
            *_both_halves(loaded, lock, platform),
        )
    ]
    return allow.judge(tuple(found), loaded, today=today)


def subject_of(loaded: LoadedRecipe, lock: Lock | None, platform: Platform) -> Subject:
    """Return what the facts are held against, for one platform."""
    recipe = loaded.recipe
    half = None if lock is None else lock.for_platform(platform)
    places = {
        "gpus": loaded.where("target", "gpus"),
        "driver": loaded.where("target", "driver"),
        "compiler": loaded.where("build", "compiler"),
        "glibc": loaded.where("target", "glibc"),
        "python": loaded.where("python"),
    }
    parts = _pins(loaded) if half is None else (*map(part_of, half.conda), *map(part_of, half.pip))
    return Subject(
        name=recipe.name,
        platform=platform,
        gpus=recipe.target.gpus,
        driver=recipe.target.driver,
        cuda=recipe.triangle.cuda,
        cudnn=recipe.triangle.cudnn,
        compiler=compilers.own(recipe.build.compiler),
        python=_python(loaded, parts),
        glibc=recipe.target.glibc,
        asks_cuda=_asks_cuda(loaded),
        locked=half is not None,
        parts=parts,
        places=places,
    )


def _both_halves(loaded: LoadedRecipe, lock: Lock | None, platform: Platform) -> Iterator[Finding]:
    """Yield CUDA libraries that both halves bring: the lock's, else those that a recipe names."""
    from envbuild.solve.names import cuda_rivals

    half = None if lock is None else lock.for_platform(platform)
    if half is None:
        needs = pip_needs(loaded.recipe)
        wheels = {need.name: need.name for need in needs if need.requirement.marker is None}
        conda = {need.name: need.name for need in conda_needs(loaded.recipe)}
    else:
        wheels = {one.name: f"{one.name} {one.version}" for one in half.pip}
        conda = {one.name: f"{one.name} {one.version}" for one in half.conda}
    for name, wheel in wheels.items():
        for rival in filter(conda.__contains__, cuda_rivals(name)):
            yield Finding(
                code="cuda-from-both",
                severity=Severity.ERROR,
                where=f"{loaded.recipe.name}: {wheel}",
                what=f"{wheel} and conda's {conda[rival]} hold the same CUDA library",
                why="the wheel's users look for it in site-packages/nvidia, conda's in PREFIX/lib,"
                " and a process may load both",
                hint="take the framework that needs it from the same side as the others",
            )


def _python(loaded: LoadedRecipe, parts: tuple[Part, ...]) -> str | None:
    """Return the major and minor version of Python: the locked one, else the recipe's own."""
    locked = next((one for one in parts if (one.kind, one.name) == ("conda", "python")), None)
    told = locked.version if locked else loaded.recipe.python or ""
    match = _PYTHON.match(told)
    return match[0] if match else None


def _asks_cuda(loaded: LoadedRecipe) -> bool:
    recipe = loaded.recipe
    told = recipe.target.gpus or recipe.target.cuda or recipe.triangle.cuda
    return bool(told) or any("cuda" in need.text for need in conda_needs(recipe))


def _pins(loaded: LoadedRecipe) -> tuple[Part, ...]:
    """Return the packages that a recipe asks for in one version."""
    wheels = tuple(
        Part(
            kind="pypi",
            name=need.name,
            version=one.version,
            extras=tuple(sorted(need.requirement.extras)),
        )
        for need in pip_needs(loaded.recipe)
        for one in need.requirement.specifier
        if one.operator == "==" and not one.version.endswith("*")
    )
    conda = tuple(
        Part(
            kind="conda",
            name=need.name,
            version=need.version.removesuffix(".*"),
            build=need.build or "",
        )
        for need in conda_needs(loaded.recipe)
        if need.version and _pinned(need.name, need.version)
    )
    return (*wheels, *conda)


def _pinned(name: str, version: str) -> bool:
    """Say whether a conda version is one; `cuda-version` has two numbers, the release."""
    return bool(_VERSION.fullmatch(version) or (name == "cuda-version" and _ANY.fullmatch(version)))
