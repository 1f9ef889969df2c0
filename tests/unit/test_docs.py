"""The documents name what there is: keys, variables, commands, findings, files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import finding_pages
import pytest
from pydantic import BaseModel

import envbuild
from envbuild.cli.table import ALIASES, HELP
from envbuild.recipe.model import Allow, Build, Index, Recipe, Smoke, TargetWish, Triangle

_ROOT = Path(__file__).parents[2]
_PACKAGE = Path(envbuild.__file__).parent
_SOURCES = {path: path.read_text() for path in _PACKAGE.rglob("*.py")}
_FINDINGS = _ROOT / "docs/findings"
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_BUILT_IN_PARTS = {"ENVBUILD_", "ENVBUILD_OLD_", "ENVBUILD_COMPLETE", "ENVBUILD_SHELL"}


def _document(name: str) -> str:
    return (_ROOT / name).read_text()


@pytest.mark.parametrize("part", [Recipe, TargetWish, Triangle, Index, Build, Smoke, Allow])
def test_every_key_of_a_recipe_is_described(part: type[BaseModel]) -> None:
    text = _document("docs/recipe.md")
    assert [
        key for key in part.model_fields if f"`{key}" not in text and f"{key}:" not in text
    ] == []


def test_every_variable_is_described() -> None:
    text = _document("docs/configuration.md")
    named = {
        name for source in _SOURCES.values() for name in re.findall(r"\bENVBUILD_[A-Z_]*", source)
    }
    flags = {
        f"ENVBUILD_{name}"
        for source in _SOURCES.values()
        for name in re.findall(r"\.flag\(\"(\w+)\"\)", source)
    }
    assert flags
    assert [name for name in (named | flags) - _BUILT_IN_PARTS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", [*HELP, *ALIASES])
def test_every_command_is_described(name: str) -> None:
    assert f"`{name}" in _document("docs/cli.md")


def _documented() -> set[str]:
    return {page.code for page in finding_pages.read(_FINDINGS)}


def _codes(call: ast.Call) -> Iterator[object]:
    """Give what a call may name as a finding's code: `code=`, or what a helper gets first."""
    for keyword in call.keywords:
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
            yield keyword.value.value
    if isinstance(call.func, ast.Name) and call.func.id in {"_finding", "_error"} and call.args:
        first = call.args[0]
        yield first.value if isinstance(first, ast.Constant) else None


def test_every_finding_is_described() -> None:
    codes = {
        code
        for source in _SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        for code in _codes(node)
        if isinstance(code, str) and _CODE.fullmatch(code)
    }
    assert codes
    missing = sorted(f"docs/findings/{code}.md" for code in codes - _documented())
    assert missing == [], "one page a code: write it by the model of docs/findings/weak-hash.md"


@pytest.mark.parametrize("page", finding_pages.read(_FINDINGS), ids=lambda page: page.code)
def test_a_finding_has_all_its_parts(page: finding_pages.FindingPage) -> None:
    example = re.search(
        r"^```text\n(error|warning|note): .* \[([a-z0-9-]+)\]\n", page.body, re.MULTILINE
    )
    assert example, "an example in ```text, as `envbuild` prints it"
    assert example[2] == page.code
    assert example[1] in page.severity
    headings = re.findall(r"^#+ (.+)$", page.body, re.MULTILINE)
    assert headings == [page.code, "Why", "What to do"]


def test_no_finding_is_described_that_is_not_there() -> None:
    whole = "\n".join(_SOURCES.values())
    for code in _documented():
        part = code.removeprefix("lock-")
        assert any(f'"{name}"' in whole for name in (code, part, part.replace("-", "_"))), code


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(f"{path.relative_to(_ROOT)}" for path in _ROOT.glob("docs/**/*.md")),
    ],
)
def test_links_lead_somewhere(name: str) -> None:
    text = _document(name)
    folder = (_ROOT / name).parent
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    for link in links:
        path, _, anchor = link.partition("#")
        target = folder / path if path else _ROOT / name
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            anchors = {
                re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings
            }
            assert anchor in anchors, link
