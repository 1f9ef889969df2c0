"""What the solvers are told about the machine."""

from envbuild.recipe.model import Recipe, TargetWish, Triangle
from envbuild.recipe.targets import target
from envbuild.target import Target


def test_cuda_is_the_targets_then_the_triangles_then_none() -> None:
    assert target(Recipe(name="x"), "linux-64") == Target(platform="linux-64")
    recipe = Recipe(name="x", triangle=Triangle(cuda="12.4"), target=TargetWish(glibc="2.17"))
    assert target(recipe, "linux-64") == Target(platform="linux-64", glibc="2.17", cuda="12.4")
    recipe = Recipe(name="x", triangle=Triangle(cuda="12.4"), target=TargetWish(cuda="12.8"))
    assert target(recipe, "linux-aarch64").cuda == "12.8"


def test_archspec_only_where_it_fits() -> None:
    recipe = Recipe(name="x", target=TargetWish(archspec="x86_64_v3"))
    assert target(recipe, "linux-64").archspec == "x86_64_v3"
    assert target(recipe, "linux-aarch64").archspec is None
    assert (
        target(Recipe(name="x", target=TargetWish(archspec="zen4")), "linux-64").archspec == "zen4"
    )
