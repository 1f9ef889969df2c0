"""The documents name what there is: keys, variables, commands, findings, files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import command_pages
import error_pages
import finding_pages
import pytest
import recipe_page
import setting_page
import yaml
from pydantic import BaseModel

import envbuild
from envbuild import errors
from envbuild.cli.main import commands
from envbuild.cli.options import EVERYWHERE
from envbuild.cli.table import HELP
from envbuild.config import files
from envbuild.config.keys import KEYS
from envbuild.pipeline.pages import FindingPage
from envbuild.recipe.load import loads
from envbuild.recipe.service import Part

_ROOT = Path(__file__).parents[2]
_PACKAGE = Path(envbuild.__file__).parent
_SOURCES = {path: path.read_text() for path in _PACKAGE.rglob("*.py")}
_FINDINGS = _ROOT / "docs/findings"
_IN_A_MESSAGE = re.compile(r" \[([a-z]+(?:-[a-z]+)+)\]\"")
_PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(_ROOT).as_posix() for path in _ROOT.glob("docs/**/*.md")),
]
_MADE = {"docs/recipe-keys.md", "docs/changelog.md", *(f"docs/commands/{x}.md" for x in HELP)}
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_BUILT_IN_PARTS = {"ENVBUILD_", "ENVBUILD_OLD_", "ENVBUILD_COMPLETE", "ENVBUILD_SHELL"}


def _document(name: str) -> str:
    return (_ROOT / name).read_text()


def _parts() -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    waiting: list[type[BaseModel]] = [Part]
    while waiting:
        below = waiting.pop().__subclasses__()
        found += below
        waiting += below
    return found


@pytest.mark.parametrize("part", _parts())
def test_every_key_of_a_recipe_is_described(part: type[BaseModel]) -> None:
    text = recipe_page.page()
    for key, field in part.model_fields.items():
        assert field.description, key
        assert re.search(rf"^### (.*\.)?{key}$", text, re.MULTILINE), key


def test_every_key_of_a_recipe_has_an_example_or_keys_of_its_own() -> None:
    _, *keys = re.split(r"^### ", recipe_page.page(), flags=re.MULTILINE)
    assert [key for key in keys if "- Example: " not in key and "[its keys]" not in key] == []


@pytest.mark.parametrize("part", _parts())
def test_examples_may_be_written_so(part: type[BaseModel]) -> None:
    count = max(len(field.examples or ()) for field in part.model_fields.values())
    for turn in range(count):
        part.model_validate(
            {
                key: field.examples[turn % len(field.examples)]
                for key, field in part.model_fields.items()
                if field.examples
            }
        )


def test_every_variable_is_described() -> None:
    text = _document("docs/configuration.md") + setting_page.table({})
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


def test_every_command_has_a_page() -> None:
    pages = command_pages.pages()
    assert pages.keys() == {f"{name}.md" for name in HELP}
    assert "`--locked` | `ENVBUILD_LOCKED` |" in pages["create.md"]
    assert "`--locks DIR` | `ENVBUILD_LOCKFILES` |" in pages["create.md"]
    assert "`--python PATH` | `ENVBUILD_PYTHON` |" in pages["create.md"]
    assert [name for name in pages if "`ENVBUILD_PYTHON`" in pages[name]] == [
        "create.md",
        "units.md",
    ]
    assert "## add-python" in pages["channel.md"]
    assert "envbuild run quickstart -- python" in pages["run.md"]
    assert "125 where envbuild itself fails" in pages["run.md"]
    for name in HELP:
        assert f"(commands/{name}.md)" in command_pages.tables()


def test_every_setting_is_in_the_table_with_its_option() -> None:
    table = setting_page.table(command_pages.options())
    for key in KEYS:
        assert f"| `{key.name}` | {key.about} |" in table
    assert re.search(r"^\| `store` .* `ENVBUILD_STORE` \| `--store DIR` \|$", table, re.MULTILINE)
    assert "`ENVBUILD_LOCKFILES` | `--locks DIR` |" in table


def _typed(text: str) -> Iterator[str]:
    """Give every command line of ours in a page's code, up to where another program's begins."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    code = [line for block in blocks for line in block.splitlines()]
    code += re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    for line in code:
        for found in re.finditer(r"(?:^|[\s(\"])envbuild ([a-z][^|&;#`)]*)", line):
            yield found[1].partition(" -- ")[0]


