"""The wheel holds what the links in the package point at, and works when installed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import envbuild

_ROOT = Path(__file__).parents[2]
_SHIPPED = {
    "recipes": "recipes",
    "lockfiles": "lockfiles",
    "templates": "templates",
    "pages/findings": "docs/findings",
    "pages/errors": "docs/errors",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=_ROOT,
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl")
    return made


def _tracked() -> set[str]:
    return {
        f"envbuild/{folder}/{path.relative_to(_ROOT / source)}"
        for folder, source in _SHIPPED.items()
        for path in (_ROOT / source).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_recipes_locks_templates_and_pages_are_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert _tracked() <= names
    assert "envbuild/py.typed" in names
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.slow
@pytest.mark.network
def test_the_installed_wheel_works_in_any_folder(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", wheel], check=True)

    def said(*words: str) -> str:
        return subprocess.run(
            [venv / "bin/envbuild", "--store", tmp_path / "store", *words],
            cwd=tmp_path,
            env={"HOME": "/dev/null", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert said("--version") == f"envbuild {envbuild.__version__}\n"
    shipped = Path(json.loads(said("info", "--json"))["recipe_folders"][-1])
    assert shipped.is_relative_to(venv)
    assert {path.name for path in shipped.iterdir()} == {
        path.name for path in (_ROOT / "recipes").iterdir()
    }
    assert "answers the recipe" in said("lock", "--check", "quickstart")
