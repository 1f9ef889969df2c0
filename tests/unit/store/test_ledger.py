"""The ledger: what was hashed, first digests, and a file that is no ledger."""

import sqlite3
from pathlib import Path

import pytest

from envbuild.errors import FetchError, StoreError
from envbuild.store.ledger import Ledger, Tree

TREE = Tree(
    paths=["lib/größe.py"],
    inodes=[7],
    sizes=[11],
    mtimes_ns=[1_700_000_000_000_000_001],
    digests=["a" * 64],
)
EMPTY = Tree(paths=[], inodes=[], sizes=[], mtimes_ns=[], digests=[])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_an_empty_ledger_knows_nothing_and_makes_no_file(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.trees(["pypi:numpy"]) == {}
    assert ledger.digests(["x"]) == {}
    assert not ledger.has_wheels("half")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_trees_are_kept_replaced_and_forgotten(ledger: Ledger) -> None:
    ledger.remember({"pypi:numpy": TREE, "conda:zlib": EMPTY})
    known = ledger.trees(["pypi:numpy", "pypi:other"])
    assert known["pypi:numpy"] == TREE
    assert set(known) == {"pypi:numpy"}
    ledger.remember({"pypi:numpy": EMPTY})
    assert ledger.trees(["pypi:numpy"]) == {"pypi:numpy": EMPTY}
    ledger.forget(["pypi:numpy"])
    assert ledger.trees(["pypi:numpy"]) == {}


def test_more_packages_than_a_statement_has_variables(ledger: Ledger) -> None:
    names = [f"conda:{number}" for number in range(2000)]
    ledger.remember(dict.fromkeys(names, TREE))
    assert len(ledger.trees(names)) == 2000


def test_another_first_digest_is_refused(ledger: Ledger) -> None:
    ledger.first_digest("https://c/x.conda#1", "a" * 64, when="2026-12-01T00:00:00Z")
    ledger.first_digest("https://c/x.conda#1", "a" * 64, when="2026-12-02T00:00:00Z")
    with pytest.raises(FetchError, match="2026-12-01T00:00:00Z") as caught:
        ledger.first_digest("https://c/x.conda#1", "b" * 64, when="2026-12-03T00:00:00Z")
    assert caught.value.exit_code == 8
    assert ledger.digests(["https://c/x.conda#1", "none"]) == {"https://c/x.conda#1": "a" * 64}


def test_wheels_are_noted_once(ledger: Ledger) -> None:
    ledger.note_wheels("half")
    ledger.note_wheels("half")
    assert ledger.has_wheels("half")
    assert not ledger.has_wheels("other")


def test_a_damaged_ledger_is_a_store_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 50)
    with pytest.raises(StoreError, match=r"ledger\.sqlite") as caught:
        Ledger(path).trees(["x"])
    assert caught.value.exit_code == 6


def test_a_ledger_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        Ledger(path).remember({"x": TREE})
