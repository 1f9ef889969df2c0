"""Every folder of `tests/data/cases/recipe`: a recipe, with its problems or what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from envbuild.errors import RecipeError
from envbuild.recipe.load import load

CASES = Path(__file__).parents[2] / "data/cases/recipe"


def names() -> list[str]:
    return sorted(folder.name for folder in CASES.iterdir())


def contains(found: Any, expected: Any, place: str = "") -> None:  # noqa: ANN401
    """Fail unless `found` has everything of `expected`; lists have to be equally long."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            contains(found[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            contains(found[number], value, f"{place}[{number}]")
    else:
        assert found == expected, place


@pytest.mark.parametrize("name", names())
def test_case(name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    folder = CASES / name
    monkeypatch.chdir(folder)
    expected = folder / "expected.json"
    if expected.exists():
        loaded = load("x", [Path()])
        contains(loaded.recipe.model_dump(mode="json"), json.loads(expected.read_text()))
        return
    with pytest.raises(RecipeError) as caught:
        load("x", [Path()])
    text = "\n".join(caught.value.problems or [caught.value.message]) + "\n"
    if request.config.getoption("--update-golden"):
        (folder / "problems.txt").write_text(text)
    assert text == (folder / "problems.txt").read_text()