@pytest.mark.parametrize("name", _PAGES)
def test_command_lines_are_ones_that_can_be_typed(name: str) -> None:
    whole = click.Context(commands, info_name="envbuild")
    for line in _typed(_document(name)):
        words = line.split()
        command = commands.get_command(whole, words[0])
        assert command is not None, f"{name}: envbuild {line}"
        if isinstance(command, click.Group) and len(words) > 1 and words[1].isascii():
            below = command.get_command(click.Context(command), words[1])
            command = command if words[1].startswith(("-", "…")) else below
            assert command is not None, f"{name}: envbuild {line}"
        options = {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)}
        options |= {opt for one in EVERYWHERE for opt in one.opts} | {"--help", "-h"}
        told = {
            word.partition("=")[0].rstrip(".,:") for word in words if re.match(r"--?[a-z]", word)
        }
        assert told - options == set(), f"{name}: envbuild {line}"


def test_every_error_has_a_page() -> None:
    pages = {page.code: page for page in error_pages.read(_ROOT / "docs/errors")}
    kinds = {
        name: found.exit_code
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.EnvbuildError)
    }
    assert kinds.pop("EnvbuildError") == 70
    told = {kind: code for code, page in pages.items() for kind in page.kinds}
    assert told.pop("InternalError") == 70
    assert told == kinds, "one page per exit code: docs/errors/CODE.md, its head names the classes"
    assert {125, 130} <= pages.keys()


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
    codes |= {code for text in _SOURCES.values() for code in _IN_A_MESSAGE.findall(text)}
    assert codes
    missing = sorted(f"docs/findings/{code}.md" for code in codes - _documented())
    assert missing == [], "one page a code: write it by the model of docs/findings/weak-hash.md"


@pytest.mark.parametrize("page", finding_pages.read(_FINDINGS), ids=lambda page: page.code)
def test_a_finding_has_all_its_parts(page: FindingPage) -> None:
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
        names = (f'"{name}"' for name in (code, part, part.replace("-", "_")))
        assert any(name in whole for name in (*names, f"[{code}]")), code


def test_every_page_is_in_the_navigation() -> None:
    nav = str(yaml.safe_load(_document("mkdocs.yml"))["nav"])
    for name in _PAGES[2:]:
        page = name.removeprefix("docs/")
        there = f"'{page}'" in nav or f"'{page.rpartition('/')[0]}/'" in nav
        assert there, f"put {page} into the navigation of mkdocs.yml"


@pytest.mark.parametrize("name", _PAGES)
def test_a_recipe_that_is_shown_can_be_read(name: str) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```$", _document(name), re.DOTALL | re.MULTILINE):
        named = re.search(r"^name: (.*)$", block, re.MULTILINE)
        text = block if named else f"name: shown\n{block}"
        if "extends:" not in text:
            loads(text, source=f"{named[1] if named else 'shown'}.yaml")


@pytest.mark.parametrize("name", ["docs/configuration.md", "docs/offline.md"])
def test_a_configuration_that_is_shown_can_be_read(name: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", _document(name), re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        (tmp_path / "config.toml").write_text(block)
        assert files.read(tmp_path / "config.toml", home=tmp_path)


@pytest.mark.parametrize("name", _PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = _document(name)
    folder = (_ROOT / name).parent
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    for link in links:
        path, _, anchor = link.partition("#")
        target = folder / path if path else _ROOT / name
        made = target.resolve().relative_to(_ROOT).as_posix() in _MADE
        assert made or target.exists(), link
        if anchor and not made:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            anchors = {
                re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings
            }
            assert anchor in anchors, link
