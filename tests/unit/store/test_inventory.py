from dataclasses import asdict
from pathlib import Path

import generations as made
import pytest

from envbuild.store import collect, inventory, manifest, needs
from envbuild.store.inventory import Summary
from envbuild.store.layout import Store
from envbuild.target import Need, Needs
from envbuild.tools import files

_CHANNEL = "https://conda.anaconda.org/conda-forge"
_PYTHON = manifest.InstalledPackage(
    kind="conda",
    name="python",
    version="3.11.9",
    build="h1_0",
    source=f"{_CHANNEL}/linux-64/python-3.11.9-h1_0.conda",
    digest="c" * 64,
    weak=True,
)


def test_an_empty_or_missing_store_has_no_environments(tmp_path: Path) -> None:
    assert inventory.summaries(Store(root=tmp_path / "none")) == ()


def test_a_summary_per_environment(tmp_path: Path) -> None:
    place = made.place_in(tmp_path)
    made.make(place, made.FIRST)
    made.make_current(made.make(place, made.SECOND, packages=(_PYTHON,)))
    made.make(made.place_in(tmp_path, "bare"), made.FIRST)
    bare, demo = inventory.summaries(place.store)
    assert bare == Summary(name="bare", current=None, generations=1)
    assert (demo.name, demo.current, demo.generations) == ("demo", made.SECOND, 2)
    assert (demo.platform, demo.python, demo.problem) == ("linux-64", "3.11.9", "")
    assert demo.size


def test_a_damaged_environment_does_not_hide_the_others(tmp_path: Path) -> None:
    fine = made.make(made.place_in(tmp_path, "fine"), made.FIRST)
    made.make_current(fine)
    for name, damage in (("a", "{"), ("b", '{"version": 1}')):
        generation = made.make(made.place_in(tmp_path, name), made.FIRST)
        made.make_current(generation)
        generation.manifest.write_text(damage)
    outside = made.make(made.place_in(tmp_path, "c"), made.FIRST)
    made.make_current(outside)
    files.swap_link(outside.place.current, "/etc")
    found = inventory.summaries(fine.place.store)
    assert [bool(summary.problem) for summary in found] == [True, True, True, False]
    assert [summary.name for summary in found] == ["a", "b", "c", "fine"]


def test_generations_are_listed_with_their_marks(tmp_path: Path) -> None:
    place = made.place_in(tmp_path)
    made.make(place, made.FIRST)
    made.make_current(made.make(place, made.SECOND))
    made.make(place, made.THIRD).manifest.write_text("{")
    collect.pin(place, made.FIRST, who=made.WHO, now=made.NOW)
    first, second, third = sorted(inventory.listed(place), key=lambda each: each.identifier)
    assert (first.pinned, first.current) == (True, False)
    assert (second.pinned, second.current) == (False, True)
    assert third.created == ""


def test_details_name_channels_and_what_is_known_by_md5_only(tmp_path: Path) -> None:
    generation = made.make(made.place_in(tmp_path), made.FIRST, packages=(_PYTHON,))
    unknown = Need(value=None, origin=None)
    glibc = Need(value=">=2.28", origin="recipe")
    wanted = Needs(driver=unknown, gpus=unknown, glibc=glibc, cuda=unknown)
    generation.needs.write_text(needs.dumps(wanted))
    found = inventory.details(generation)
    assert found.channels == (_CHANNEL,)
    assert not found.current
    assert found.needs == asdict(wanted)
    assert found.reproducible[-1] == "The lock knows these by md5 and size only: python."
    assert found.own_size > 0


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_needs_that_cannot_be_read_are_unknown(tmp_path: Path, text: str | None) -> None:
    generation = made.make(made.place_in(tmp_path), made.FIRST)
    if text is not None:
        generation.needs.write_text(text)
    assert inventory.details(generation).needs is None


def test_details_of_a_host_recipe_name_the_interpreter_and_its_digest(tmp_path: Path) -> None:
    interpreter = manifest.Interpreter(
        path="/usr/bin/python3.11", version="3.11.2", digest="c" * 64, stamps=()
    )
    generation = made.make(made.place_in(tmp_path), made.FIRST, interpreter=interpreter)
    found = inventory.details(generation)
    assert found.python == "3.11.2"
    assert "/usr/bin/python3.11" in found.reproducible[0]
    assert "c" * 64 in found.reproducible[0]
