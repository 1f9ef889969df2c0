"""Names of units."""

from itertools import product

import pytest

from envbuild.errors import RecipeError
from envbuild.recipe.load import loads
from envbuild.units import names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100-pt24", "envbuild-h100\\x2dpt24.slice"),
        ("h100.pt24", "envbuild-h100.pt24.slice"),
        ("a b", "envbuild-a\\x20b.slice"),
        ("größe", "envbuild-gr\\xc3\\xb6\\xc3\\x9fe.slice"),
    ],
)
def test_slices(name: str, expected: str) -> None:
    assert names.slice_of(name) == expected


@pytest.mark.parametrize("name", ["a b", "größe"])
def test_such_names_are_none_of_a_recipe(name: str) -> None:
    with pytest.raises(RecipeError):
        loads(f"name: {name}\n", source=f"{name}.yaml")


_RECIPES = ["a", "b", "a.a", "a-a", "a.b", "a-b", "a_b", "a.b.a", "a.-b", "A", "a--b", "0"]
_SERVICES = ["a", "b", "a-a", "a-b", "b-a", "_", "A"]


def test_no_two_services_get_one_name() -> None:
    every = [
        names.service_unit(name, service, kind)
        for name, service in product(_RECIPES, _SERVICES)
        for kind in ("service", "template")
    ]
    every += [names.slice_of(name) for name in _RECIPES]
    assert len(set(every)) == len(every)


def test_a_service_has_no_dot_in_its_name() -> None:
    with pytest.raises(RecipeError, match="a name of at most 64"):
        loads("name: x\nservices: {a.b: {exec: x}}", source="x.yaml")


@pytest.mark.parametrize("name", [*_RECIPES, "x" * 64, "9.9" * 21, "h100-pt24"])
def test_the_user_of_an_environment_is_a_users_name(name: str) -> None:
    user = names.dynamic_user(name)
    assert len(user) <= 31
    assert set(user) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def test_users_of_two_environments_differ() -> None:
    pairs = ["a.b", "a-b", "x" * 64, "x" * 63, "x" * 28]
    assert len({names.dynamic_user(name) for name in pairs}) == len(pairs)


def test_what_belongs_to_an_environment() -> None:
    for name in ("a", "a.b", "a-b"):
        assert names.belongs(names.service_unit(name, "c", "template"), name)
        assert names.belongs(names.slice_of(name), name)
        assert not names.belongs(names.service_unit(f"{name}.z", "c", "service"), name)
    assert not names.belongs(names.NODES, "gpu-nodes")
