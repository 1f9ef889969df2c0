"""Making a lock with the real engines: what is kept, which instant counts, what is written."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.locking import HOST, NOW, SMALL, Locker, locker

from envbuild.access import Access
from envbuild.errors import FetchError, LockError, NoSolution, UsageProblem
from envbuild.lock import files
from envbuild.lock.model import Lock
from envbuild.pipeline.lock import check_lock, write_lock
from envbuild.solve.solution import Upgrade


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locker]:
    with locker(tmp_path_factory.mktemp("lock")) as made:
        yield made


def pins(lock: Lock) -> dict[str, str]:
    conda = {one.name: one.version for half in lock.platforms for one in half.conda}
    return conda | {one.name: one.version for half in lock.platforms for one in half.pip}


def test_both_halves_are_locked(small: Locker) -> None:
    made = small.make(SMALL)
    (half,) = made.lock.platforms
    assert made.findings == ()
    assert {"python", "libzlib"} <= {one.name for one in half.conda}
    assert {one.name: one.version for one in half.pip} == {"app": "2", "leaf": "2"}
    assert all(one.url.startswith("https://conda.anaconda.org/conda-forge/") for one in half.conda)
    assert made.lock.cutoff == NOW.replace(microsecond=0)
    assert check_lock(made.lock, small.load(SMALL)) == ()
    texts = files.dumps(made.lock)
    assert files.loads(texts, source="x") == made.lock
    assert "127.0.0.1" not in "".join(texts.files.values())


def test_what_need_not_change_stays(small: Locker) -> None:
    old = small.make(SMALL, newer="2026-01-01").lock
    assert pins(old)["app"] == "1"
    again = small.make(SMALL, old=old)
    assert again.lock == old
    assert not again.changes
    more = SMALL.replace("- libzlib", "- libzlib\n  - ninja")
    grown = small.make(more, old=old, newer="2026-11-30").lock
    assert pins(grown).items() >= pins(old).items()
    assert "ninja" in pins(grown)


def test_upgrade_moves_everything(small: Locker) -> None:
    old = small.make(SMALL, newer="2026-01-01").lock
    new = small.make(SMALL, old=old, upgrade=Upgrade(everything=True))
    assert new.lock == small.make(SMALL).lock
    assert {"app", "leaf", "python"} <= {one.name for one in new.changes.changes}
    assert "~ app 1 -> 2" in new.changes.text()


@pytest.mark.parametrize(("name", "moved"), [("app", {"app"}), ("Leaf", {"leaf"})])
def test_one_pypi_package_moves(small: Locker, name: str, moved: set[str]) -> None:
    old = small.make(SMALL, newer="2026-01-01").lock
    new = small.make(SMALL, old=old, upgrade=Upgrade(packages=frozenset({name})))
    assert {one.name for one in new.changes.changes} == moved


def test_one_conda_package_moves(small: Locker) -> None:
    recipe = SMALL.replace("- libzlib", "- libzlib\n  - ca-certificates")
    old = small.make(recipe, newer="2025-06-01").lock
    upgrade = Upgrade(packages=frozenset({"ca-certificates"}))
    new = small.make(recipe, old=old, upgrade=upgrade)
    assert {one.name for one in new.changes.changes} == {"ca-certificates"}


def test_an_unknown_package_to_upgrade(small: Locker) -> None:
    old = small.make(SMALL).lock
    with pytest.raises(UsageProblem, match="no such package") as caught:
        small.make(SMALL, old=old, upgrade=Upgrade(packages=frozenset({"lief"})))
    assert caught.value.hint == "did you mean leaf?"
    with pytest.raises(UsageProblem, match="there is no lock"):
        small.make(SMALL, upgrade=Upgrade(packages=frozenset({"app"})))


def test_the_order_of_cutoffs(small: Locker) -> None:
    recipe = SMALL + "cutoff: 2026-03-01T00:00:00Z\n"
    march = datetime(2026, 3, 1, tzinfo=UTC)
    flag = small.make(recipe, newer="2026-04-30").lock
    assert flag.cutoff == datetime(2026, 5, 1, tzinfo=UTC)
    assert check_lock(flag, small.load(recipe)) == ()
    assert small.make(recipe, old=flag, newer="2026-03-31").lock.cutoff.month == 4
    own = small.make(recipe).lock
    assert own.cutoff == march
    without = small.make(SMALL, newer="2026-03-01T00:00:00Z").lock
    assert small.make(SMALL, old=without).lock.cutoff == march
    now = NOW.replace(microsecond=0)
    assert small.make(SMALL, old=without, upgrade=Upgrade(everything=True)).lock.cutoff == now


def test_an_age_alone_changes_no_lock(small: Locker) -> None:
    recipe = SMALL + "cutoff: 14d\n"
    old = small.make(recipe).lock
    assert old.cutoff == datetime(2026, 11, 17, 12, 30, 15, tzinfo=UTC)
    later = datetime(2026, 12, 3, tzinfo=UTC)
    assert not small.make(recipe, old=old, now=later).changes
    moved = small.make(recipe, old=old, now=later, upgrade=Upgrade(everything=True))
    assert moved.changes.fields == (("cutoff", "2026-11-17T12:30:15Z", "2026-11-19T00:00:00Z"),)


def test_a_cutoff_that_is_none(small: Locker) -> None:
    with pytest.raises(UsageProblem, match="--exclude-newer: expected"):
        small.make(SMALL, newer="yesterday")


def test_the_cutoff_is_exclusive_in_both_halves(small: Locker) -> None:
    at = small.make(SMALL, newer="2026-06-01T00:00:00Z").lock
    assert pins(at)["app"] == "1"
    after = small.make(SMALL, newer="2026-06-01T00:00:01Z").lock
    assert pins(after)["app"] == "2"


def test_two_platforms_at_once(small: Locker) -> None:
    recipe = SMALL.replace("python:", "target: {platforms: [linux-aarch64, linux-64]}\npython:")
    lock = small.make(recipe).lock
    assert [half.platform for half in lock.platforms] == ["linux-64", "linux-aarch64"]
    for half in lock.platforms:
        assert {one.subdir for one in half.conda} <= {half.platform, "noarch"}
        assert len(half.pip) == 2
    assert check_lock(lock, small.load(recipe)) == ()


def test_the_hosts_python(small: Locker) -> None:
    made = small.make(HOST)
    assert made.lock.host_python == ">=3.11,<3.15"
    texts = files.dumps(made.lock).files
    assert "package: []" in texts["conda-lock.yml"]
    assert texts["requirements.linux-64.txt"] == texts["requirements.linux-aarch64.txt"]
    assert check_lock(made.lock, small.load(HOST)) == ()
    assert not small.make(HOST, old=made.lock).changes


def test_the_same_bytes_whatever_the_order_in_the_recipe(small: Locker) -> None:
    other = SMALL.replace("- libzlib", "- NINJA\n  - libzlib")
    one = SMALL.replace("- libzlib", "- libzlib\n  - ninja  # spelled otherwise")
    assert files.dumps(small.make(one).lock) == files.dumps(small.make(other).lock)


def test_no_solution_has_the_recipes_lines(small: Locker) -> None:
    with pytest.raises(NoSolution) as caught:
        small.make(SMALL.replace("- libzlib", "- libzlib >=99"))
    assert "recipes/small.yaml:5:5: libzlib >=99" in caught.value.details
    with pytest.raises(NoSolution) as caught:
        small.make(SMALL.replace("- app", "- app >=99"))
    assert "recipes/small.yaml:7:5" in caught.value.details


def test_offline_needs_only_the_caches(small: Locker) -> None:
    made = small.make(SMALL).lock
    offline = replace(small.access, offline=True)
    assert small.make(SMALL, access=offline).lock == made


def test_servers_out_of_reach(small: Locker, tmp_path: Path) -> None:
    fresh = Locker(root=tmp_path, channels=small.channels, server=small.server, index=small.index)
    nowhere = {"conda-forge": ("http://127.0.0.1:9/conda-forge",)}
    with pytest.raises(FetchError, match="channel conda-forge"):
        fresh.make(SMALL, access=Access(channel_mirrors=nowhere))
    with pytest.raises(FetchError, match="index"):
        fresh.make(SMALL, access=replace(small.access, default_index="http://127.0.0.1:9/simple"))


def test_the_recipe_lets_findings_through(small: Locker) -> None:
    yanked = small.index.wheels[1]
    small.index.wheels[1] = replace(yanked, yanked="broken")
    try:
        recipe = SMALL.replace("- app", "- app ==2")
        plain = small.make(recipe).findings
        codes = {one.code: one.severity.value for one in plain}
        assert codes
        (code,) = codes
        entry = f"allow: [{{code: {code}, reason: known, until: DAY}}]\n"
        let = small.make(recipe + entry.replace("DAY", "2026-12-01")).findings
        assert [(one.code, one.severity.value) for one in let] == [(code, "note")]
        late = small.make(recipe + entry.replace("DAY", "2026-11-30")).findings
        assert [one.code for one in late] == [code, "allow-expired"]
        assert late[1].where == "recipes/small.yaml:8:9"
    finally:
        small.index.wheels[1] = yanked


def test_what_is_written(small: Locker, tmp_path: Path) -> None:
    lock = small.make(HOST).lock
    folder = tmp_path / "locks/onhost"
    before = os.umask(0o077)
    try:
        write_lock(lock, folder)
    finally:
        os.umask(before)
    assert files.read(folder) == lock
    names = {path.name for path in folder.iterdir()}
    assert names == set(files.dumps(lock).files)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert folder.stat().st_mode & 0o777 == 0o755


def test_requirements_of_a_platform_that_went_are_removed(small: Locker, tmp_path: Path) -> None:
    lock = small.make(HOST).lock
    (tmp_path / "README.md").write_text("a person's")
    write_lock(lock, tmp_path)
    write_lock(replace(lock, platforms=lock.platforms[:1]), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"README.md", "conda-lock.yml", "requirements.linux-64.txt"}


@pytest.mark.parametrize("blocked", ["conda-lock.yml", "requirements.linux-aarch64.txt"])
def test_where_one_file_cannot_be_written_all_stay(
    small: Locker, tmp_path: Path, blocked: str
) -> None:
    old = small.make(HOST, newer="2026-01-01").lock
    write_lock(old, tmp_path)
    (tmp_path / blocked).unlink()
    (tmp_path / blocked / "in the way").mkdir(parents=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(LockError, match="cannot be written"):
        write_lock(small.make(HOST).lock, tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_a_file_in_place_of_the_folder(small: Locker, tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("")
    with pytest.raises(LockError, match="cannot be written"):
        write_lock(small.make(HOST).lock, tmp_path / "locks")
