"""What a recipe says that a host must have; what it does not say is null."""

import json
from pathlib import Path

import pytest

from envbuild.errors import StoreError
from envbuild.recipe.model import Recipe
from envbuild.store import needs
from envbuild.store.layout import Store
from envbuild.target import Need


def test_what_the_recipe_says_has_an_origin_and_the_rest_is_null() -> None:
    recipe = Recipe.model_validate(
        {
            "name": "demo",
            "target": {
                "gpus": ["h100", "h200"],
                "driver": ">=550.54",
                "driver_branches": ["R550", "580"],
                "glibc": "2.28",
            },
            "triangle": {"cuda": "12.4"},
        }
    )
    found = needs.from_recipe(recipe, "linux-64")
    assert found.driver == Need(value=">=550.54", origin="recipe")
    assert found.gpus == Need(value="h100,h200", origin="recipe")
    assert found.branches == Need(value="R550,R580", origin="recipe")
    assert found.glibc == Need(value=">=2.28", origin="recipe")
    assert found.cuda == Need(value="12.4", origin="recipe")
    assert found.codes == found.floor == Need(value=None, origin=None)
    data = json.loads(needs.dumps(found))
    assert data["version"] == 1
    assert data["codes"] == {"value": None, "origin": None}


def test_a_recipe_without_cards_needs_none() -> None:
    bare = needs.from_recipe(Recipe.model_validate({"name": "demo"}), "linux-64")
    assert bare.driver == bare.gpus == bare.cuda == Need(value="none", origin="recipe")
    assert bare.platform == Need(value="linux-64", origin="recipe")
    assert bare.cpu == Need(value="x86_64", origin="recipe")


@pytest.mark.parametrize(
    ("texts", "most"),
    [
        (("2G",), str(2 << 30)),
        (("40GB", "2G"), str(40 << 30)),
        (("1G", "1.5G"), str(3 << 29)),
        (("4096",), "4096"),
        (("512MB", "80%", "infinity"), str(512 << 20)),
        (("80%",), "none"),
    ],
)
def test_the_most_memory_that_a_service_may_take_is_a_need(
    texts: tuple[str, ...], most: str
) -> None:
    services = {
        f"s{number}": {"exec": "true", "limits": {"memory_max": text}}
        for number, text in enumerate(texts)
    }
    recipe = Recipe.model_validate({"name": "demo", "services": services})
    found = needs.from_recipe(recipe, "linux-64")
    assert found.memory == Need(value=most, origin="recipe")


def test_what_an_earlier_version_wrote_is_unknown_beyond_that() -> None:
    need = {"value": None, "origin": None}
    text = {"version": 1, **dict.fromkeys(("driver", "gpus", "glibc", "cuda"), need)}
    found = needs.loads(json.dumps(text))
    assert found.codes == found.platform == Need(value=None, origin=None)


def test_what_is_written_is_read() -> None:
    found = needs.from_recipe(Recipe.model_validate({"name": "demo"}), "linux-64")
    assert needs.loads(needs.dumps(found)) == found


@pytest.mark.parametrize("text", ["{", "{}", '{"version": 2}', '{"version": 1, "driver": {}}'])
def test_damaged_needs_are_refused(tmp_path: Path, text: str) -> None:
    generation = Store(root=tmp_path).place("demo").generation("0" * 16)
    generation.own.mkdir(parents=True)
    generation.needs.write_text(text)
    with pytest.raises(StoreError, match=r"needs\.json is no list of needs") as caught:
        needs.read(generation)
    assert caught.value.hint == "envbuild create demo --reinstall"


def test_missing_needs_are_refused(tmp_path: Path) -> None:
    generation = Store(root=tmp_path).place("demo").generation("0" * 16)
    with pytest.raises(StoreError, match="cannot be read"):
        needs.read(generation)
