"""Damaged generations are made anew of what they keep; what is damaged in a cache reaches none."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from integration.creating import NOW, PLACEHOLDER, WHO, Creator, damage, order
from integration.packages import File, Made, make_package, program

from envbuild.cli.main import main
from envbuild.errors import StoreError
from envbuild.pipeline.repair import Repair, repair
from envbuild.progress import Quiet
from envbuild.store import history
from envbuild.store.create import Created
from envbuild.store.layout import Generation


@pytest.fixture
def creator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Creator:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
    return Creator(root=tmp_path / "store", home=tmp_path / "home")


@pytest.fixture
def tools(tmp_path: Path) -> Made:
    return make_package(
        tmp_path / "channel",
        "tools",
        content={
            "bin/hello": program(
                f"#!/bin/sh\necho hello from {PLACEHOLDER}\n", placeholder=PLACEHOLDER
            ),
            "share/tools.txt": File(content=b"tools\n"),
            "share/more.txt": File(content=b"more\n"),
        },
    )


def repaired(creator: Creator, generation: Generation) -> Repair:
    return repair(
        generation,
        home=creator.root.parent / "home",
        access=creator.access,
        progress=Quiet(),
        who=WHO,
        now=NOW,
    )


def edit(created: Created, path: str = "share/tools.txt", text: str = "TOOLS\n") -> Path:
    """Change a file in place, as an editor does: its size and time of change stay."""
    file = created.generation.prefix / path
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return file


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def test_what_is_whole_stays_alone(creator: Creator, tools: Made) -> None:
    created = creator.create(order([tools]))
    assert repaired(creator, created.generation) == Repair(findings=())
    assert len(list(creator.place.generations.iterdir())) == 1


def test_damage_that_no_time_stamp_shows_reaches_no_new_generation(
    creator: Creator, tools: Made
) -> None:
    first = creator.create(order([tools]))
    edited = edit(first)
    assert edited.stat().st_nlink > 1
    done = repaired(creator, first.generation)
    assert done.created is not None
    assert done.created.generation.identifier == f"{first.generation.identifier}-2"
    assert damage(done.created) == []
    assert edited.read_text() == "TOOLS\n"
    assert creator.place.current.resolve() == done.created.generation.prefix
    assert [move.what for move in history.read(creator.place)] == ["create", "repair"]
    assert done.created.manifest.inputs == first.manifest.inputs


def test_what_is_not_current_is_made_anew_without_becoming_it(
    creator: Creator, tools: Made
) -> None:
    first = creator.create(order([tools]))
    second = creator.create(order([tools]), reinstall=True)
    (first.generation.prefix / "share/more.txt").unlink()
    done = repaired(creator, first.generation)
    assert done.created is not None
    assert done.created.generation.identifier.endswith("-3")
    assert creator.place.current.resolve() == second.generation.prefix


@pytest.mark.parametrize("lost", ["manifest.json", "files.json"])
def test_lists_that_are_damaged_are_damage(creator: Creator, tools: Made, lost: str) -> None:
    first = creator.create(order([tools]))
    (first.generation.own / lost).write_text("{")
    done = repaired(creator, first.generation)
    assert [finding.code for finding in done.findings] == ["manifest-damaged"]
    assert done.created is not None
    assert damage(done.created) == []


@pytest.mark.parametrize("how", ["gone", "broken", "of another"])
def test_without_what_it_was_made_from_nothing_is_done(
    creator: Creator, tools: Made, how: str
) -> None:
    first = creator.create(order([tools]))
    edit(first)
    kept = first.generation.order
    if how == "gone":
        kept.unlink()
    else:
        digest = first.manifest.environment_digest
        kept.write_text("[]" if how == "broken" else kept.read_text().replace(digest, "f" * 64))
    with pytest.raises(StoreError) as caught:
        repaired(creator, first.generation)
    assert caught.value.hint == "envbuild create demo --reinstall"
    assert len(list(creator.place.generations.iterdir())) == 1


def test_on_the_command_line(
    creator: Creator, tools: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    first = creator.create(order([tools])).generation.identifier
    assert main(["verify", "demo", "--repair"]) == 0
    assert "as they were installed" in capsys.readouterr().out
    (creator.place.generation(first).prefix / "share/tools.txt").unlink()
    assert main(["verify", "demo"]) == 1
    assert "verify demo --repair" in capsys.readouterr().err
    assert main(["verify", "demo", "--repair", "-n", "--json"]) == 0
    planned = printed(capsys)
    assert (planned["damaged"], planned["repaired"]) == (True, None)
    assert main(["verify", "demo", "--repair", "--offline", "--json"]) == 0
    data = printed(capsys)
    assert (data["repaired"], data["current"], data["dry_run"]) == (f"{first}-2", True, False)
    assert [finding["code"] for finding in data["findings"]] == ["file-missing"]
    assert main(["verify", "demo"]) == 0
    assert main(["verify", "demo", "-n"]) == 2
