"""Whether the solved conda half agrees with the triangle: CUDA, cuDNN, framework."""

import re
from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import CondaPackage
from envbuild.recipe.model import Recipe
from envbuild.target import Platform

_CUDA_PARTS = (
    "cuda-version",
    "pytorch-cuda",
    "cudatoolkit",
    "cuda",
    "cuda-toolkit",
    "cuda-runtime",
    "cuda-libraries",
    "cuda-cudart",
    "cuda-nvrtc",
    "cuda-nvcc",
    "cuda-nvcc-impl",
    "cuda-compiler",
)
"""Packages whose version begins with the CUDA version that they belong to."""

_CUDNN_PARTS = ("cudnn", "libcudnn")
_FRAMEWORKS = {"torch": "pytorch"}
_MAJOR_DIGITS = 2


def check(recipe: Recipe, platform: Platform, packages: Sequence[CondaPackage]) -> Findings:
    """Compare every part of the conda half that has a CUDA or cuDNN version with the triangle.

    Where the triangle names no CUDA version, the parts are compared with `cuda-version`.

    Returns:
        One `triangle-disagrees` per part: an error where the triangle says otherwise, a warning
        where only the parts differ among each other.
    """
    by_name = {package.name: package for package in packages}
    triangle = recipe.triangle
    findings: list[Finding] = []
    base, severity = triangle.cuda, Severity.ERROR
    if base is None and "cuda-version" in by_name:
        base, severity = by_name["cuda-version"].version, Severity.WARNING
    for package in packages:
        cuda = _cuda_of(package)
        if base is not None and cuda is not None and not _fits(cuda, base, parts=2):
            findings.append(_disagrees(platform, package, f"CUDA {cuda}", f"CUDA {base}", severity))
        cudnn = _cudnn_of(package)
        if triangle.cudnn and cudnn and not _fits(cudnn, triangle.cudnn, parts=4):
            findings.append(
                _disagrees(
                    platform, package, f"cuDNN {cudnn}", f"cuDNN {triangle.cudnn}", Severity.ERROR
                )
            )
    findings += _framework(platform, triangle.framework, by_name)
    return tuple(findings)


def _cuda_of(package: CondaPackage) -> str | None:
    if package.name in _CUDA_PARTS:
        return package.version
    return _in_build(package, r"cuda(\d+\.\d+|\d{3,})")


def _cudnn_of(package: CondaPackage) -> str | None:
    if package.name in _CUDNN_PARTS:
        return package.version
    return _in_build(package, r"cudnn(\d+(?:\.\d+)*)")


def _in_build(package: CondaPackage, pattern: str) -> str | None:
    """Read a version from a build string (`py3.10_cuda12.4_cudnn9.1.0_0`, `cuda129_mkl_…`)."""
    found = re.search(rf"(?:^|_){pattern}(?:_|$|py)", package.build)
    if found is None:
        return None
    text = found[1]
    return text if "." in text else f"{text[:_MAJOR_DIGITS]}.{text[_MAJOR_DIGITS:]}"


def _fits(version: str, wanted: str, *, parts: int) -> bool:
    """Say whether a version begins with the numbers of another one, at most `parts` of them."""
    numbers = wanted.split(".")[:parts]
    return version.split(".")[: len(numbers)] == numbers


def _framework(
    platform: Platform, framework: str | None, by_name: dict[str, CondaPackage]
) -> Findings:
    if framework is None:
        return ()
    wish = Requirement(framework)
    package = by_name.get(_FRAMEWORKS.get(wish.name, wish.name))
    if package is None:
        return ()
    try:
        if wish.specifier.contains(Version(package.version), prereleases=True):
            return ()
    except InvalidVersion:
        return ()  # what cannot be compared is not said to differ
    return (_disagrees(platform, package, package.version, framework, Severity.ERROR),)


def _disagrees(
    platform: Platform, package: CondaPackage, has: str, wanted: str, severity: Severity
) -> Finding:
    return Finding(
        code="triangle-disagrees",
        severity=severity,
        where=f"{platform}: {package.name} {package.version} {package.build}",
        what=f"it is for {has}, the rest for {wanted}",
        why="parts of different CUDA or cuDNN releases load together only by luck",
        hint=f"pin {package.name} in the recipe, or change the triangle",
    )
