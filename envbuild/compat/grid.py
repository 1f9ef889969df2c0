"""The grid of releases with their CUDA against cards: for each, how it works, or what is missing.

Each cell is judged as a list of sets is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.compat.sentences import place, sources
from envbuild.compat.triangle import Answer, Judged, Wanted, judged

Look = Answer | Literal["no"]

LOOKS: dict[Look, str] = {
    "native": "works: it has code for the card; the oldest driver",
    "jit": "works: the driver compiles it for the card (PTX); the oldest driver",
    "unknown": "works as far as known: whether it has code for the card was not read",
    "no": "does not work: what would have to be another one",
}
_FRAMEWORKS = {"pytorch": "PyTorch", "jax": "JAX"}
_PARTS = {"gpu": "no code", "driver": "driver", "cudnn": "cuDNN", "python": "Python"}
_HOW: dict[Answer, str] = {"native": "", "jit": "JIT, ", "unknown": "?, "}
_BEST: tuple[Answer, ...] = ("native", "jit", "unknown")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A card, or cards that run the same code.

    Attributes:
        title: Its name.
        capability: Its compute capability.
        cards: The cards that have it; empty where the column is one card.
    """

    title: str
    capability: str
    cards: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`h100 (9.0)`."""
        return self.title if self.title == self.capability else f"{self.title} ({self.capability})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A release with a CUDA on a card.

    Attributes:
        look: How it works there, or that it does not.
        text: The same in a word or two.
        why: All that is known of it, with sources, in lines.
    """

    look: Look
    text: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A release of a framework with one CUDA.

    Attributes:
        framework: The framework as it is spelled.
        version: Its version.
        cuda: Major and minor version, or `12.x`.
        cells: One for each column.
    """

    framework: str
    version: str
    cuda: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Releases with their CUDA, newest first, against cards.

    Attributes:
        columns: The cards.
        lines: The releases.
        read: The latest day on which a fact of them was read (ISO 8601).
    """

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    read: str


def all_columns(facts: Facts) -> tuple[Column, ...]:
    """Return a column for each compute capability that a card has."""
    cards: dict[str, list[str]] = {}
    for row in facts.gpus:
        cards.setdefault(row.capability, []).append(row.id)
    titles = {row.capability: row.title for row in facts.architectures}
    return tuple(
        Column(title=titles[capability], capability=capability, cards=tuple(cards[capability]))
        for capability in sorted(cards, key=numbers)
    )


def grid(facts: Facts, wanted: Wanted, columns: Sequence[Column]) -> Grid:
    """Return what works where; releases and CUDA that are not wanted have no line.

    Args:
        facts: The tables.
        wanted: What the releases and the hosts are; its cards do not count.
        columns: The cards.
    """
    found: dict[tuple[str, str, str], list[list[Judged]]] = {}
    for number, column in enumerate(columns):
        for each in judged(facts, replace(wanted, capabilities=(column.capability,))):
            if each.parts & {"framework", "cuda"}:
                continue
            build = each.build
            key = (_FRAMEWORKS[build.framework], build.version, _cuda(build))
            found.setdefault(key, [[] for _ in columns])[number].append(each)
    lines = tuple(
        Line(
            framework=framework,
            version=version,
            cuda=cuda,
            cells=tuple(
                _cell(f"{framework} {version}, CUDA {cuda}, on {column.name}", some)
                for column, some in zip(columns, cells, strict=True)
            ),
        )
        for (framework, version, cuda), cells in found.items()
    )
    days = [each.build.read for cells in found.values() for some in cells for each in some]
    return Grid(columns=tuple(columns), lines=lines, read=max(days, default=""))


def _cuda(build: FrameworkBuild) -> str:
    return ".".join(build.cuda.split(".")[:2]) if build.cuda else f"{build.cuda_major}.x"


def _cell(what: str, builds: Sequence[Judged]) -> Cell:
    """Return how the best of some builds of one release and CUDA does."""
    able = [each for each in builds if not each.reasons]
    look: Look = "no"
    if able:
        look = how = min((each.answer for each in able), key=_BEST.index)
        best = [each for each in able if each.answer == how]
        oldest = min(best, key=lambda each: numbers(each.driver or "0"))
        text = _HOW[how] + oldest.drivers.replace(">=", "≥")
    else:
        nearest = min(builds, key=lambda each: len(each.reasons))
        text = ", ".join(dict.fromkeys(_PARTS[reason.part] for reason in nearest.reasons))
    why = "\n".join([what, *(line for each in builds for line in _why(each))])
    return Cell(look=look, text=text, why=why)


def _why(each: Judged) -> list[str]:
    """Return what is known of one build on a card, with where each was read."""
    lines = [f"{place(each.build)}:"]
    if each.reasons:
        for reason in each.reasons:
            lines += [f"- {reason.what} (source: {'; '.join(reason.sources)})"]
        return lines
    how = LOOKS[each.answer].partition(";")[0]
    lines.append(f"- {how} (source: {'; '.join(sources(each.build))})")
    if each.floor is not None:
        read = "; ".join(each.floor.sources)
        lines.append(f"- driver {each.driver} or newer: {each.floor.why} (source: {read})")
    if each.last is not None:
        lines.append(f"- {each.last} is the last driver branch that runs the card")
    return lines
