"""`status` against real recipes and locks."""

import dataclasses
import os
from datetime import UTC, datetime
from pathlib import Path

import generations as made
import pytest

from envbuild.errors import RecipeError
from envbuild.lock.digest import environment_digest
from envbuild.lock.freeze import freeze
from envbuild.lock.model import Lock
from envbuild.pipeline.lock import write_lock
from envbuild.pipeline.status import Status, status
from envbuild.recipe.load import load
from envbuild.solve.solution import PlatformSolution, Solution
from envbuild.store import manifest
from envbuild.store.layout import GENERATION_FORMAT, Generation, Place

_RECIPE = 'name: demo\nchannels: [host]\npython: ">=3.11"\n'


class _World:
    """A recipe with a lock, and an environment that may have been made of them."""

    def __init__(self, folder: Path) -> None:
        self.recipes = folder / "recipes"
        self.locks = folder / "lockfiles"
        self.python = folder / "python3.11"
        self.place: Place = made.place_in(folder)
        self.recipes.mkdir()
        self.python.write_text("")
        self.write_recipe(_RECIPE)
        self.proc = folder / "proc"
        self.proc.mkdir()

    def write_recipe(self, text: str) -> None:
        (self.recipes / "demo.yaml").write_text(text)

    def lock(self) -> Lock:
        loaded = load("demo", [self.recipes])
        solution = Solution(
            platforms=(PlatformSolution(platform="linux-64", conda=(), pip=()),),
            cutoff=datetime(2026, 11, 1, tzinfo=UTC),
        )
        lock = freeze(loaded.recipe, solution)
        write_lock(lock, self.locks / "demo")
        return lock

    def make(self, lock: Lock, *, suffix: str = "", digest: str | None = None) -> Generation:
        interpreter = manifest.Interpreter(
            path=str(self.python),
            version="3.11.7",
            digest="c" * 64,
            stamps=manifest.stamps([self.python]),
        )
        whole = digest or environment_digest(
            lock,
            "linux-64",
            interpreter=interpreter.digest,
            python=interpreter.version,
            store_format=GENERATION_FORMAT,
        )
        generation = made.make(self.place, f"{whole[:16]}{suffix}", interpreter=interpreter)
        written = manifest.read(generation)
        manifest.write(generation, dataclasses.replace(written, environment_digest=whole))
        made.make_current(generation)
        return generation

    def status(self) -> Status:
        return status(
            self.place,
            recipe_folders=[self.recipes],
            find_lock=self._find,
            platform="linux-64",
            proc=self.proc,
        )

    def codes(self) -> list[str]:
        return [finding.code for finding in self.status().findings]

    def _find(self, name: str, _: Path) -> Path | None:
        return self.locks / name if (self.locks / name).is_dir() else None


@pytest.fixture
def world(tmp_path: Path) -> _World:
    return _World(tmp_path)


def test_what_recipe_and_lock_say_has_no_finding(world: _World) -> None:
    generation = world.make(world.lock())
    found = world.status()
    assert found.findings == ()
    assert (found.current, found.wanted) == (generation.identifier, generation.identifier)
    assert found.running == ()


def test_after_a_rollback_it_names_the_generation_that_the_lock_gives(world: _World) -> None:
    wanted = world.make(world.lock())
    world.make(world.lock(), digest="d" * 64)
    (finding,) = world.status().findings
    assert (finding.code, finding.severity) == ("rolled-back", "warning")
    assert finding.hint == f"envbuild switch demo {wanted.identifier}"


def test_a_generation_that_is_not_made_yet_is_an_error(world: _World) -> None:
    world.make(world.lock(), digest="d" * 64)
    (finding,) = world.status().findings
    assert (finding.code, finding.severity) == ("generation-outdated", "error")
    assert finding.hint == "envbuild create demo"


def test_a_newer_generation_of_the_same_lock_is_a_note(world: _World) -> None:
    lock = world.lock()
    first = world.make(lock)
    world.make(lock, suffix="-2")
    made.make_current(first, what="rollback")
    assert world.codes() == ["reinstalled"]


def test_a_lock_that_does_not_answer_is_named(world: _World) -> None:
    world.make(world.lock())
    world.write_recipe(_RECIPE.replace("3.11", "3.12"))
    assert "lock-python" in world.codes()


def test_what_is_missing_is_named(world: _World) -> None:
    world.make(world.lock())
    for path in (world.locks / "demo").iterdir():
        path.unlink()
    (world.locks / "demo").rmdir()
    assert world.codes() == ["lock-missing"]
    (world.recipes / "demo.yaml").unlink()
    assert world.codes() == ["recipe-missing"]


def test_an_interpreter_that_changed_is_a_warning(world: _World) -> None:
    world.make(world.lock())
    os.utime(world.python, ns=(1, 1))
    assert world.codes() == ["interpreter-changed"]
    world.python.unlink()
    (finding,) = world.status().findings
    assert "No such file" in finding.what


def test_no_current_or_a_damaged_one_is_an_answer(world: _World) -> None:
    generation = world.make(world.lock())
    generation.manifest.write_text("{")
    assert world.codes() == ["current-damaged"]
    world.place.current.unlink()
    assert world.codes() == ["not-current"]


def test_a_wrong_recipe_is_an_error(world: _World) -> None:
    world.make(world.lock())
    world.write_recipe("name: [")
    with pytest.raises(RecipeError):
        world.status()
