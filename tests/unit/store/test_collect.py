import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import generations as made
import pytest

from envbuild.errors import InputError, Refused, StoreError
from envbuild.store import (
    collect,
    history,
    integrate,
    inventory,
    journal,
    leftovers,
    present,
)
from envbuild.store.integrate import link_by_name, register
from envbuild.store.layout import Generation, Place
from envbuild.tools import files, locks, processes

_IDENTIFIERS = [f"{number}" * 16 for number in range(1, 6)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = made.place_in(tmp_path)
    for identifier in _IDENTIFIERS:
        made.make_current(made.make(place, identifier))
    return place


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    folder.mkdir()
    return folder


def _process(
    proc: Path,
    pid: int,
    *,
    exe: str = "/usr/bin/x",
    cwd: str = "/",
    words: Sequence[str] = ("x",),
    environment: Sequence[str] = (),
    maps: str = "",
) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "exe").symlink_to(exe)
    (folder / "cwd").symlink_to(cwd)
    (folder / "comm").write_text("name\n")
    (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode())
    (folder / "environ").write_bytes("\0".join([*environment, ""]).encode())
    (folder / "maps").write_text(maps)


def _identifiers(generations: Sequence[Generation]) -> list[str]:
    return [generation.identifier for generation in generations]


def test_the_newest_and_the_current_stay(place: Place, proc: Path) -> None:
    files.swap_link(place.current, f"generations/{_IDENTIFIERS[0]}")
    (planned,) = collect.plan([place], keep=2, proc=proc)
    assert _identifiers(planned.old) == _IDENTIFIERS[1:3]
    assert [(kept.generation.identifier, kept.reason) for kept in planned.kept] == [
        (_IDENTIFIERS[0], "current"),
        (_IDENTIFIERS[3], "one of the newest 2"),
        (_IDENTIFIERS[4], "one of the newest 2"),
    ]


@pytest.mark.parametrize(("keep", "old"), [(0, 4), (1, 4), (3, 2), (5, 0), (9, 0)])
def test_how_many_stay(place: Place, proc: Path, keep: int, old: int) -> None:
    (planned,) = collect.plan([place], keep=keep, proc=proc)
    assert len(planned.old) == old


def test_pinned_stays_until_it_is_unpinned(place: Place, proc: Path) -> None:
    pinned = collect.pin(place, "1111", who=made.WHO, now=made.NOW)
    assert collect.is_pinned(pinned)
    (planned,) = collect.plan([place], keep=0, proc=proc)
    assert _IDENTIFIERS[0] not in _identifiers(planned.old)
    collect.unpin(place, "1111", who=made.WHO, now=made.NOW)
    (planned,) = collect.plan([place], keep=0, proc=proc)
    assert _IDENTIFIERS[0] in _identifiers(planned.old)
    collect.unpin(place, "1111", who=made.WHO, now=made.NOW)
    with pytest.raises(InputError):
        collect.pin(place, "beef", who=made.WHO, now=made.NOW)


def test_every_way_of_use_keeps_a_generation(tmp_path: Path, proc: Path) -> None:
    place = made.place_in(tmp_path)
    prefixes = [made.make(place, f"{digit}" * 16).prefix for digit in "abcdef"]
    _process(proc, 1, exe=f"{prefixes[0]}/bin/python3.11 (deleted)")
    _process(proc, 2, cwd=f"{prefixes[1]}")
    _process(proc, 3, words=["bash", f"{prefixes[2]}/bin/hello"])
    _process(proc, 4, environment=["A=1", f"CONDA_PREFIX={prefixes[3]}"])
    maps = f"7f00-7f01 r-xp 00000000 fe:00 12     {prefixes[4]}/lib/libx.so\n"
    _process(proc, 5, maps=f"5500-5501 r--p 0 00:00 0\n{maps}")
    _process(proc, 6, cwd=f"{prefixes[5]}-2", words=[f"x{prefixes[5]}"])
    (proc / "self").mkdir()
    (proc / "7").mkdir()
    found = processes.using(prefixes, proc=proc)
    assert [[process.how for process in found[prefix]] for prefix in prefixes] == [
        ["program"],
        ["folder"],
        ["command"],
        ["environment"],
        ["mapped"],
        [],
    ]
    (planned,) = collect.plan([place], keep=0, proc=proc)
    assert _identifiers(planned.old) == ["f" * 16]
    assert planned.kept[0].reason == "used by 1 (name)"


