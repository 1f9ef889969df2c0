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
            "target": {"gpus": ["h100", "h200"], "driver": ">=550.54", "glibc": "2.28"},
            "triangle": {"cuda": "12.4"},
        }
    )
    found = needs.from_recipe(recipe)
    assert found.driver == Need(value=">=550.54", origin="recipe")
    assert found.gpus == Need(value="h100,h200", origin="recipe")
    assert found.glibc == Need(value=">=2.28", origin="recipe")
    assert found.cuda == Need(value="12.4", origin="recipe")
    bare = needs.from_recipe(Recipe.model_validate({"name": "demo"}))
    assert bare.driver == bare.gpus == bare.cuda == Need(value=None, origin=None)
    data = json.loads(needs.dumps(bare))
    assert data["version"] == 1
    assert data["cuda"] == {"value": None, "origin": None}


def test_what_is_written_is_read() -> None:
    found = needs.from_recipe(Recipe.model_validate({"name": "demo"}))
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
