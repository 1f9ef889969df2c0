"""`envbuild new` and `envbuild schema`, from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from envbuild.cli.commands.new import ask
from envbuild.cli.main import main
from envbuild.recipe.load import load
from envbuild.recipe.schema import schema

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_make_a_recipe(folder: Path, capsys: Capture) -> None:
    words = ["new", "train", "--python", "3.11", "--framework", "pytorch==2.4.0", "--gpu", "H100"]
    words += ["--cuda", "12.4", "--conda", "gxx_linux-64=12", "--pypi", "rich", "-p", "linux-64"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.out == "recipes/train.yaml\n"
    assert captured.err.startswith("next: ")
    assert captured.err.endswith(" lock train\n")
    recipe = load("train", [folder / "recipes"]).recipe
    assert recipe.conda == ("gxx_linux-64 12.*",)
    assert recipe.pypi == ("torch ==2.4.0", "rich")
    assert recipe.target.gpus == ("h100",)
    assert recipe.triangle.cuda == "12.4"


def test_nothing_is_overwritten_without_force(folder: Path, capsys: Capture) -> None:
    assert main(["new", "x", "--host"]) == 0
    before = (folder / "recipes/x.yaml").read_text()
    capsys.readouterr()
    assert main(["new", "x"]) == 2
    assert capsys.readouterr().err == (
        "error: recipes/x.yaml is there already\nhint: --force overwrites it\n"
    )
    assert (folder / "recipes/x.yaml").read_text() == before
    assert main(["new", "x", "--force"]) == 0
    assert (folder / "recipes/x.yaml").read_text() != before


def test_place_of_the_recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVBUILD_RECIPES", f"{folder}/mine:{folder}/other")
    assert main(["new", "x"]) == 0
    assert (folder / "mine/x.yaml").is_file()
    (folder / "told").mkdir()
    assert main(["new", "x", "--recipes", "told"]) == 0
    assert (folder / "told/x.yaml").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["../x"],
        ["x", "--python", "three"],
        ["x", "--cuda", "twelve"],
        ["x", "--gpu", "a,b"],
        ["x", "--conda", "a =="],
        ["x", "--pypi", "a @ https://x.test"],
        ["x", "--framework", "a b"],
        ["x", "--channel", "defaults"],
        ["x", "--host", "--conda", "numpy"],
        ["x", "--pypi", "a", "--pypi", "a<2"],
        ["x", "--from", "missing.yml"],
        [],
    ],
)
def test_wrong_command_lines(folder: Path, capsys: Capture, words: list[str]) -> None:
    assert main(["new", *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (folder / "recipes").exists()


def test_from_another_tools_file(folder: Path, capsys: Capture) -> None:
    file = folder / "environment.yml"
    file.write_text("channels: [conda-forge, defaults]\ndependencies: [python=3.11, numpy]\n")
    assert main(["new", "x", "--from", "environment.yml", "--pypi", "rich"]) == 0
    assert "note: environment.yml:1:25: 'defaults' stands for" in capsys.readouterr().err
    recipe = load("x", [folder / "recipes"]).recipe
    assert (recipe.python, recipe.conda, recipe.pypi) == ("3.11", ("numpy",), ("rich",))


def test_from_a_file_with_a_bad_line(folder: Path, capsys: Capture) -> None:
    (folder / "requirements.txt").write_text("numpy\n-e .\n")
    assert main(["new", "x", "--from", "requirements.txt"]) == 3
    assert capsys.readouterr().err.startswith(
        "error: requirements.txt:2:1: an editable project has no release"
    )
    assert not (folder / "recipes").exists()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            "\n\n\n\n",
            {"host": False, "python": "3.12", "framework": None, "gpus": ()},
        ),
        (
            "conda\nfour\n3.11\npytorch==2.4.0\nH100\n12.4\n",
            {
                "host": False,
                "python": "3.11",
                "framework": "pytorch ==2.4.0",
                "gpus": ("h100",),
                "cuda": "12.4",
            },
        ),
        ("host\n3.13\njax\n\n", {"host": True, "python": "3.13", "framework": "jax", "gpus": ()}),
    ],
)
def test_questions(answers: str, expected: dict[str, object]) -> None:
    with CliRunner().isolation(input=answers):
        assert ask() == expected


def test_schema(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
