import json
from dataclasses import replace
from pathlib import Path

import generations as made
import pytest

from envbuild.errors import InputError, StoreError, UsageProblem
from envbuild.store import history, present
from envbuild.store.layout import Place
from envbuild.tools import files, locks


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = made.place_in(tmp_path)
    for identifier in (made.FIRST, made.SECOND, made.THIRD):
        made.make_current(made.make(place, identifier))
    return place


def _current(place: Place) -> str:
    found = present.current(place)
    assert found is not None
    return found.identifier


def _switch(place: Place, to: str) -> history.Switched:
    return history.switch(place, to, who=made.WHO, now=made.NOW)


def _roll_back(place: Place, to: str | None = None) -> history.Switched:
    return history.roll_back(place, to, who=made.WHO, now=made.NOW)


def test_switch_moves_a_relative_link_and_writes_who_and_when(place: Place) -> None:
    done = _switch(place, made.FIRST)
    assert (done.moved, done.origin) == (True, made.THIRD)
    assert str(place.current.readlink()) == f"generations/{made.FIRST}"
    last = history.read(place)[-1]
    assert last == history.Move(
        number=4,
        when="2026-12-01T12:00:00Z",
        who=made.WHO,
        origin=made.THIRD,
        to=made.FIRST,
        what="switch",
    )


def test_current_already_is_nothing_to_do(place: Place) -> None:
    before = place.store.journal.read_bytes()
    assert not _switch(place, made.THIRD).moved
    assert place.store.journal.read_bytes() == before


@pytest.mark.parametrize("text", [made.SECOND, "2222", "2"])
def test_a_generation_is_named_by_id_beginning_or_number(place: Place, text: str) -> None:
    assert _switch(place, text).generation.identifier == made.SECOND


def test_a_suffix_does_not_make_the_id_before_it_ambiguous(place: Place) -> None:
    made.make(place, f"{made.FIRST}-2")
    assert _switch(place, made.FIRST).generation.identifier == made.FIRST
    with pytest.raises(InputError, match="more than one generation") as caught:
        _switch(place, "1111")
    assert caught.value.hint == f"one of {made.FIRST}, {made.FIRST}-2"


def test_a_number_that_also_begins_another_id_is_refused(place: Place) -> None:
    made.make_current(made.make(place, "1000000000000000"))
    with pytest.raises(InputError, match="more than one generation"):
        _switch(place, "1")


def test_an_unknown_generation_is_refused_and_the_known_are_named(place: Place) -> None:
    with pytest.raises(InputError, match="has no generation 'beef'") as caught:
        _switch(place, "beef")
    assert made.SECOND in (caught.value.hint or "")
    assert _current(place) == made.THIRD


@pytest.mark.parametrize("text", ["", "../../x", "9", "0"])
def test_no_text_leads_elsewhere(place: Place, text: str) -> None:
    with pytest.raises(InputError):
        _switch(place, text)


def test_an_incomplete_generation_never_becomes_current(place: Place) -> None:
    left = made.incomplete(place, "4" * 16)
    with pytest.raises(StoreError, match="incomplete"):
        _switch(place, "4" * 16)
    with pytest.raises(StoreError, match="incomplete"):
        history.move_current(left, what="create", who=made.WHO, now=made.NOW)
    assert _current(place) == made.THIRD


def test_rolling_back_again_goes_further_back(place: Place) -> None:
    assert _roll_back(place).generation.identifier == made.SECOND
    assert _roll_back(place).generation.identifier == made.FIRST
    with pytest.raises(InputError, match="no earlier state"):
        _roll_back(place)
    assert [move.what for move in history.read(place)] == ["create"] * 3 + ["rollback"] * 2


def test_after_a_rollback_a_switch_is_a_new_state(place: Place) -> None:
    _roll_back(place)
    _switch(place, made.THIRD)
    assert _roll_back(place).generation.identifier == made.SECOND


def test_rolling_back_to_a_number_means_the_state_after_that_move(place: Place) -> None:
    assert _roll_back(place, "1").generation.identifier == made.FIRST
    with pytest.raises(InputError, match="no earlier state"):
        _roll_back(place)


def test_the_state_before_may_be_gone(place: Place) -> None:
    files.remove_tree(place.generation(made.SECOND).prefix)
    with pytest.raises(InputError, match=f"{made.SECOND}, is gone") as caught:
        _roll_back(place)
    assert made.FIRST in (caught.value.hint or "")


def test_a_move_that_was_not_written_down_is_undone_too(place: Place) -> None:
    files.swap_link(place.current, f"generations/{made.FIRST}")
    place.store.journal.write_text("")
    with pytest.raises(InputError, match="no earlier state"):
        _roll_back(place)


def test_a_move_written_down_but_not_made_is_no_state(place: Place) -> None:
    files.swap_link(place.current, f"generations/{made.SECOND}")
    assert _roll_back(place).generation.identifier == made.FIRST


def test_a_line_cut_off_by_a_crash_is_left_out_and_overwritten(place: Place) -> None:
    with place.store.journal.open("a") as file:
        file.write('{"when": "2026')
    assert len(history.read(place)) == 3
    _switch(place, made.FIRST)
    lines = place.store.journal.read_text().splitlines()
    assert [json.loads(line)["to"] for line in lines][-1] == made.FIRST
    assert len(lines) == 4


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"when": 1}', '"text"'])
def test_a_damaged_line_is_named(place: Place, line: str) -> None:
    with place.store.journal.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(StoreError, match=r"journal\.jsonl:4"):
        history.read(place)


def test_a_link_that_leads_elsewhere_is_named_and_can_be_replaced(place: Place) -> None:
    files.swap_link(place.current, "/etc")
    with pytest.raises(StoreError, match="points to /etc"):
        present.current(place)
    assert _switch(place, made.FIRST).origin is None
    assert _current(place) == made.FIRST


def test_a_folder_in_the_place_of_the_link_is_left_alone(place: Place) -> None:
    place.current.unlink()
    place.current.mkdir()
    with pytest.raises(StoreError, match="is not a link"):
        _switch(place, made.FIRST)
    assert place.current.is_dir()


def test_the_history_keeps_no_move_that_failed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.store.journal.read_bytes()

    def fail(link: Path, to: str) -> None:
        raise OSError(28, "No space left on device", str(link), None, to)

    monkeypatch.setattr(files, "swap_link", fail)
    with pytest.raises(StoreError, match="No space left"):
        _switch(place, made.FIRST)
    assert place.store.journal.read_bytes() == before
    assert _current(place) == made.THIRD


def test_a_lock_that_is_held_names_its_holder(place: Place) -> None:
    with (
        locks.exclusive(place.lock, timeout_s=1, purpose="create demo"),
        pytest.raises(StoreError, match="create demo"),
        history.locked(place, purpose="switch demo", who=replace(made.WHO, patience_s=0.1)),
    ):
        pytest.fail("two held one lock")


def test_an_unknown_environment_is_refused_with_the_nearest_name(place: Place) -> None:
    with pytest.raises(InputError, match="near: demo") as caught:
        present.existing(place.store, "demos")
    assert caught.value.hint == "envbuild create demos"
    assert caught.value.exit_code == 3
    assert not (place.store.environments / "demos").exists()


@pytest.mark.parametrize("name", ["..", "a/b", ".x", "-x", "", "a" * 65, "a\n"])
def test_a_name_is_no_path(place: Place, name: str) -> None:
    with pytest.raises(UsageProblem):
        present.existing(place.store, name)
