"""The tables of facts: those that ship, a site's own, and bad ones."""

import re
from pathlib import Path

import pytest

from envbuild.compat.consistency import numbers
from envbuild.compat.model import FrameworkBuild, Gpu
from envbuild.compat.tables import SHIPPED, load
from envbuild.errors import FactsError

FACTS = load()
BUILDS = {row.name: row for row in FACTS.builds}

GPU = """\
[sources]
ours = "a table on our wall"

[[gpu]]
id = "x100"
title = "X100"
capability = "9.0"
sources = ["ours"]
read = "2026-12-01"
confidence = "high"
"""


def test_every_row_has_a_source_a_day_and_a_name_of_its_own() -> None:
    rows = list(FACTS.rows())
    assert len(rows) > 300
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.sources
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.read)
        assert row.confidence in ("high", "medium", "low")


def test_every_named_source_is_used() -> None:
    for path in SHIPPED.glob("*.toml"):
        text = path.read_text()
        head = text.split("[sources]\n")[1].split("\n\n")[0]
        for line in head.splitlines():
            name = line.partition(" = ")[0]
            assert f'"{name}"' in text, f"{path.name}: {name}"


def test_the_golden_triangle_of_h100() -> None:
    build = BUILDS["pytorch 2.4.0 cu124"]
    assert (build.cuda, build.cudnn) == ("12.4", "9.1.0.70")
    assert {"sm_90", "sm_80"} <= set(build.codes)


def test_torch_2_4_has_no_code_for_blackwell_and_2_8_has() -> None:
    for name, has in (("pytorch 2.4.0 pypi", False), ("pytorch 2.8.0 pypi", True)):
        assert ("sm_100" in BUILDS[name].codes) is has
        assert not [code for code in BUILDS[name].codes if code.startswith("compute_")]


def test_jax_changed_its_cudnn_between_0_4_28_and_0_4_29() -> None:
    assert BUILDS["jax 0.4.28 cuda12"].cudnn == "<9.0,>=8.9.2.26"
    assert BUILDS["jax 0.4.29 cuda12"].cudnn == "<10.0,>=9.0"


def test_torch_from_pypi_is_cuda_13_from_2_11_on() -> None:
    driver = {row.version: row.driver for row in FACTS.toolkits}
    for build in FACTS.builds:
        if build.framework == "pytorch" and build.origin == "pypi" and build.cuda:
            new = numbers(build.version) >= (2, 11)
            assert build.cuda.startswith("13.") is new, build.name
    assert driver["13.0.0"] == "580.65.06"


def test_a_site_adds_rows_and_replaces_ours(tmp_path: Path) -> None:
    (tmp_path / "gpus.toml").write_text(GPU + GPU.split("\n\n")[1].replace("x100", "h100"))
    gpus = {row.id: row for row in load(tmp_path).gpus}
    assert isinstance(gpus["x100"], Gpu)
    assert gpus["x100"].site == str(tmp_path)
    assert gpus["x100"].sources == ("a table on our wall",)
    assert gpus["h100"].title == "X100"
    assert gpus["h200"].site == ""


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("gpus.toml", GPU.replace("id =", "ids ="), r"gpus.toml:4: unknown key 'ids'"),
        ("gpus.toml", GPU.replace('title = "X100"', "title = 3"), r":4: title: expected `str`"),
        ("gpus.toml", GPU.replace('title = "X100"\n', ""), r":4: .*missing required .*title"),
        ("gpus.toml", GPU.replace('["ours"]', '["theirs"]'), r":4: \[sources\] has no 'theirs'"),
        ("gpus.toml", GPU.replace('["ours"]', "[]"), r":4: a fact needs sources"),
        ("gpus.toml", GPU.replace("high", "sure"), r":4: confidence: "),
        ("gpus.toml", GPU.replace('"9.0"', '"9.7"'), r"gpu x100: no architecture has .* 9.7"),
        ("gpus.toml", GPU.replace("2026-12-01", "yesterday"), r"gpu x100: .*yesterday"),
        ("gpus.toml", GPU.replace("[[gpu]]", "[[card]]"), r"there is no \[\[card\]\]"),
        ("gpus.toml", GPU.replace("= [", "= "), r"gpus.toml: .*line 8"),
        ("cards.toml", GPU, r"cards.toml: there is no table of this name"),
        (
            "cuda.toml",
            (
                '[sources]\nx = "x"\n[[toolkit]]\nversion = "12.5.9"\ndriver = "510.1"\n'
                'sources = ["x"]\nread = "2026-12-01"\nconfidence = "low"\n'
            ),
            r"cuda 12.5.9: its minimum driver is older than that of cuda 12.5.1",
        ),
        (
            "pytorch.toml",
            (
                '[sources]\nx = "x"\n[[build]]\nversion = "9"\norigin = "pypi"\n'
                'platform = "linux-64"\ncodes = ["hopper"]\n'
                'sources = ["x"]\nread = "2026-12-01"\nconfidence = "low"\n'
            ),
            r"pytorch 9 pypi: 'hopper' is no target",
        ),
    ],
)
def test_a_bad_table_is_named_with_its_line(
    tmp_path: Path, file: str, text: str, told: str
) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(FactsError, match=told) as caught:
        load(tmp_path)
    assert "\n" not in caught.value.message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="is no folder of facts"):
        load(tmp_path / "none")


def test_what_the_wheels_hold_agrees_with_what_they_were_told_to_make() -> None:
    """A build whose every file was read has what its own libraries were told to make."""
    read = [row for row in FACTS.builds if row.all_codes]
    assert all(isinstance(row, FrameworkBuild) for row in read)
    assert read
    for row in read:
        assert set(row.codes) <= set(row.all_codes), row.name
