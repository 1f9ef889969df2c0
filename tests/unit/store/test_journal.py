"""The journal: every change is one line, and several processes write it."""

import json
import multiprocessing
from pathlib import Path

import generations as made
import pytest

from envbuild.errors import StoreError
from envbuild.store import collect, history, journal
from envbuild.store.journal import Change
from envbuild.store.layout import Place, Store


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = made.place_in(tmp_path)
    for identifier in (made.FIRST, made.SECOND):
        made.make_current(made.make(place, identifier))
    return place


def _whats(store: Store) -> list[tuple[str, str | None, str | None]]:
    return [
        (entry.change.what, entry.change.origin, entry.change.to)
        for entry in history.everything(store)
    ]


def test_every_change_is_a_line(place: Place, tmp_path: Path) -> None:
    history.switch(place, made.FIRST, who=made.WHO, now=made.NOW)
    history.roll_back(place, None, who=made.WHO, now=made.NOW)
    for _ in range(2):
        collect.pin(place, made.FIRST, who=made.WHO, now=made.NOW)
    for _ in range(2):
        collect.unpin(place, made.FIRST, who=made.WHO, now=made.NOW)
    (planned,) = collect.plan([place], keep=0, proc=tmp_path)
    collect.collect(planned, keep=0, who=made.WHO, now=made.NOW, proc=tmp_path)
    collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=tmp_path)
    assert _whats(place.store) == [
        ("create", None, made.FIRST),
        ("create", made.FIRST, made.SECOND),
        ("switch", made.SECOND, made.FIRST),
        ("rollback", made.FIRST, made.SECOND),
        ("pin", None, made.FIRST),
        ("unpin", made.FIRST, None),
        ("gc", made.FIRST, None),
        ("remove", made.SECOND, None),
    ]
    lines = place.store.journal.read_text().splitlines()
    assert json.loads(lines[2]) == {
        "when": "2026-12-01T12:00:00Z",
        "who": "anna",
        "host": "node1",
        "what": "switch",
        "environment": "demo",
        "from": made.SECOND,
        "to": made.FIRST,
        "moves": True,
    }


def test_the_history_of_an_environment_is_of_its_moves_alone(place: Place) -> None:
    other = made.place_in(place.store.root.parent, "other")
    made.make_current(made.make(other, made.FIRST))
    collect.pin(place, made.FIRST, who=made.WHO, now=made.NOW)
    history.switch(place, made.FIRST, who=made.WHO, now=made.NOW)
    assert [(move.number, move.what) for move in history.read(place)] == [
        (1, "create"),
        (2, "create"),
        (3, "switch"),
    ]
    assert len(history.read(other)) == 1


def test_another_environment_of_that_name_begins_anew(place: Place, tmp_path: Path) -> None:
    collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=tmp_path)
    made.make_current(made.make(place, made.THIRD))
    assert [(move.number, move.to) for move in history.read(place)] == [(1, made.THIRD)]
    assert len(_whats(place.store)) == 4


def test_what_an_older_store_kept_comes_first(place: Place) -> None:
    older = {"when": "2026-11-01T12:00:00Z", "who": "ben", "host": "node2", "from": None}
    older |= {"to": made.FIRST, "what": "create"}
    place.history.write_text(json.dumps(older) + "\n")
    moves = history.read(place)
    assert [(move.number, move.who.user) for move in moves] == [
        (1, "ben"),
        (2, "anna"),
        (3, "anna"),
    ]
    assert history.everything(place.store)[0].who.user == "ben"
    before = place.history.read_bytes()
    history.switch(place, "1", who=made.WHO, now=made.NOW)
    assert place.history.read_bytes() == before


def _write(root: Path, number: int) -> None:
    for count in range(20):
        change = Change(what="pin", environment=f"e{number}", to=f"{count}")
        journal.note(Store(root=root), change, who=made.WHO, now=made.NOW)


def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    found = [entry.change for entry in journal.read(Store(root=tmp_path))]
    for number in range(4):
        own = [change.to for change in found if change.environment == f"e{number}"]
        assert own == [str(count) for count in range(20)]


def test_a_change_that_fails_takes_its_line_back(tmp_path: Path) -> None:
    store = Store(root=tmp_path)
    journal.note(store, Change(what="pin", environment="a"), who=made.WHO, now=made.NOW)
    before = store.journal.read_bytes()
    with (
        pytest.raises(KeyError),
        journal.noted(store, Change(what="pin", environment="b"), who=made.WHO, now=made.NOW),
    ):
        raise KeyError
    assert store.journal.read_bytes() == before


def test_a_line_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    store = Store(root=tmp_path)
    store.journal.write_text("{}\n")
    with pytest.raises(StoreError, match=r"journal\.jsonl:1"):
        history.everything(store)
