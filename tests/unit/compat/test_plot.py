"""The grid of releases against cards, and its pictures."""

from dataclasses import replace
from itertools import chain
from xml.etree import ElementTree as ET

import pytest

from envbuild.compat import plot
from envbuild.compat.grid import LOOKS, Cell, Column, Grid, Line, all_columns, grid
from envbuild.compat.tables import load
from envbuild.compat.triangle import Wanted, works

FACTS = load()
HOPPER = Column(title="h100", capability="9.0")
BLACKWELL = Column(title="b200", capability="10.0")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = Grid(
    columns=(Column(title='<b>"x" & \x07', capability="9.0", cards=("a'<", "b" * 60)),),
    lines=(
        Line(
            framework="PyTorch",
            version="1" * 40,
            cuda="12.4",
            cells=(Cell(look="no", text="no <code>", why='why\n- \x00 </style> (source: "&\'")'),),
        ),
    ),
    read="2026-12-01",
)


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own


def drawn(versions: str = "==2.4.0", **more: str) -> Grid:
    wanted = Wanted(framework="pytorch", versions=versions, **more)  # type: ignore[arg-type]
    return grid(FACTS, wanted, (HOPPER, BLACKWELL))


def test_a_release_on_two_cards() -> None:
    found = drawn()
    assert [(line.version, line.cuda) for line in found.lines] == [
        ("2.4.0", "12.4"),
        ("2.4.0", "12.1"),
        ("2.4.0", "11.8"),
    ]
    hopper, blackwell = found.lines[0].cells
    assert (hopper.look, hopper.text) == ("native", "≥525.60.13")
    assert hopper.why.splitlines()[0] == "PyTorch 2.4.0, CUDA 12.4, on h100 (9.0)"
    assert "torch 2.4.0, CUDA 12.4, cuDNN 9.1.0.70, PyTorch's wheel index, cu124:" in hopper.why
    assert "- driver 525.60.13 or newer: CUDA 12.4 runs from there on (source: " in hopper.why
    assert (blackwell.look, blackwell.text) == ("no", "no code")
    assert "- it has no code for 10.0: it holds sm_50" in blackwell.why
    assert "; pytorch/builder release/2.4, manywheel/build_cuda.sh" in blackwell.why


def test_a_host_takes_no_line_away_and_a_cuda_does() -> None:
    old = drawn(driver="450", python="3.13")
    assert {cell.look for line in old.lines for cell in line.cells} == {"no"}
    assert old.lines[0].cells[0].text == "Python, driver"
    assert [line.cuda for line in drawn(cuda="12.1").lines] == ["12.1"]
    assert drawn("==2.4.0", cuda="13").lines == ()


@pytest.mark.parametrize("more", [{}, {"driver": "535"}, {"python": "3.9", "cuda": "12"}])
def test_a_cell_works_exactly_where_a_set_is_listed(more: dict[str, str]) -> None:
    columns = all_columns(FACTS)
    found = grid(FACTS, Wanted(**more), columns)  # type: ignore[arg-type]
    any_works = False
    for number, column in enumerate(columns):
        wanted = Wanted(capabilities=(column.capability,), **more)  # type: ignore[arg-type]
        listed = {
            (each.build.framework, each.build.version, (each.build.cuda or "x").split(".")[:2][-1])
            for each in works(FACTS, wanted)
        }
        shown = {
            (line.framework.lower(), line.version, line.cuda.split(".")[1])
            for line in found.lines
            if line.cells[number].look != "no"
        }
        assert shown == listed
        any_works |= bool(listed)
    assert any_works


def test_every_card_that_is_known_is_in_a_column() -> None:
    cards = list(chain.from_iterable(column.cards for column in all_columns(FACTS)))
    assert sorted(cards) == sorted(row.id for row in FACTS.gpus)


def test_the_svg_is_well_formed_and_loads_nothing() -> None:
    found = drawn("")
    text = plot.svg(found, command="envbuild triangle plot")
    assert plot.svg(drawn(""), command="envbuild triangle plot") == text
    root = parsed(text)
    assert root.find(f"{SVG}title") is not None
    assert "from facts read up to 2026-" in (root.findtext(f"{SVG}desc") or "")
    cells = [each for each in root.iter(f"{SVG}g") if each.get("role") == "cell"]
    assert len(cells) == len(found.lines) * 2
    for cell in cells:
        assert "(source: " in (cell.findtext(f"{SVG}title") or "")
        assert cell.findtext(f"{SVG}text")
    assert text.count("http") == text.count("http://www.w3.org/2000/svg") == 1
    assert "url(" not in text
    assert "<script" not in text


def test_the_html_is_a_table_with_heads() -> None:
    text = plot.html(drawn(), command="envbuild triangle plot")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert '<th scope="rowgroup" rowspan="3">2.4.0</th>' in text
    assert text.count("<td ") == 6
    assert text.count('tabindex="0"') == 6
    assert "http" not in text
    assert "<script" not in text


def test_hostile_text_stays_text() -> None:
    root = parsed(plot.svg(HOSTILE, command="x '<y>' &"))
    (cell,) = [each for each in root.iter(f"{SVG}g") if each.get("role") == "cell"]
    assert cell.findtext(f"{SVG}title") == 'why\n- \ufffd </style> (source: "&\'")'
    text = plot.html(HOSTILE, command="x '<y>' &")
    assert "<b>" not in text
    assert text.count("</style>") == 1
    assert "&lt;y&gt;" in text


def test_long_labels_widen_the_picture() -> None:
    def width(one: Grid) -> int:
        return int(parsed(plot.svg(one, command="x")).get("width") or 0)

    (column,) = HOSTILE.columns
    wide = replace(HOSTILE, columns=(replace(column, title="t" * 200),))
    assert width(wide) > width(HOSTILE) + 1000


def luminance(color: str) -> float:
    """Return the relative luminance of a colour (WCAG 2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("pair", [*plot.PAGE, *chain.from_iterable(plot.COLORS.values())])
def test_text_can_be_read(pair: tuple[str, str]) -> None:
    dark, light = sorted(map(luminance, pair))
    assert (light + 0.05) / (dark + 0.05) >= 7


def test_each_look_has_a_colour_and_words() -> None:
    assert list(plot.COLORS) == list(LOOKS)
