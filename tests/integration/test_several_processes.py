"""Several processes in one store: they wait for each other, and nothing is done twice."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.site import NAMES, SHARED, Site, site

from envbuild.store import present, verify
from envbuild.tools import locks


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as made:
        yield made


def _all_at_once(place: Site, *commands: tuple[str, ...]) -> list[tuple[dict[str, Any], str]]:
    started = [place.start((*words, "--json")) for words in commands]
    ended = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0] * len(started), ended
    return [(json.loads(out), err) for out, err in ended]


@pytest.mark.parametrize("count", [8, 10])
def test_of_several_creates_of_one_environment_one_builds(place: Site, count: int) -> None:
    answers = _all_at_once(place, *[place.create("one")] * count)
    assert [answer["built"] for answer, _ in answers].count(True) == 1
    assert len({answer["generation"] for answer, _ in answers}) == 1
    (generation,) = present.generations(place.store.place("one"))
    assert verify.verify(generation) == ()
    assert present.incomplete(place.store.place("one")) == ()
    assert _fetched(place) == dict.fromkeys((*SHARED, "one"), 1)
    _, out, _ = place.run("history", "one", "--json")
    assert [move["what"] for move in json.loads(out)["history"]] == ["create"]


def test_creates_of_different_environments_share_one_cold_cache(place: Site) -> None:
    answers = _all_at_once(place, *map(place.create, NAMES))
    assert [answer["built"] for answer, _ in answers] == [True] * 4
    assert _fetched(place) == dict.fromkeys((*SHARED, *NAMES), 1)
    for name in NAMES:
        (generation,) = present.generations(place.store.place(name))
        assert verify.verify(generation) == ()
    kinds = Counter(path.suffix for path in place.store.package_cache.glob("[!.]*"))
    assert kinds == {"": 7, ".json": 7}
    assert not list(place.store.package_cache.glob(".*.part"))


def _fetched(place: Site) -> dict[str, int]:
    """Return how often each package's archive was asked for."""
    archives = [path for path in place.channel.paths() if path.endswith(".conda")]
    return dict(Counter(path.rsplit("/", 1)[1].partition("-")[0] for path in archives))


def test_who_waits_says_for_whom_and_gives_up_in_time(place: Site) -> None:
    lock = place.store.place("one").lock
    with locks.exclusive(lock, timeout_s=1, purpose="create one"):
        code, out, err = place.run(*place.create("one"), "--lock-timeout", "2")
        assert (code, out) == (6, "")
        waiting, error = (line for line in err.splitlines() if "is held by" in line)
        assert waiting.startswith(f"waiting: {lock} is held by ")
        assert "(create one), since " in waiting
        assert error.startswith(f"error: {lock} is held by ")
        code, _, _ = place.run(*place.create("one"), variables={"ENVBUILD_LOCK_TIMEOUT": "0"})
        assert code == 6
        code, _, err = place.run(*place.create("one"), variables={"ENVBUILD_LOCK_TIMEOUT": "soon"})
        assert (code, "ENVBUILD_LOCK_TIMEOUT" in err) == (2, True)
    assert not list(place.store.environments.glob("one/generations/*"))
    assert place.run(*place.create("one"))[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("switch", "one", "1"),
        ("rollback", "one"),
        ("pin", "one", "1"),
        ("unpin", "one", "1"),
        ("gc", "one", "--keep", "0", "-y"),
        ("remove", "one", "-y"),
    ],
    ids=lambda words: str(words[0]),
)
def test_every_change_waits_for_the_lock(place: Site, words: tuple[str, ...]) -> None:
    assert place.run(*place.create("one"))[0] == 0
    if words[0] == "gc":
        (place.store.place("one").generations / ("0" * 16)).mkdir()
    before = place.store.journal.read_bytes()
    with locks.exclusive(place.store.place("one").lock, timeout_s=1, purpose="create one"):
        code, _, err = place.run(*words, "--lock-timeout", "0.2")
    assert (code, "is held by" in err) == (6, True)
    assert place.store.journal.read_bytes() == before


def test_what_a_dead_holder_left_is_no_obstacle(place: Site) -> None:
    lock = place.store.place("one").lock
    lock.parent.mkdir(parents=True)
    with locks.exclusive(lock, timeout_s=1, purpose="create one"):
        record = json.loads(lock.read_text())
    lock.write_text(json.dumps({**record, "pid": 4194305}) + "\n")
    assert place.run(*place.create("one"), "--lock-timeout", "0")[0] == 0


def test_create_and_remove_at_once(place: Site) -> None:
    """Whoever comes second finds what the first one left; nobody fails over what is half gone."""
    assert place.run(*place.create("one"))[0] == 0
    for _ in range(3):
        started = [
            place.start(words)
            for words in (
                ("remove", "one", "-y"),
                place.create("one"),
                ("switch", "one", "1"),
                place.create("one"),
                ("remove", "one", "-y"),
            )
        ]
        ended = [process.communicate(timeout=300) for process in started]
        codes = [process.returncode for process in started]
        assert {codes[1], codes[3]} == {0}, ended
        assert set(codes) <= {0, 3}, ended
        folder = place.store.environments / "one"
        assert not folder.exists() or (folder / "generations").is_dir()
        assert place.run(*place.create("one"))[0] == 0
        assert place.run("verify", "one")[0] == 0
