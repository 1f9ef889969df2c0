"""Stores of each released format are read, and moved on; newer ones are refused by name."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from integration.creating import NOW, WHO, Creator, order
from integration.packages import File, make_package

from envbuild.cli.main import main
from envbuild.errors import StoreError
from envbuild.store import formats, history, migrate, present
from envbuild.store.layout import STORE_FORMAT, Store
from envbuild.tools import files

RECORDED = Path(__file__).parents[1] / "data/stores"
FORMATS = sorted(int(path.name.partition(".")[0]) for path in RECORDED.glob("*.tar.gz"))


@pytest.fixture(params=FORMATS)
def recorded(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Store:
    root = tmp_path / "store"
    with tarfile.open(RECORDED / f"{request.param}.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # none before 3.11.4
        archive.extractall(root)  # noqa: S202 - recorded by us
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", f"{tmp_path / 'home'}")
    monkeypatch.setenv("ENVBUILD_STORE", f"{root}")
    store = Store(root=root)
    assert formats.of(store) == request.param
    return store


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def moves(store: Store) -> list[tuple[int, str, str | None, str]]:
    found = history.read(store.place("demo"))
    return [(move.number, move.what, move.origin, move.to) for move in found]


def test_a_recorded_store_is_used_as_it_is(
    recorded: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (one.identifier for one in present.generations(recorded.place("demo")))
    assert second == f"{first}-2"
    assert main(["store", "relink"]) == 0
    for words in (["verify", "demo"], ["run", "--help"], ["gc", "--keep", "1", "-y"], ["list"]):
        assert main(words) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["list", "demo", "--json"]) == 0
    assert [package["name"] for package in printed(capsys)["packages"]] == ["tools"]
    assert main(["info", "demo", "--json"]) == 0
    assert printed(capsys)["generation"] == first
    assert main(["history", "demo", "--json"]) == 0
    assert [row["what"] for row in printed(capsys)["history"]] == ["create", "create", "switch"]
    assert main(["rollback", "demo"]) == 0
    current = present.current(recorded.place("demo"))
    assert current is not None
    assert current.identifier == second


def test_a_recorded_store_is_moved_on_once(
    recorded: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    before = moves(recorded)
    origin = formats.of(recorded)
    assert main(["store", "migrate", "-n", "--json"]) == 0
    planned = printed(capsys)
    assert formats.of(recorded) == origin
    assert main(["store", "migrate", "--json"]) == 0
    done = printed(capsys)
    assert done == {**planned, "dry_run": False}
    assert (done["from"], done["to"]) == (origin, STORE_FORMAT)
    assert bool(done["steps"]) == (origin < STORE_FORMAT)
    assert formats.of(recorded) == STORE_FORMAT
    assert moves(recorded) == before
    assert not list(recorded.environments.glob("*/history.jsonl"))
    assert main(["store", "migrate", "--json"]) == 0
    assert printed(capsys)["steps"] == []


def test_what_was_moved_on_can_be_repaired(
    recorded: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "migrate"]) == 0
    place = recorded.place("demo")
    for generation in present.generations(place):
        assert generation.order.is_file()
    assert main(["store", "relink"]) == 0
    assert main(["verify", "demo"]) == 0
    here = present.current(place)
    assert here is not None
    (here.prefix / "share/tools.txt").unlink()
    capsys.readouterr()
    assert main(["verify", "demo", "--repair", "-n"]) == 0
    assert "would be made anew" in capsys.readouterr().out


@pytest.mark.parametrize("last", ["journal.jsonl", "format.json", "history.jsonl"])
def test_killed_in_the_middle_no_line_is_lost_or_there_twice(
    recorded: Store, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    if formats.of(recorded) == STORE_FORMAT:
        pytest.skip("nothing to move on")
    before = moves(recorded)
    real = files.write_atomic

    def write(path: Path, text: str) -> None:
        if path.name == last:
            raise KeyboardInterrupt
        real(path, text)

    def unlink(path: Path) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", write)
        if last == "history.jsonl":
            patch.setattr(Path, "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            migrate.migrate(recorded, who=WHO, now=NOW)
    assert moves(recorded) == before
    migrate.migrate(recorded, who=WHO, now=NOW)
    assert moves(recorded) == before


def test_a_new_store_names_its_format(tmp_path: Path) -> None:
    package = make_package(tmp_path / "channel", "a", content={"share/a": File(content=b"a")})
    creator = Creator(root=tmp_path / "store")
    creator.create(order([package]))
    assert formats.of(creator.place.store) == STORE_FORMAT
    with pytest.raises(StoreError, match="no store"):
        migrate.migrate(Store(root=tmp_path / "none"), who=WHO, now=NOW)


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("info",),
        ("verify", "demo"),
        ("run", "demo", "true"),
        ("gc",),
        ("history",),
        ("create", "demo"),
        ("store", "migrate"),
    ],
)
def test_a_newer_store_is_refused_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    store = Store(root=tmp_path)
    store.format.write_text('{"format": 9, "more": true}')
    monkeypatch.setenv("ENVBUILD_STORE", f"{tmp_path}")
    assert main(list(words)) == (125 if words[0] == "run" else 6)
    error = capsys.readouterr().err
    assert f"{tmp_path}: store format 9 is newer than this envbuild ({STORE_FORMAT})" in error
    assert "upgrade envbuild" in error
    assert [path.name for path in tmp_path.iterdir()] == ["format.json"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "2"}', '{"format": true}'])
def test_what_names_no_format_is_no_store_to_touch(tmp_path: Path, text: str) -> None:
    store = Store(root=tmp_path)
    store.format.write_text(text)
    with pytest.raises(StoreError, match="format"):
        formats.check(store)


def test_a_newer_manifest_is_refused_by_name(
    recorded: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    here = present.current(recorded.place("demo"))
    assert here is not None
    data = json.loads(here.manifest.read_text())
    here.manifest.write_text(json.dumps({**data, "version": data["version"] + 1}))
    assert main(["info", "demo"]) == 6
    assert "is newer than this envbuild" in capsys.readouterr().err
