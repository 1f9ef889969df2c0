import json
from pathlib import Path
from typing import Any

import generations as made
import pytest

from envbuild.errors import CommandNotFound, InputError, NotExecutable, StoreError
from envbuild.store import shells, use
from envbuild.store.layout import Generation
from envbuild.tools import files


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    generation = made.make(made.place_in(tmp_path), made.FIRST, variables={"GREETING": "it's"})
    made.make_current(generation)
    return generation


def test_the_current_generation_is_resolved(generation: Generation) -> None:
    assert use.chosen(generation.place, None) == generation


def test_another_generation_is_chosen_by_its_beginning(generation: Generation) -> None:
    other = made.make(generation.place, made.SECOND)
    assert use.chosen(generation.place, "22") == other


def test_without_a_current_generation_it_says_how_to_get_one(tmp_path: Path) -> None:
    place = made.place_in(tmp_path)
    made.make(place, made.FIRST)
    with pytest.raises(InputError, match="no current generation") as caught:
        use.chosen(place, None)
    assert caught.value.hint == f"envbuild switch demo {made.FIRST}"
    files.remove_tree(place.generation(made.FIRST).prefix)
    with pytest.raises(InputError, match="no current generation") as caught:
        use.chosen(place, None)
    assert caught.value.hint == "envbuild create demo"


def test_a_current_generation_that_is_gone_is_named(generation: Generation) -> None:
    files.remove_tree(generation.prefix)
    with pytest.raises(StoreError, match=f"{made.FIRST}, current of demo, is gone"):
        use.chosen(generation.place, None)


def test_activation_sets_prepends_and_clears(generation: Generation) -> None:
    base = {"PATH": "/usr/bin", "PYTHONPATH": "/x", "PYTHONHOME": "/y", "KEEP": "1"}
    assert use.read(generation).environment.apply(base) == {
        "PATH": f"{generation.prefix}/bin:/usr/bin",
        "CONDA_PREFIX": str(generation.prefix),
        "GREETING": "it's",
        "KEEP": "1",
    }
    assert base["PYTHONPATH"] == "/x"


@pytest.mark.parametrize("base", [{}, {"PATH": ""}])
def test_an_empty_path_gets_no_empty_entry(generation: Generation, base: dict[str, str]) -> None:
    """An empty entry would mean the working directory."""
    assert use.read(generation).environment.apply(base)["PATH"] == f"{generation.prefix}/bin"


def _change(generation: Generation, change: dict[str, Any]) -> None:
    data = json.loads(generation.environment.read_text())
    generation.environment.write_text(json.dumps({**data, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"set": []},
        {"set": {}},
        {"set": {"CONDA_PREFIX": 5}},
        {"set": {"CONDA_PREFIX": "/x", "A B": "1"}},
        {"set": {"CONDA_PREFIX": "/x", "x;touch y;": "1"}},
        {"set": {"CONDA_PREFIX": "/x", "A": "a\0b"}},
        {"prepend": {"PATH": [1]}},
        {"prepend": None},
        {"unset": ["$(x)"]},
        {"unset": 3},
    ],
)
def test_a_damaged_environment_is_one_error(generation: Generation, change: dict[str, Any]) -> None:
    _change(generation, change)
    with pytest.raises(StoreError, match="is damaged") as caught:
        use.read(generation)
    assert caught.value.hint == "envbuild create demo --reinstall"


def test_a_missing_environment_is_an_error(generation: Generation) -> None:
    generation.environment.unlink()
    with pytest.raises(StoreError, match="No such file"):
        use.read(generation)


def test_a_moved_generation_is_not_used(generation: Generation, tmp_path: Path) -> None:
    (tmp_path / "store").rename(tmp_path / "other")
    (tmp_path / "new").mkdir()
    (tmp_path / "other").rename(tmp_path / "new/store")
    moved = made.place_in(tmp_path / "new").generation(made.FIRST)
    with pytest.raises(StoreError, match=f"was made for {generation.prefix}, lies in "):
        use.read(moved)


def test_a_store_that_is_reached_through_a_link_is_the_same(
    generation: Generation, tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(tmp_path)
    through = made.place_in(tmp_path / "alias").generation(made.FIRST)
    assert use.read(through).environment.set["CONDA_PREFIX"] == str(generation.prefix)


@pytest.mark.parametrize("name", ["", "nope", "/nope/nope", "./nope"])
def test_a_command_that_is_not_there_is_127(name: str) -> None:
    with pytest.raises(CommandNotFound) as caught:
        use.execute([name], {"PATH": "/usr/bin:/bin"})
    assert caught.value.exit_code == 127


def test_a_command_that_cannot_be_executed_is_126(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for name in (str(plain), str(tmp_path), "plain"):
        with pytest.raises(NotExecutable) as caught:
            use.execute([name], {"PATH": f"{tmp_path}"})
        assert caught.value.exit_code == 126


def test_the_activation_text_quotes_every_value(generation: Generation) -> None:
    text = shells.activation_text(use.read(generation))
    assert "export GREETING='it'\"'\"'s'" in text
    assert "/current" not in text
