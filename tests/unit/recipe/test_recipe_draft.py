"""New recipes: commented, readable by us, and saying what was asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.reader import read
from envbuild.recipe.draft import Draft, scalar, taken_over, write
from envbuild.recipe.foreign import Foreign
from envbuild.recipe.load import loads
from envbuild.recipe.model import Recipe


def recipe_of(**fields: Any) -> Recipe:  # noqa: ANN401
    return loads(write(Draft(name="x", **fields)), source="x.yaml").recipe


def test_nothing_but_a_name() -> None:
    recipe = recipe_of()
    assert (recipe.python, recipe.channels, recipe.pypi) == ("3.12", ("conda-forge",), ())
    assert recipe.smoke.commands == ("python -c \"print('ready')\"",)


def test_everything() -> None:
    recipe = recipe_of(
        python=">=3.11,<3.13",
        platforms=("linux-64", "linux-aarch64"),
        gpus=("h100", "b200"),
        cuda="12.4",
        framework="jax ==0.4.28",
        channels=("https://x.test/c", "conda-forge"),
        conda=("conda-forge::numpy * py311*", "a[build_number='>=1']"),
        pypi=("rich >=13", "pyyaml ; python_version < '3.12'"),
    )
    assert recipe.target.platforms == ("linux-64", "linux-aarch64")
    assert recipe.target.gpus == ("h100", "b200")
    assert recipe.triangle.cuda == "12.4"
    assert recipe.triangle.framework == "jax ==0.4.28"
    assert recipe.pypi == ("jax[cuda12] ==0.4.28", "rich >=13", "pyyaml ; python_version < '3.12'")
    assert recipe.conda == ("conda-forge::numpy * py311*", "a[build_number='>=1']")
    assert recipe.smoke.imports == ("jax",)


def test_on_the_hosts_python() -> None:
    recipe = recipe_of(host=True, python="3.11", pypi=("numpy",), framework="pytorch")
    assert recipe.on_host_python
    assert recipe.pypi == ("torch", "numpy")
    assert recipe.smoke.imports == ("numpy", "torch")


@pytest.mark.parametrize(
    ("framework", "gpus", "cuda", "expected"),
    [
        ("pytorch ==2.4.0", ("h100",), "12.4", ("torch ==2.4.0",)),
        ("jax", (), None, ("jax",)),
        ("jax", ("b200",), "13.0", ("jax[cuda13]",)),
        ("tensorflow", ("a100",), None, ("tensorflow[and-cuda]",)),
        ("onnxruntime >=1.20", (), None, ("onnxruntime >=1.20",)),
    ],
)
def test_the_framework_comes_from_pypi(
    framework: str, gpus: tuple[str, ...], cuda: str | None, expected: tuple[str, ...]
) -> None:
    assert recipe_of(framework=framework, gpus=gpus, cuda=cuda).pypi == expected


def test_the_framework_is_not_asked_for_twice() -> None:
    assert recipe_of(framework="pytorch", pypi=("torch <3",)).pypi == ("torch <3",)


def test_without_a_python() -> None:
    recipe = recipe_of(python=None, conda=("r-base",))
    assert recipe.python is None
    assert recipe.smoke.commands == ()


def test_what_a_foreign_file_says_is_taken_over() -> None:
    foreign = Foreign(channels=["a"], conda=["r-base"])
    assert taken_over(Draft(name="x"), foreign, origin="e.yml").python is None
    foreign = Foreign(channels=["a"], pypi=["rich"])
    draft = taken_over(Draft(name="x"), foreign, origin="evil\nname: y")
    assert draft.python == "3.12"
    assert "# Made from evil?name: y." in write(draft)
    foreign = Foreign(conda=["python 3.11.* *_cpython"], pypi=["rich"])
    assert taken_over(Draft(name="x"), foreign, origin="e.yml").python is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_can_be_written(text: str) -> None:
    document = read(f"a:\n  - {scalar(text)}\n", source="x.yaml")
    assert document.value == {"a": [text.replace("${", "$${")]}


@pytest.mark.parametrize(
    "text", ["3.10", "no", "null", "12", "a: b", "a #b", "- a", "*", "a:", " a"]
)
def test_what_other_readers_take_for_something_else_is_quoted(text: str) -> None:
    assert scalar(text).startswith('"')
