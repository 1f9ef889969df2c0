"""What the layers do not say: small modules, empty packages, commands in the table, no hosts."""

import ast
from pathlib import Path

import pytest

import envbuild
from envbuild.cli.table import HELP

_PACKAGE = Path(envbuild.__file__).parent
_ROOT = Path(__file__).parents[2]
_MODULES = sorted(_PACKAGE.rglob("*.py"))
_LONGEST = 400
_REGISTRIES = tuple(
    "".join(parts) for parts in [("py", "pi.org"), ("python", "hosted.org"), ("npm", "js.org")]
)


@pytest.mark.parametrize("module", _MODULES, ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_modules_are_short_and_say_what_they_own(module: Path) -> None:
    text = module.read_text()
    assert text.count("\n") <= _LONGEST
    body = ast.parse(text).body
    assert ast.get_docstring(ast.parse(text))
    if module.name == "__init__.py" and module.parent != _PACKAGE:
        assert len(body) == 1


def test_the_table_lists_the_commands() -> None:
    modules = {
        path.stem.replace("_", "-") for path in (_PACKAGE / "cli/commands").glob("[a-z]*.py")
    }
    assert modules == set(HELP)


def test_no_registry_is_named() -> None:
    """What is reached is for the user's settings and the engines to say."""
    folders = (
        "envbuild",
        "tests",
        "recipes",
        "lockfiles",
        "templates",
        "docs",
        "benchmarks",
        ".ci",
    )
    named = [
        str(path.relative_to(_ROOT))
        for folder in folders
        for path in (_ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".zst", ".whl", ".conda"}
        if any(host.encode() in path.read_bytes() for host in _REGISTRIES)
    ]
    assert named == []
