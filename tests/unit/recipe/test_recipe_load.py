"""Finding recipes, extending them, and what is told when one is wrong."""

import hashlib
from pathlib import Path

import pytest

from envbuild.errors import RecipeError, UsageProblem
from envbuild.recipe.load import available, find, load, loads
from envbuild.recipe.model import Recipe
from envbuild.recipe.requirements import pip_needs
from envbuild.recipe.specs import conda_needs

SHIPPED = Path(__file__).parents[3] / "recipes"


def write(folder: Path, name: str, text: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\n{text}")
    return path


def test_first_folder_wins(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(two, "a", "description: second\n")
    write(two, "b")
    folders = [tmp_path / "missing", one, two]
    assert load("a", folders).recipe.description == "second"
    path = write(one, "a", "description: first\n")
    (one / "notes.txt").write_text("x")
    (one / "d.yaml").mkdir()
    assert load("a", folders).recipe.description == "first"
    assert find("a", folders) == path
    assert available(folders) == ("a", "b")


def test_a_path_is_loaded_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x", "a")
    assert load(str(path), []).recipe.name == "a"
    monkeypatch.chdir(tmp_path / "x")
    assert load("a.yaml", []).where("name") == "a.yaml:1:7"
    assert load("./a.yaml", []).source == "a.yaml"


def test_unknown_recipe(tmp_path: Path) -> None:
    write(tmp_path, "quickstart")
    with pytest.raises(RecipeError) as caught:
        load("quikstart", [tmp_path])
    assert caught.value.exit_code == 3
    assert caught.value.message == f"there is no recipe 'quikstart' (looked in {tmp_path})"
    assert caught.value.hint == "did you mean quickstart?"
    with pytest.raises(RecipeError) as caught:
        load("zzz", [])
    assert caught.value.hint == "write one: envbuild new zzz"
    (tmp_path / "old.yml").write_text("name: old")
    with pytest.raises(RecipeError) as caught:
        load("old", [tmp_path])
    assert caught.value.hint == f"recipes end in .yaml: rename {tmp_path}/old.yml"


@pytest.mark.parametrize("name", ["", "..", "-x", "a b", "größe", "x" * 65, "a\nb"])
def test_malformed_name_is_a_usage_problem(name: str) -> None:
    with pytest.raises(UsageProblem):
        load(name, [])


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read: No such file"):
        load(str(tmp_path / "none.yaml"), [])
    with pytest.raises(RecipeError, match="cannot be read: Is a directory"):
        load(f"{tmp_path}/", [])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"name: x\n\xff", "x.yaml:2:1: not UTF-8 text: byte 0xff"),
        (b"\x00\x01\x02", "x.yaml:1:1: not YAML: the character U+0000"),
        (b"", "x.yaml:1:1: the file is empty"),
        (b"- x\n", "x.yaml:1:1: expected a mapping with the keys of a recipe, found a list"),
        (b"x\n", "x.yaml:1:1: expected a mapping with the keys of a recipe, found 'x'"),
        (b"[" * 5000, "nested more than"),
        (b"a: &a [*a]\nname: x\n", "the alias *a contains itself"),
        (b"{}", "x.yaml:1:1: name: is missing"),
    ],
)
def test_hostile_files(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with pytest.raises(RecipeError) as caught:
        load(str(path), [])
    assert expected in "\n".join([caught.value.message, *caught.value.problems])


def test_sources_are_the_chain_with_the_digests_of_the_bytes(tmp_path: Path) -> None:
    base = write(tmp_path / "base", "base")
    base.write_bytes(b"\xef\xbb\xbfname: base\r\ndescription: \xc3\xa4\r\n")
    path = write(tmp_path / "own", "x", "extends: base\nconda: [a, b]\n")
    loaded = load("x", [tmp_path / "own", tmp_path / "base"])
    assert [(source.path, source.sha256) for source in loaded.sources] == [
        (file, hashlib.sha256(file.read_bytes()).hexdigest()) for file in (path, base)
    ]
    assert loaded.recipe.description == "ä"


def test_extends_a_path_relative_to_its_own_file(tmp_path: Path) -> None:
    write(tmp_path / "shared", "base", "python: '3.11'\n")
    path = write(tmp_path / "own", "x", "extends: ../shared/base.yaml\n")
    assert load(str(path), []).recipe.python == "3.11"


def test_extends_itself_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "a", "x", "extends: ../b/x.yaml\n")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RecipeError, match="extends: a circle: "):
        load("x", [tmp_path / "a"])


def test_a_chain_without_end_is_refused() -> None:
    def parent(name: str) -> tuple[str, str]:
        return f"{name}.yaml", f"name: {name}\nextends: {name}x\n"

    with pytest.raises(RecipeError, match="extends: a circle"):
        loads("name: x\nextends: xx", source="x.yaml", read=parent)


def test_extends_without_a_way_to_read() -> None:
    with pytest.raises(RecipeError, match=r"x.yaml:2:10: extends: there is no recipe 'y'"):
        loads("name: x\nextends: y", source="x.yaml")


def test_extends_a_malformed_name(tmp_path: Path) -> None:
    write(tmp_path, "x", "extends: a b\n")
    with pytest.raises(RecipeError, match=r"x.yaml:2:10: extends: expected a name of"):
        load("x", [tmp_path])


def test_places_point_at_the_file_where_the_text_stands() -> None:
    texts = {"base": "name: base\npypi: [numpy]\nconda:\n  - python 3.11.*\n"}
    loaded = loads(
        "name: x\nextends: base\npypi:\n  - rich\n",
        source="r/x.yaml",
        read=lambda name: (f"r/{name}.yaml", texts[name]),
    )
    assert loaded.where("pypi", 0) == "r/base.yaml:2:8"
    assert loaded.where("pypi", 1) == "r/x.yaml:4:5"
    assert loaded.where("conda", 0) == "r/base.yaml:4:5"
    assert loaded.where("slice", "memory_max") == "r/x.yaml:1:1"
    assert [need.path for need in pip_needs(loaded.recipe)] == [("pypi", 0), ("pypi", 1)]


def test_empty_keys_are_absent() -> None:
    loaded = loads("name: x\nconda:\npython:\nsmoke:\n  imports:\n", source="x.yaml")
    assert loaded.recipe == Recipe(name="x")


def test_a_long_text_made_of_variables_is_bounded() -> None:
    lines = ["name: x", "variables:", f"  v0: {'x' * 100}"]
    lines += [f"  v{n}: {f'${{v{n - 1}}}' * 9}" for n in range(1, 15)]
    text = "\n".join([*lines, "description: ${v14}"])
    with pytest.raises(RecipeError, match="variables put in make more than 200,000 characters"):
        loads(text, source="x.yaml")


@pytest.mark.parametrize("name", available([SHIPPED]))
def test_what_ships_can_be_loaded(name: str) -> None:
    loaded = load(name, [SHIPPED])
    assert loaded.recipe.name == name
    assert conda_needs(loaded.recipe) or loaded.recipe.on_host_python


def test_a_file_whose_name_is_no_recipes_name_is_refused() -> None:
    with pytest.raises(RecipeError, match="a name of at most 64"):
        loads("name: a b\n", source="a b.yaml")
