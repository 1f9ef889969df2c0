"""glibc that libraries need, above what the recipe says."""

import pytest

from envbuild.findings import Finding, Severity
from envbuild.native.model import Version
from envbuild.recipe.model import Recipe
from envbuild.store import glibc, needs
from envbuild.store.libraries import READ, Libraries, Library
from envbuild.target import Need, Needs

_RECIPES = Need(value=">=2.28", origin="recipe")


def _needs() -> Needs:
    recipe = Recipe.model_validate({"name": "demo", "target": {"glibc": "2.28"}})
    return needs.from_recipe(recipe, "linux-64")


def _read(**floors: Version | None) -> Libraries:
    """Return a library per package: `pypi_k` is `pypi:k`."""
    return {
        name.replace("_", ":"): {
            f"{name}.so": Library(codes="", glibc=floor, glibcxx=None, rpath=(), runpath=())
        }
        for name, floor in floors.items()
    }


def _noted(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(
        Finding(code=one.code, severity=Severity.NOTE, where=one.where, what=one.what)
        for one in found
    )


@pytest.mark.parametrize("floor", [None, (2, 4), (2, 28)])
def test_what_the_recipe_lets_in_is_enough(floor: Version | None) -> None:
    read = _read(pypi_k=floor)
    assert glibc.lacking(read, _needs()) == ()
    assert glibc.completed(_needs(), read, (), packed=True).glibc == _RECIPES


def test_a_wheel_that_needs_more() -> None:
    read = _read(pypi_k=(2, 34), pypi_old=(2, 17))
    (found,) = glibc.lacking(read, _needs())
    assert (found.code, found.severity, found.where) == ("glibc-floor", "warning", "pypi:k")
    assert found.what == "it needs glibc 2.34, and the target may have 2.28: pypi_k.so"
    completed = glibc.completed(_needs(), read, (found,), packed=False)
    assert completed.glibc == Need(value=">=2.34", origin=READ)
    assert glibc.completed(_needs(), read, _noted((found,)), packed=False).glibc == _RECIPES


def test_condas_packages_are_their_solvers_and_the_machines_python_is_the_machines() -> None:
    read = _read(conda_python=(2, 35), conda_sysroot=(2, 39))
    assert glibc.lacking(read, _needs()) == ()
    assert glibc.completed(_needs(), read, (), packed=False).glibc == _RECIPES
    packed = glibc.completed(_needs(), read, (), packed=True)
    assert packed.glibc == Need(value=">=2.35", origin=READ)
