"""What differs between rendered units and a folder, and writing into one."""

from pathlib import Path

import pytest
from unit.units.rendering import origin

from envbuild.errors import StoreError
from envbuild.recipe.load import loads
from envbuild.units.compare import compare, write
from envbuild.units.model import Manager, UnitFile
from envbuild.units.render import Templates, render

_TWO = "services: {a: {exec: x}, b: {exec: y, gpu: 1}}"
_ONE = "services: {a: {exec: z}}"


def _files(text: str, name: str = "x") -> tuple[UnitFile, ...]:
    loaded = loads(f"name: {name}\n{text}", source=f"{name}.yaml")
    return render(loaded, origin(name), Manager(), Templates())


def _said(files: tuple[UnitFile, ...], folder: Path) -> dict[str, str]:
    return {one.name: one.change for one in compare(files, "x", folder)}


def test_a_folder_gets_what_was_rendered_and_nothing_stays_of_before(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    assert set(_said(_files(_TWO), folder).values()) == {"missing"}
    assert len(write(_files(_TWO), "x", folder)) == 4
    assert compare(_files(_TWO), "x", folder) == ()
    assert _said(_files(_ONE), folder) == {
        "envbuild-x.a.service": "differs",
        "envbuild-x.b.service": "left over",
    }
    write(_files(_ONE), "x", folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "envbuild-gpu-nodes.service",  # others may need it
        "envbuild-x.a.service",
        "envbuild-x.slice",
    ]


def test_other_environments_and_drop_ins_are_left_alone(tmp_path: Path) -> None:
    write(_files(_TWO, "x.a"), "x.a", tmp_path)
    drop_in = tmp_path / "envbuild-x.a.service.d/more.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nNice=5\n")
    write(_files(_ONE), "x", tmp_path)
    assert compare(_files(_TWO, "x.a"), "x.a", tmp_path) == ()
    assert compare(_files(_ONE), "x", tmp_path) == ()
    assert drop_in.exists()


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    foreign = tmp_path / "envbuild-x.a.service"
    foreign.write_text("[Service]\nExecStart=/bin/true\n")
    assert _said(_files(_ONE), tmp_path)[foreign.name] == "not ours"
    with pytest.raises(StoreError, match="was not written by envbuild"):
        write(_files(_ONE), "x", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [foreign.name]


def test_a_difference_as_diff_shows_it(tmp_path: Path) -> None:
    write(_files(_TWO), "x", tmp_path)
    (first, _) = compare(_files(_ONE), "x", tmp_path)
    lines = first.lines(tmp_path).splitlines()
    assert lines[0] == f"--- {tmp_path}/envbuild-x.a.service"
    assert next(line for line in lines if line.startswith("+Exec")).endswith("/bin/z")