def test_collecting_removes_what_was_announced_and_may_still_go(place: Place, proc: Path) -> None:
    (planned,) = collect.plan([place], keep=1, proc=proc)
    collect.pin(place, _IDENTIFIERS[1], who=made.WHO, now=made.NOW)
    made.make(place, "9" * 16)
    done = collect.collect(planned, keep=1, who=made.WHO, now=made.NOW, proc=proc)
    assert _identifiers(done.old) == [_IDENTIFIERS[0], *_IDENTIFIERS[2:4]]
    left = [_IDENTIFIERS[1], _IDENTIFIERS[4], "9" * 16]
    assert _identifiers(present.generations(place)) == left


def test_what_a_killed_build_left_goes_unless_it_is_used(place: Place, proc: Path) -> None:
    made.incomplete(place, "a" * 16)
    used = made.incomplete(place, "b" * 16)
    _process(proc, 9, exe=f"{used.prefix}/bin/hello")
    (planned,) = collect.plan([place], keep=9, proc=proc)
    assert _identifiers(planned.rubbish) == ["a" * 16]
    assert planned.kept[-1].reason == "incomplete, used by 9 (name)"
    collect.collect(planned, keep=9, who=made.WHO, now=made.NOW, proc=proc)
    assert _identifiers(present.incomplete(place)) == ["b" * 16]


def test_a_removal_that_was_cut_off_leaves_rubbish_not_a_generation(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = place.generation(_IDENTIFIERS[0])

    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(files, "remove_tree", fail)
    with pytest.raises(StoreError, match="Permission denied"):
        collect.discard(generation)
    assert not present.complete(generation)


def test_links_out_of_the_store_are_not_followed(place: Place, proc: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (place.generation(_IDENTIFIERS[0]).prefix / "lib/link").symlink_to(outside)
    (place.generations / ("a" * 16)).symlink_to(outside)
    (planned,) = collect.plan([place], keep=1, proc=proc)
    collect.collect(planned, keep=1, who=made.WHO, now=made.NOW, proc=proc)
    assert (outside / "precious").read_text() == "x"
    assert (place.generations / ("a" * 16)).is_symlink()


def test_only_what_really_gets_free_is_counted(tmp_path: Path) -> None:
    place = made.place_in(tmp_path)
    one, two = made.make(place, made.FIRST), made.make(place, made.SECOND)
    base = inventory.disk_bytes([one])
    big = one.prefix / "big"
    big.write_bytes(os.urandom(1 << 20))
    alone = inventory.disk_bytes([one]) - base
    assert alone >= 1 << 20
    os.link(big, two.prefix / "big")
    assert inventory.disk_bytes([one]) == base
    both = inventory.disk_bytes([one, two])
    assert both >= base + (1 << 20)
    os.link(big, tmp_path / "in-a-cache")
    assert inventory.disk_bytes([one, two]) < both


def test_remove_takes_everything_that_is_ours(place: Place, proc: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    link_by_name(place)
    register(place, home=home)
    made.incomplete(place, "a" * 16)
    done = collect.remove(place, home=home, who=made.WHO, now=made.NOW, proc=proc)
    assert len(done.generations) == 6
    assert not place.root.exists()
    assert not place.by_name.is_symlink()
    assert (home / ".conda/environments.txt").read_text() == ""


def test_remove_through_a_link_to_the_store(place: Place, proc: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    link_by_name(place)
    register(place, home=home)
    (tmp_path / "alias").symlink_to(tmp_path)
    collect.remove(
        made.place_in(tmp_path / "alias" / ".." / tmp_path.name),
        home=home,
        who=made.WHO,
        now=made.NOW,
        proc=proc,
    )
    assert not place.root.exists()
    assert not place.by_name.is_symlink()
    assert (home / ".conda/environments.txt").read_text() == ""


def test_logs_go_with_their_generation(place: Place, proc: Path, tmp_path: Path) -> None:
    place.logs.mkdir()
    for identifier in (_IDENTIFIERS[0], "9" * 16):
        (place.logs / f"{identifier}.log").write_text("")
    collect.discard(place.generation(_IDENTIFIERS[0]))
    assert [path.name for path in place.logs.iterdir()] == [f"{'9' * 16}.log"]
    assert collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc).left == ()


def test_remove_leaves_what_is_not_ours(place: Place, proc: Path, tmp_path: Path) -> None:
    (place.root / "notes.txt").write_text("mine")
    (place.generations / "not-a-generation").mkdir()
    done = collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)
    assert done.left == (place.generations, place.root / "notes.txt")
    assert (place.root / "notes.txt").read_text() == "mine"


def test_remove_is_refused_while_a_process_runs(place: Place, proc: Path, tmp_path: Path) -> None:
    _process(proc, 42, exe=f"{place.generation(_IDENTIFIERS[2]).prefix}/bin/hello")
    with pytest.raises(Refused, match=r"used by 42 \(name\)"):
        collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)
    assert len(present.generations(place)) == 5


def test_remove_never_follows_a_link_out_of_the_store(
    place: Place, proc: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    place.root.rename(elsewhere)
    place.root.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="leads out of the store"):
        collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)
    assert (elsewhere / "generations" / _IDENTIFIERS[0]).is_dir()


