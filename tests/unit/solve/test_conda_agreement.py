"""The triangle against the solved conda half."""

from typing import Any

import pytest

from envbuild.findings import Severity
from envbuild.packages import CondaPackage
from envbuild.recipe.model import Recipe, Triangle
from envbuild.solve.agreement import check
from envbuild.solve.conda import triangle_constraints

TRIANGLE = {"cuda": "12.4", "cudnn": "9.1", "framework": "pytorch ==2.4.0"}


def package(text: str) -> CondaPackage:
    name, version, *build = text.split()
    return CondaPackage(name=name, version=version, build=(build or ["0"])[0], url="c/s/f")


def disagreeing(triangle: dict[str, Any], *packages: str) -> dict[str, Severity]:
    recipe = Recipe(name="x", triangle=Triangle(**triangle))
    found = check(recipe, "linux-64", [package(text) for text in packages])
    assert all(finding.code == "triangle-disagrees" for finding in found)
    return {finding.where.split()[1]: finding.severity for finding in found}


@pytest.mark.parametrize(
    "fitting",
    [
        "cuda-version 12.4",
        "cuda-cudart 12.4.99",
        "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
        "cudnn 9.1.1.17",
        "numpy 1.26.4",
        "cuda-cccl 12.9",
    ],
)
def test_what_fits_is_not_named(fitting: str) -> None:
    assert (
        disagreeing({"cuda": "12.4", "cudnn": "9.1", "framework": "pytorch ==2.4.0"}, fitting) == {}
    )


@pytest.mark.parametrize(
    "other",
    [
        "cuda-version 12.6",
        "cuda-nvcc 12.6.20",
        "pytorch 2.4.0 py3.10_cuda12.1_cudnn9.1.0_0",
        "pytorch 2.4.0 cuda126_py310_h1",
        "pytorch 2.4.0 py3.10_cuda12.4_cudnn8.9.2_0",
        "pytorch 2.5.0 py3.10_cuda12.4_cudnn9.1.0_0",
        "libcudnn 9.2.0",
    ],
)
def test_what_the_triangle_contradicts_is_an_error(other: str) -> None:
    assert disagreeing(TRIANGLE, other) == {other.split(maxsplit=1)[0]: Severity.ERROR}


def test_without_a_triangle_parts_are_compared_with_each_other() -> None:
    parts = ("cuda-version 12.6", "cuda-cudart 12.4.99", "cuda-nvcc 12.6.1")
    assert disagreeing({}, *parts) == {"cuda-cudart": Severity.WARNING}
    assert disagreeing({}, "cuda-cudart 12.4.99", "cuda-nvcc 12.6.1") == {}


@pytest.mark.parametrize(
    ("cuda", "version", "fits"),
    [
        ("12", "12.9", True),
        ("12", "11.8", False),
        ("12.4.1", "12.4", True),
    ],
)
def test_a_version_of_the_triangle_is_a_prefix(cuda: str, version: str, *, fits: bool) -> None:
    assert (disagreeing({"cuda": cuda}, f"cuda-version {version}") == {}) is fits


@pytest.mark.parametrize(
    ("framework", "package", "fits"),
    [
        ("pytorch ==2.8.*", "pytorch 2.8.1", True),
        ("torch >=2.4,<2.5", "pytorch 2.5.0", False),
        ("jax ==0.12.0.1", "jax 0.12.0.1", True),
        ("jax ==0.12.0.1", "jax 0.12.0", False),
        ("jax", "jax 0.1", True),
        ("pytorch ==2.4.0", "pytorch 2.4.0_weird", True),
    ],
)
def test_the_framework_is_compared(framework: str, package: str, *, fits: bool) -> None:
    assert (disagreeing({"framework": framework}, package) == {}) is fits


@pytest.mark.parametrize(
    ("triangle", "constraints"),
    [
        ({}, ()),
        ({"cuda": "12.4"}, ("cuda-version 12.4.*",)),
        ({"cuda": "12.4.1"}, ("cuda-version 12.4.*",)),
        ({"cuda": "12"}, ("cuda-version 12.*",)),
        ({"cudnn": "9.1"}, ("cudnn 9.1.*", "libcudnn 9.1.*")),
        ({"framework": "pytorch ==2.4.0"}, ()),
    ],
)
def test_constraints_of_the_triangle(triangle: dict[str, str], constraints: tuple[str]) -> None:
    assert triangle_constraints(Triangle(**triangle)) == constraints
