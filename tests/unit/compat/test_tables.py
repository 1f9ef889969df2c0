"""The tables of facts: those that ship, a site's own, and bad ones."""

import os
import re
from pathlib import Path

import pytest

from envbuild.compat.consistency import numbers
from envbuild.compat.model import FrameworkBuild, Gpu
from envbuild.compat.tables import SHIPPED, load
from envbuild.errors import FactsError

FACTS = load()
BUILDS = {row.name: row for row in FACTS.builds}

ROW = 'sources = ["x"]\nread = "2026-12-01"\nconfidence = "low"\n'
BAD = f"""\
[sources]
x = "x"
[[bad]]
id = "q"
packages = {{torch = ">>2"}}
when = "a"
effect = "b"
cure = "c"
{ROW}"""
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


def build(**more: str) -> str:
    rows = {"version": "2.99.0", "origin": "pypi", "platform": "linux-64", "cuda": "12.4", **more}
    values = "".join(
        f"{key} = {value if value[0] == '[' else repr(value)}\n" for key, value in rows.items()
    )
    return f'[sources]\nx = "x"\n[[build]]\n{values}{ROW}'


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (
            "gpus.toml",
            GPU.replace("title =", "titel ="),
            "4: unknown key 'titel' (did you mean 'title'?)",
        ),
        (
            "gpus.toml",
            GPU.replace("title =", "zzz ="),
            "4: unknown key 'zzz' (the keys are capability, ",
        ),
        (
            "gpus.toml",
            GPU.replace('"X100"', "3"),
            "4: title: expected `str`, got `int` (write it in quotes)",
        ),
        (
            "gpus.toml",
            GPU.replace('"2026-12-01"', "2026-12-01"),
            "4: read: expected `str`, got `date`",
        ),
        ("gpus.toml", GPU.replace('title = "X100"\n', ""), "4: a fact of this table needs title"),
        (
            "gpus.toml",
            GPU.replace('["ours"]', '["our"]'),
            "4: [sources] has no 'our' (did you mean 'ours'?)",
        ),
        ("gpus.toml", GPU.replace('["ours"]', "[]"), "4: a fact needs sources, a list of names"),
        (
            "gpus.toml",
            GPU.replace('sources = ["ours"]\n', ""),
            "4: a fact needs sources, a list of names",
        ),
        (
            "gpus.toml",
            GPU.replace("a table on our wall", " "),
            "2: [sources] ours: a text is needed",
        ),
        (
            "gpus.toml",
            GPU.replace('"a table on our wall"', "3"),
            "2: [sources] ours: a text is needed",
        ),
        ("gpus.toml", 'sources = "x"\n', "1: sources is not a table"),
        (
            "gpus.toml",
            GPU.replace("high", "sure"),
            "4: confidence: 'sure' is none of high, medium, low",
        ),
        ("gpus.toml", GPU.replace("high", "hihg"), "(did you mean 'high'?)"),
        (
            "gpus.toml",
            GPU.replace('"9.0"', '"9.7"'),
            "4: gpu x100: no architecture has the compute capability 9.7",
        ),
        (
            "gpus.toml",
            GPU.replace("2026-12-01", "yesterday"),
            "4: gpu x100: read: 'yesterday' is no day",
        ),
        (
            "gpus.toml",
            GPU.replace("[[gpu]]", "[[gpus]]"),
            "4: there is no [[gpus]] in this table (did you mean [[gpu]]?)",
        ),
        (
            "gpus.toml",
            GPU.replace("[[gpu]]", "[[card]]"),
            "(its rows are [[architecture]] and [[gpu]]",
        ),
        ("gpus.toml", GPU.replace("[[gpu]]", "[gpu]"), "4: gpu is not an array of tables"),
        (
            "gpus.toml",
            "gpu = [1]\n",
            "1: gpu is not an array of tables (begin each row with [[gpu]])",
        ),
        ("gpus.toml", GPU.replace("= [", "= "), "8:17: "),
        ("gpus.toml", GPU.replace("X100", "\udcff"), "6: this is no UTF-8"),
        ("gpu.toml", GPU, "there is no table of this name (did you mean gpus.toml?)"),
        ("wiki.toml", GPU, "there is no table of this name (the tables are cuda.toml, "),
        (
            "cuda.toml",
            f'[sources]\nx = "x"\n[[toolkit]]\nversion = "12.5.9"\ndriver = "510.1"\n{ROW}',
            "3: cuda 12.5.9: its minimum driver is older than that of cuda 12.5.1",
        ),
        (
            "cuda.toml",
            f'[sources]\nx = "x"\n[[toolkit]]\nversion = "12.0.9"\ndriver = "900.1"\n{ROW}',
            "3: cuda 12.0.9: its minimum driver is newer than that of cuda 12.1.0",
        ),
        (
            "pytorch.toml",
            build(codes='["hopper"]'),
            "3: pytorch 2.99.0 pypi: 'hopper' is no target",
        ),
        ("pytorch.toml", build(version="2.x"), "3: pytorch 2.x pypi: '2.x' is not a version"),
        (
            "pytorch.toml",
            build(cuda="12.7"),
            "3: pytorch 2.99.0 pypi: there is no toolkit of CUDA 12.7",
        ),
        ("pytorch.toml", build(cudnn="nine"), "'nine' is neither a version nor a range"),
        ("pytorch.toml", build(pythons='["new"]'), "'new' is no Python such as 3.12 or 3.13t"),
        ("pytorch.toml", build(platform="win-64"), "3: platform: 'win-64' is none of linux-64, "),
        ("pytorch.toml", build(framework="jax"), "3: unknown key 'framework'"),
        (
            "known_bad.toml",
            BAD,
            "3: known-bad q: '>>2' is neither a version nor a range",
        ),
    ],
)
def test_a_bad_table_is_named_with_its_line(
    tmp_path: Path, file: str, text: str, told: str
) -> None:
    (tmp_path / file).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(FactsError) as caught:
        load(tmp_path, only=("cuda", Path(file).stem))
    said = f"{caught.value.message} ({caught.value.hint})"
    assert said.startswith(f"{tmp_path / file}:")
    assert told in said
    assert "\n" not in said


def test_one_fact_stands_once_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "gpus.toml").write_text(GPU + "[[gpu]]" + GPU.split("[[gpu]]")[1])
    with pytest.raises(FactsError, match=r"gpus.toml:11: gpu x100 stands here again") as caught:
        load(tmp_path, only=("gpus",))
    assert caught.value.hint == f"the other is {tmp_path}/gpus.toml:4"


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("none", "No such file"), ("file", "Not a dir"), ("loop", "Too many levels")):
        with pytest.raises(FactsError, match=f"{name}: no folder of facts can be read .*: {why}"):
            load(tmp_path / name)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "gpus.toml").mkdir()
    with pytest.raises(FactsError, match=r"gpus.toml cannot be read: Is a directory$"):
        load(tmp_path, only=("gpus",))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_is_forbidden(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    with pytest.raises(FactsError, match="Permission denied"):
        load(tmp_path)


def test_what_the_wheels_hold_agrees_with_what_they_were_told_to_make() -> None:
    """A build whose every file was read has what its own libraries were told to make."""
    read = [row for row in FACTS.builds if row.all_codes]
    assert all(isinstance(row, FrameworkBuild) for row in read)
    assert read
    for row in read:
        assert set(row.codes) <= set(row.all_codes), row.name
