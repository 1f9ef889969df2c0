"""The conda half of the recipes that ship, and what it says when one cannot be solved."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.channel_server import SNAPSHOT, serve, snapshot_mirrors

from envbuild.access import Access
from envbuild.errors import NoSolution, RecipeError
from envbuild.findings import Severity
from envbuild.recipe import load
from envbuild.solve import conda
from envbuild.solve.conda import CondaHalf
from envbuild.target import PLATFORMS

NOW = datetime(2026, 12, 1, tzinfo=UTC)
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def access() -> Iterator[Access]:
    with serve(SNAPSHOT) as server:
        yield Access(channel_mirrors=snapshot_mirrors(server))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def half(loaded: load.LoadedRecipe, access: Access, cache: Path) -> CondaHalf:
    return conda.half(
        loaded,
        loaded.recipe.target.platforms,
        cutoff=NOW,
        prefer={},
        access=access,
        cache=cache,
    )


@pytest.mark.parametrize(
    "name",
    [
        "h100-pt24",
        "h100-pt24-wheel",
        "h100-pt28",
        "b200-pt28",
        "h100-jax",
        "a100-jax0428",
        "cpu-arm",
        "torch-from-source",
    ],
)
def test_a_recipe_that_ships_solves_and_agrees(name: str, access: Access, cache: Path) -> None:
    loaded = load.load(name, [RECIPES])
    found = half(loaded, access, cache)
    assert tuple(found.platforms) == loaded.recipe.target.platforms
    assert all(packages for packages in found.platforms.values())
    codes = {finding.code for finding in found.findings}
    assert codes <= {"weak-hash", "no-upload-time"}
    assert ("weak-hash" in codes) == (name in {"h100-pt24", "torch-from-source"})


TWO_PLATFORMS = """\
name: two
target:
  platforms: [linux-aarch64, linux-64]
python: "3.12"
channels: [conda-forge]
"""


def test_two_platforms_are_solved_in_the_order_asked(access: Access, cache: Path) -> None:
    loaded = load.loads(TWO_PLATFORMS, source="two.yaml")
    found = half(loaded, access, cache)
    assert list(found.platforms) == ["linux-aarch64", "linux-64"]
    for platform, packages in found.platforms.items():
        python = next(package for package in packages if package.name == "python")
        assert python.subdir == platform
        assert {package.subdir for package in packages} <= {platform, "noarch"}
    same = conda.half(
        loaded, PLATFORMS, cutoff=NOW, prefer={}, access=access, cache=cache
    ).platforms
    assert same == found.platforms


DISAGREEING = """\
name: disagreeing
target:
  cuda: "12.6"
triangle:
  cudnn: "9.1"
python: "3.10"
channels: [nvidia/label/cuda-12.4.0, nvidia, pytorch, conda-forge]
conda:
  - pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0
  - pytorch-cuda 12.4.*
  - cuda-version 12.6.*
  - numpy <2
"""


def test_old_cuda_parts_beside_a_newer_cuda_version_are_named(access: Access, cache: Path) -> None:
    found = half(load.loads(DISAGREEING, source="disagreeing.yaml"), access, cache)
    said = [finding for finding in found.findings if finding.code == "triangle-disagrees"]
    assert {finding.severity for finding in said} == {Severity.WARNING}
    where = {finding.where.split()[1] for finding in said}
    assert {"pytorch", "pytorch-cuda", "cuda-cudart"} <= where


UNSOLVABLE = """\
name: unsolvable
python: "3.13"
channels: [pytorch, conda-forge]
triangle:
  cuda: "12.4"
conda:
  - numpy
  - pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0
"""


def test_the_reason_stands_beside_the_specs_with_their_lines(access: Access, cache: Path) -> None:
    loaded = load.loads(UNSOLVABLE, source="unsolvable.yaml")
    with pytest.raises(NoSolution) as info:
        half(loaded, access, cache)
    error = info.value
    assert error.exit_code == 4
    assert error.message == "unsolvable: conda finds no solution for linux-64"
    assert "python >=3.10,<3.11.0a0, for which no candidates were found" in error.details
    assert "unsolvable.yaml:2:" in error.details
    assert "unsolvable.yaml:8:" in error.details
    assert "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0" in error.details
    assert "if installed: cuda-version 12.4.*" in error.details
    assert "uploaded before 2026-12-01T00:00:00Z" in error.details


UNLISTED = """\
name: unlisted
python: "3.12"
channels: [conda-forge]
conda:
  - bioconda::samtools
"""


def test_a_spec_of_an_unlisted_channel_is_refused(access: Access, cache: Path) -> None:
    with pytest.raises(RecipeError) as info:
        half(load.loads(UNLISTED, source="u.yaml"), access, cache)
    assert any("bioconda" in problem and "u.yaml:5:" in problem for problem in info.value.problems)
