"""An interpreter that is added later is taken by the next create, which is else a no-op."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.host_pythons import pythons

from envbuild.channel import added, host
from envbuild.channel.host import Wish
from envbuild.channel.interpreter import ask
from envbuild.cli.main import main
from envbuild.lock.files import dumps
from envbuild.lock.freeze import freeze
from envbuild.recipe.load import load
from envbuild.solve.solution import PlatformSolution, Solution
from envbuild.target import PLATFORMS

RECIPE = """
name: bare
python: ">=3.11,<3.15"
channels: [host]
target: {platforms: [linux-64, linux-aarch64]}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe without packages, its lock, and the settings of a command line."""
    recipes, locks = tmp_path / "recipes", tmp_path / "locks"
    recipes.mkdir()
    (recipes / "bare.yaml").write_text(RECIPE)
    recipe = load("bare", [recipes]).recipe
    solution = Solution(
        platforms=tuple(PlatformSolution(platform=each, conda=(), pip=()) for each in PLATFORMS),
        cutoff=datetime(2026, 1, 1, tzinfo=UTC),
    )
    (locks / "bare").mkdir(parents=True)
    for name, text in dumps(freeze(recipe, solution)).files.items():
        (locks / "bare" / name).write_text(text)
    settings = {"STORE": tmp_path / "store", "RECIPES": recipes, "LOCKFILES": locks, "COMPILE": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(f"ENVBUILD_{name}", str(value))
    monkeypatch.delenv("ENVBUILD_PYTHON", raising=False)
    return tmp_path / "store"


def create(capsys: pytest.CaptureFixture[str]) -> tuple[str, bool]:
    """Run `create`; return the generation and whether it was built now."""
    assert main(["create", "bare", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    return told["generation"], told["built"]


def test_create_takes_what_was_added(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = ask(Path(sys.executable))
    others = [path for path in pythons().values() if ask(path).minor != running.minor]
    if not others:
        pytest.skip("one CPython that can be packed, and another is needed")
    first, built = create(capsys)
    assert built
    assert create(capsys) == (first, False)

    python = host.choose("", Wish(option=str(others[0])))
    added.add_python(python, store / "channels")
    second, built = create(capsys)
    assert built
    assert second != first
    assert create(capsys) == (second, False)
    assert main(["info", "bare", "--json"]) == 0
    assert python.version in capsys.readouterr().out
