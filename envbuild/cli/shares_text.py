"""A plan of shares, drawn for a terminal."""

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Final

from rich.console import Console
from rich.text import Text

from envbuild.shares.model import Card, Part, Plan
from envbuild.shares.words import gib, percent, rate

_COLORS: Final = ("cyan", "magenta", "yellow", "green", "blue", "red")
_WIDTH: Final = 64
_MODES: Final = {
    "whole": "one job",
    "mig": "MIG, each part reserved",
    "mps": "MPS, memory limited, multiprocessors a ceiling",
    "none": "shared, nothing keeps the jobs apart",
}


def drawn(plan: Plan, *, color: bool, width: int = _WIDTH) -> str:
    """Return a plan as a picture: a bar of memory for each card, and a line for each job."""
    out = StringIO()
    console = Console(
        file=out, force_terminal=color, no_color=not color, width=200, highlight=False
    )
    for card in plan.cards:
        parts = [part for part in plan.parts if part.card == card.index]
        for line in _card(card, parts, width):
            console.print(line, soft_wrap=True)
    for note in plan.notes:
        console.print(Text(f"note: {note}"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _card(card: Card, parts: Sequence[Part], width: int) -> Iterator[Text]:
    how = _MODES[parts[0].mode] if parts else "free"
    if card.closed:
        how = card.closed
    yield Text(f"card {card.index}  {card.model}, {gib(card.memory_mib)}: {how}", style="bold")
    yield _bar(card, parts, width)
    names = max((len(part.job) for part in parts), default=0)
    for number, part in enumerate(parts):
        line = Text(f"  {_letter(number)} {part.job:{names}}  ", style=_COLORS[number % 6])
        line.append(_words(part), style="default")
        yield line
    if parts and parts[0].mode == "mps":
        memory = sum(part.memory_mib for part in parts)
        share = sum(part.sm_percent for part in parts)
        told = f"  together {gib(memory)} of {gib(card.memory_mib)}, {percent(share)} ceilings"
        yield Text(told, style="dim")


def _words(part: Part) -> str:
    said = [f"{gib(part.memory_mib):>6}", f"{percent(part.sm_percent):>6} SM"]
    if part.profile:
        last = part.start + part.size - 1
        slices = f"slices {part.start}-{last}" if part.size > 1 else f"slice {part.start}"
        said.append(f"{part.profile} in {slices}")
    if part.pcie_bytes:
        said.append(f"PCIe {rate(part.pcie_bytes)}")
    return "  ".join(said)


def _bar(card: Card, parts: Sequence[Part], width: int) -> Text:
    """Return memory as a bar; under MIG a part lies where its slices are."""
    cells: list[tuple[str, str]] = [("·", "dim")] * width
    edge = 0
    for number, part in enumerate(parts):
        if part.size:
            first = part.start * width // card.slices
            last = (part.start + part.size) * width // card.slices
        else:
            first = edge
            last = edge + max(1, round(part.memory_mib * width / card.memory_mib))
        edge = min(last, width)
        for place in range(first, edge):
            cells[place] = (_letter(number), _COLORS[number % 6])
    for place in range(width if card.slices and card.taken else 0):
        if card.taken >> (place * card.slices // width) & 1:
            cells[place] = ("#", "dim")
    bar = Text("  [")
    for character, style in cells:
        bar.append(character, style=style)
    return bar.append("]")


def _letter(number: int) -> str:
    return chr(ord("a") + number % 26)


def data(plan: Plan) -> dict[str, object]:
    """Return a plan as JSON has it."""
    refusal = plan.refusal
    return {
        "planned": refusal is None,
        "refusal": None
        if refusal is None
        else {
            "job": refusal.job,
            "why": refusal.why,
            "nearest": refusal.nearest or None,
            "certain": refusal.certain,
        },
        "cards": [
            {
                "index": card.index,
                "model": card.model,
                "uuid": card.uuid or None,
                "memory_mib": card.memory_mib,
                "closed": card.closed or None,
                "parts": [_part(part) for part in plan.parts if part.card == card.index],
            }
            for card in plan.cards
        ],
        "notes": list(plan.notes),
    }


def _part(part: Part) -> dict[str, object]:
    return {
        "job": part.job,
        "mode": part.mode,
        "memory_mib": part.memory_mib,
        "sm_percent": round(part.sm_percent, 2),
        "sm_is": "reserved" if part.mode in {"mig", "whole"} else "ceiling",
        "pcie_bytes_per_second": part.pcie_bytes,
        "profile": part.profile or None,
        "start": part.start if part.size else None,
        "size": part.size or None,
    }