def test_a_remove_that_is_interrupted_is_undone_until_the_journal_says_it(
    place: Place, proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def remove() -> None:
        collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)

    current, moves = present.current(place), history.read(place)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "noted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove()
    assert (present.current(place), history.read(place)) == (current, moves)
    with monkeypatch.context() as patch:
        patch.setattr(integrate, "unregister", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove()
    assert (present.current(place), history.read(place)) == (None, ())
    remove()
    assert not place.root.exists()


def test_what_is_left_of_a_removed_environment_goes_with_the_next_change(place: Place) -> None:
    for name in ("locked", "empty"):
        (place.store.environments / name).mkdir()
    place.store.place("locked").lock.touch()
    leftovers.clear_caches(place.store)
    assert [path.name for path in place.store.environments.iterdir()] == [place.name]


def test_a_link_by_name_that_is_not_ours_stays(place: Place, proc: Path, tmp_path: Path) -> None:
    place.by_name.parent.mkdir()
    place.by_name.symlink_to("/somewhere/else")
    collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)
    assert place.by_name.is_symlink()


def test_who_waits_for_the_lock_of_a_removed_environment_is_told(
    place: Place, proc: Path, tmp_path: Path
) -> None:
    collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)
    with pytest.raises(InputError, match="no environment"):
        collect.remove(place, home=tmp_path, who=made.WHO, now=made.NOW, proc=proc)


def test_a_lock_whose_file_was_removed_keeps_nobody_out(place: Place) -> None:
    """Who waited for it takes the new file: two holders of one environment there never are."""
    waiter: list[BaseException | None] = []

    def wait() -> None:
        try:
            with history.locked(place, purpose="switch demo", who=made.WHO):
                waiter.append(None)
        except InputError as error:
            waiter.append(error)

    with locks.exclusive(place.lock, timeout_s=1, purpose="remove demo"):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        place.lock.unlink()
        with locks.exclusive(place.lock, timeout_s=1, purpose="create demo"):
            pass
        files.remove_tree(place.root)
    thread.join(20)
    (answer,) = waiter
    assert isinstance(answer, InputError)
    assert not place.root.exists()


def test_an_environment_that_was_removed_meanwhile_has_nothing_to_collect(place: Place) -> None:
    files.remove_tree(place.root)
    (planned,) = collect.plan([place])
    assert planned.going == ()
    assert planned.kept == ()
