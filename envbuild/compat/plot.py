"""A grid as one SVG or HTML file: nothing is loaded, the same grid gives the same bytes.

Colours follow what the reader prefers, light or dark, and none says what the text does not.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from xml.etree import ElementTree as ET

from envbuild.compat.grid import LOOKS, Cell, Column, Grid, Line, Look

# Background and text of a cell, in light and dark; the text has a contrast of 7:1 and more.
COLORS: dict[Look, tuple[tuple[str, str], tuple[str, str]]] = {
    "native": (("#d5f0dc", "#0b4a20"), ("#12391f", "#bdf0cb")),
    "jit": (("#ffefb8", "#553f00"), ("#453608", "#ffe38f")),
    "unknown": (("#e4e8ee", "#333c4a"), ("#303743", "#d5dce6")),
    "no": (("#fbdcd8", "#701009"), ("#4d1c17", "#ffd0ca")),
}
PAGE = (("#ffffff", "#1b1f24"), ("#14171b", "#e6e9ee"))
_EXAMPLES: dict[Look, str] = {
    "native": "≥driver",
    "jit": "JIT, ≥driver",
    "unknown": "?, ≥driver",
    "no": "no code",
}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"
_CHARACTER = 7.4  # pixels that a character takes at most, on average, at 12 px
_LINE = 24
_MARGIN = 16
_WIDTH = 560
_HTML = f"""\
:root {{ color-scheme: light dark }}
body {{ margin: 0; padding: 0 16px 96px; font: 14px/1.4 {_FONT}; width: max-content;
  min-width: calc(100% - 32px) }}
header {{ position: sticky; left: 16px; max-width: min(80ch, calc(100vw - 32px)) }}
p {{ margin: 4px 0 }}
ul {{ list-style: none; padding: 0 }}
li {{ margin: 4px 0 }}
li span {{ display: inline-block; min-width: 84px; text-align: center; padding: 1px 6px;
  border-radius: 3px }}
