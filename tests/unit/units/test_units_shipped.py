"""The units of every recipe that ships, whole."""

from collections.abc import Callable
from pathlib import Path

import pytest
from unit.units.rendering import origin

import envbuild
from envbuild.recipe.load import available, load
from envbuild.units.model import Manager
from envbuild.units.render import Templates, render

_RECIPES = Path(envbuild.__file__).parent / "recipes"
_GOLDEN = Path(__file__).parents[2] / "golden/units"
_INTERPRETER = f"/usr/bin/python3.11 (3.11.2, sha256 {'ab' * 32})"


@pytest.mark.parametrize("name", available((_RECIPES,)))
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    loaded = load(name, (_RECIPES,))
    interpreter = _INTERPRETER if loaded.recipe.on_host_python else None
    files = render(loaded, origin(name, interpreter=interpreter), Manager(), Templates())
    for file in files:
        golden(f"units/{name}/{file.name}", file.text)
    known = {path.name for path in (_GOLDEN / name).glob("*")}
    assert known == {file.name for file in files}


def test_every_golden_is_of_a_recipe() -> None:
    assert {path.name for path in _GOLDEN.iterdir()} <= {*available((_RECIPES,))}