table {{ border-spacing: 2px; margin-top: 24px; font-variant-numeric: tabular-nums }}
th, td {{ padding: 2px 6px; white-space: nowrap }}
td {{ text-align: center; border-radius: 3px }}
thead th {{ position: sticky; top: 0; z-index: 1; vertical-align: bottom }}
thead th:first-child, th[scope=rowgroup] {{ position: sticky; left: 0; text-align: left }}
thead th:nth-child(-n+2) {{ z-index: 2 }}
th[scope=rowgroup] {{ vertical-align: top }}
th[scope=row] {{ position: sticky }}
th[scope=row], small {{ font-weight: normal }}
small {{ display: block }}
td:focus {{ outline: 2px solid; outline-offset: -2px }}
td:focus::after {{ content: attr(title); position: fixed; inset: auto 0 0 0; z-index: 3;
  padding: 12px 16px; white-space: pre-line; overflow-wrap: anywhere; text-align: left;
  max-height: 45vh; overflow: auto; border-top: 1px solid }}"""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HOW_TO = "Point at a cell for the reasons and where they were read."
_HOW_TO_TOUCH = "Point at a cell, or tap it, for the reasons and where they were read."


def title(grid: Grid) -> str:
    """Return what a grid shows."""
    names = dict.fromkeys(line.framework for line in grid.lines)
    return f"{' and '.join(names)} on NVIDIA cards"


def _told(grid: Grid, command: str) -> list[str]:
    """Return how to read a grid and how it was made."""
    kinds = [
        f"{column.capability} {column.title} ({', '.join(column.cards)})"
        for column in grid.columns
        if column.cards
    ]
    rows = "Rows: releases with their CUDA, newest first."
    columns = f"Columns: {'; '.join(kinds) or 'cards, with their compute capability'}."
    return [f"{rows} {columns}", f"Made by {command}, from facts read up to {grid.read}."]


def svg(grid: Grid, *, command: str) -> str:
    """Return a grid as SVG.

    Args:
        grid: What is drawn; it has lines.
        command: The command that makes it again.
    """
    first = _width([line.version for line in grid.lines], least=8)
    second = _width([line.cuda for line in grid.lines], least=6)
    widths = [
        _width([column.title, *(line.cells[number].text for line in grid.lines)])
        for number, column in enumerate(grid.columns)
    ]
    width = max(_WIDTH, 2 * _MARGIN + first + second + sum(widths))
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "table"})
    root.set("aria-labelledby", "envbuild-title")
    root.set("aria-describedby", "envbuild-told")
    ET.SubElement(root, "title", {"id": "envbuild-title"}).text = title(grid)
    told = _told(grid, command)
    ET.SubElement(root, "desc", {"id": "envbuild-told"}).text = _clean(" ".join(told))
    ET.SubElement(root, "style").text = _svg_style()
    ET.SubElement(root, "rect", {"class": "page", "width": "100%", "height": "100%"})
    _text(root, _MARGIN, 34, title(grid), "title")
    y = 56
    characters = int((width - 2 * _MARGIN) / _CHARACTER)
    for text in [*told, _HOW_TO]:
        for part in wrap(text, characters):
            _text(root, _MARGIN, y, part, "told")
            y += 18
    y = _svg_legend(root, y + 4) + 10
    lefts = [_MARGIN + first + second]
    for each in widths:
        lefts.append(lefts[-1] + each)
    for framework, lines in groupby(grid.lines, key=lambda line: line.framework):
        y = _svg_head(root, y, framework, (_MARGIN, _MARGIN + first), (grid.columns, lefts))
        y = _svg_lines(root, y, list(lines), (_MARGIN, _MARGIN + first), lefts) + _LINE
    height = y - _LINE + _MARGIN
    root.set("viewBox", f"0 0 {width} {height}")
    root.set("width", f"{width}")
    root.set("height", f"{height}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _width(texts: Sequence[str], *, least: int = 7) -> int:
    return round(max(least, *map(len, texts)) * _CHARACTER) + 14


def _svg_legend(root: ET.Element, y: int) -> int:
    """Draw what each look means, and return where the next thing goes."""
    for look, text in LOOKS.items():
        group = ET.SubElement(root, "g", {"class": look})
        box = {"x": f"{_MARGIN}", "y": f"{y}", "width": "96", "height": "20", "rx": "3"}
        ET.SubElement(group, "rect", box)
        _text(group, _MARGIN + 48, y + 14, _EXAMPLES[look], "cell")
        _text(root, _MARGIN + 106, y + 14, text, "told")
        y += _LINE
    return y


def _svg_head(
    root: ET.Element,
    y: int,
    framework: str,
    labels: tuple[int, int],
    cards: tuple[Sequence[Column], Sequence[int]],
) -> int:
    row = ET.SubElement(root, "g", {"role": "row"})
    for x, text in zip(labels, (framework, "CUDA"), strict=True):
        _text(row, x, y + 30, text, "head", role="columnheader")
    columns, lefts = cards
    for column, left, right in zip(columns, lefts, lefts[1:], strict=False):
        head = ET.SubElement(row, "g", {"role": "columnheader"})
        ET.SubElement(head, "title").text = _clean(_column(column))
        middle = (left + right) // 2
        _text(head, middle, y + 14, column.title, "head middle")
        if column.capability != column.title:
            _text(head, middle, y + 30, column.capability, "told middle")
    return y + 38


def _svg_lines(
    root: ET.Element, y: int, lines: Sequence[Line], labels: tuple[int, int], lefts: Sequence[int]
) -> int:
    before = ""
    for line in lines:
        if line.version != before:
            rule = {"x1": f"{labels[0]}", "x2": f"{lefts[-1]}", "y1": f"{y}.5", "y2": f"{y}.5"}
            ET.SubElement(root, "line", rule)
        row = ET.SubElement(root, "g", {"role": "row"})
        shown = "head" if line.version != before else "hidden"
        _text(row, labels[0], y + 16, line.version, shown, role="rowheader")
        _text(row, labels[1], y + 16, line.cuda, "told", role="rowheader")
        before = line.version
        for cell, left, right in zip(line.cells, lefts, lefts[1:], strict=False):
            _svg_cell(row, cell, left, right, y)
        y += _LINE
    return y


def _svg_cell(row: ET.Element, cell: Cell, left: int, right: int, y: int) -> None:
    group = ET.SubElement(row, "g", {"class": cell.look, "role": "cell"})
    ET.SubElement(group, "title").text = _clean(cell.why)
    box = {"x": f"{left + 1}", "y": f"{y + 2}", "width": f"{right - left - 2}"}
    ET.SubElement(group, "rect", {**box, "height": f"{_LINE - 3}", "rx": "3"})
    _text(group, (left + right) // 2, y + 16, cell.text, "cell")


def _text(
    parent: ET.Element, x: int, y: int, text: str, looks: str, *, role: str | None = None
) -> None:
    element = ET.SubElement(parent, "text", {"x": f"{x}", "y": f"{y}", "class": looks})
    if role is not None:
        element.set("role", role)
    element.text = _clean(text)


def _svg_style() -> str:
    rules = [
        "svg { color-scheme: light dark }",
        f"text {{ font: 12px {_FONT}; font-variant-numeric: tabular-nums }}",
        ".title { font-size: 18px; font-weight: 600 }",
        ".head { font-weight: 600 }",
        ".hidden { opacity: 0 }",
        ".cell, .middle { text-anchor: middle }",
    ]
    for number, media in enumerate(("", "@media (prefers-color-scheme: dark) ")):
        page, ink = PAGE[number]
        own = [f".page {{ fill: {page} }}", f"text {{ fill: {ink} }}"]
        own += [f"line {{ stroke: {ink}; stroke-opacity: 0.25 }}"]
        for look, colors in COLORS.items():
            back, front = colors[number]
            own += [f".{look} rect {{ fill: {back} }}", f".{look} text {{ fill: {front} }}"]
        rules += [f"{media}{{ {' '.join(own)} }}"] if media else own
    return "\n" + "\n".join(rules) + "\n"


def html(grid: Grid, *, command: str) -> str:
    """Return a grid as a page of HTML: a table whose heads stay in sight.

    Args:
        grid: What is shown; it has lines.
        command: The command that makes it again.
    """
    root = ET.Element("html", {"lang": "en"})
    head = ET.SubElement(root, "head")
    ET.SubElement(head, "meta", {"charset": "utf-8"})
    viewport = "width=device-width, initial-scale=1"
    ET.SubElement(head, "meta", {"name": "viewport", "content": viewport})
    ET.SubElement(head, "title").text = title(grid)
    ET.SubElement(head, "style").text = _html_style(grid)
    body = ET.SubElement(root, "body")
    top = ET.SubElement(body, "header")
    ET.SubElement(top, "h1").text = title(grid)
    for text in [*_told(grid, command), _HOW_TO_TOUCH]:
        ET.SubElement(top, "p").text = _clean(text)
    legend = ET.SubElement(top, "ul")
    for look, text in LOOKS.items():
        item = ET.SubElement(legend, "li")
        example = ET.SubElement(item, "span", {"class": look})
        example.text = _EXAMPLES[look]
        example.tail = f" {text}"
    for framework, lines in groupby(grid.lines, key=lambda line: line.framework):
        body.append(_table(framework, list(lines), grid.columns))
    ET.indent(root)
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def _table(framework: str, lines: Sequence[Line], columns: Sequence[Column]) -> ET.Element:
    table = ET.Element("table")
    heads = ET.SubElement(ET.SubElement(table, "thead"), "tr")
    for text in (framework, "CUDA"):
        ET.SubElement(heads, "th", {"scope": "col"}).text = text
    for column in columns:
        head = ET.SubElement(heads, "th", {"scope": "col", "title": _clean(_column(column))})
        head.text = _clean(column.title)
        if column.capability != column.title:
            ET.SubElement(head, "small").text = column.capability
    for version, some in groupby(lines, key=lambda line: line.version):
        body = ET.SubElement(table, "tbody")
        for row in _rows(version, list(some)):
            body.append(row)
    return table


def _rows(version: str, lines: Sequence[Line]) -> Iterator[ET.Element]:
    for number, line in enumerate(lines):
        row = ET.Element("tr")
        if number == 0:
            scope = {"scope": "rowgroup", "rowspan": f"{len(lines)}"}
            ET.SubElement(row, "th", scope).text = version
        ET.SubElement(row, "th", {"scope": "row"}).text = line.cuda
        for cell in line.cells:
            shown = {"class": cell.look, "tabindex": "0", "title": _clean(cell.why)}
            ET.SubElement(row, "td", shown).text = cell.text
        yield row


def _html_style(grid: Grid) -> str:
    # What stays in sight on the left: the release, and its CUDA beside it.
    first = 0.68 * max(8, *(len(line.version) for line in grid.lines))  # em
    rules = [
        _HTML,
        f"th:first-child:not([scope=row]) {{ min-width: {first:.1f}em }}",
        f"th[scope=row], thead th:nth-child(2) {{ left: calc({first:.1f}em + 12px) }}",
    ]
    for number, media in enumerate(("", "@media (prefers-color-scheme: dark) ")):
        page, ink = PAGE[number]
        own = [f"body, th, td:focus::after {{ background: {page}; color: {ink} }}"]
        own += [
            f".{look} {{ background: {colors[number][0]}; color: {colors[number][1]} }}"
            for look, colors in COLORS.items()
        ]
        rules += [f"{media}{{ {' '.join(own)} }}"] if media else own
    return "\n" + "\n".join(rules) + "\n"


def _column(column: Column) -> str:
    cards = f": {', '.join(column.cards)}" if column.cards else ""
    return f"{column.name}{cards}"


def _clean(text: str) -> str:
    """Return a text without what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
