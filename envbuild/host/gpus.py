"""Reading NVML: what its process said, as `Nvml`."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from envbuild.host.model import Gpu, Nvml, NvmlState
from envbuild.host.plausible import Impossible, judged
from envbuild.host.readings import NOT_ASKED
from envbuild.tools.nvml import Cell, Ending, Heard, Limits, hear

# nvml.h, nvmlReturn_t
_STATES = {
    9: NvmlState.NOT_LOADED,
    12: NvmlState.NO_LIBRARY,
    18: NvmlState.MISMATCH,
}
_SILENCES = {
    3: "unsupported",  # not supported
    4: "no-permission",
    13: "unsupported",  # function not found: the driver is older
    15: "lost",
    25: "unsupported",  # version of the argument: the driver is older
    26: "unsupported",  # deprecated: the driver or card is newer
}
_ENDINGS = {Ending.SILENT: NvmlState.SILENT, Ending.DIED: NvmlState.DIED}
_NOTHING: Cell = {"error": None, "text": "", "call": ""}


def read_nvml(
    driver_root: Path | None = None,
    *,
    limits: Limits | None = None,
    ask: Callable[..., Heard] = hear,
) -> Nvml:
    """Ask NVML for the driver and every card; whatever it does not say is a reading too.

    Args:
        driver_root: The file tree of a driver that is not this host's own, or None.
        limits: How long NVML is waited for.
        ask: What asks; `tools.nvml.hear`.
    """
    heard = ask(driver_root, limits=limits)
    state, why = _state(heard)
    count = heard.said.get((None, "count"), _NOTHING).get("value", 0)
    tree = {
        "state": state,
        "why": why,
        **{
            name: _reading(name, heard.said.get((None, name)), _silence(heard, None, name, why))
            for name in ("library", "driver", "cuda")
        },
        "gpus": [_gpu(index, heard, why) for index in range(count)],
    }
    return msgspec.convert(tree, Nvml)


def _state(heard: Heard) -> tuple[NvmlState, str]:
    """Return how NVML answered, and what stands behind it."""
    if heard.ending in _ENDINGS:
        return _ENDINGS[heard.ending], heard.why
    for path in ("init", "count"):
        cell = heard.said.get((None, path), _NOTHING)
        if "error" in cell:
            return _STATES.get(cell["error"], NvmlState.FAILED), _why(cell)
    return NvmlState.ANSWERED, ""


def _gpu(index: int, heard: Heard, why: str) -> dict[str, Any]:
    """Return the tree of a card: what was said, else the whole card's error, else why not."""
    whole = heard.said.get((index, ""))
    tree: dict[str, Any] = {"index": index}
    for path in _paths():
        group, _, name = path.rpartition(".")
        place = tree.setdefault(group, {}) if group else tree
        cell = heard.said.get((index, path), whole)
        place[name] = _reading(path, cell, _silence(heard, index, path, why))
    return tree


@functools.cache
def _paths() -> tuple[str, ...]:
    """Return the paths of all readings of a card."""
    return tuple(_leaves(Gpu, ""))


def _leaves(kind: type[Any], prefix: str) -> Iterator[str]:
    for each in dataclasses.fields(kind):
        if isinstance(each.type, type) and dataclasses.is_dataclass(each.type):
            yield from _leaves(each.type, f"{prefix}{each.name}.")
        elif each.name != "index":
            yield prefix + each.name


def _silence(heard: Heard, card: int | None, path: str, why: str) -> str:
    """Return why a field was not answered, or was not reached."""
    if heard.unanswered == (card, path):
        return why
    return f"not asked: {why}" if why else NOT_ASKED.why


def _reading(path: str, cell: Cell | None, why: str) -> dict[str, Any]:
    """Return the tree of a reading; where nothing was said at all, `why` says why."""
    if cell is None:
        return {"reading": "no-answer", "why": why}
    if "error" in cell:
        return {"reading": _SILENCES.get(cell["error"], "no-answer"), "why": _why(cell)}
    value = cell["value"]
    if isinstance(value, list):
        value = [_part(path, each) for each in value]
    try:
        return {"reading": "value", "value": judged(path, value)}
    except Impossible as error:
        return {"reading": "no-answer", "why": str(error)}


def _part(path: str, part: Any) -> Any:  # noqa: ANN401
    """Return the tree of a member of a list; it may hold cells and lists."""
    if not isinstance(part, Mapping):
        return part
    return {
        name: _reading(f"{path}.{name}", value, "") if _is_cell(value) else value
        for name, value in part.items()
    }


def _is_cell(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, Mapping) and ("error" in value or value.keys() == {"value"})


def _why(cell: Cell) -> str:
    return f"{cell['call']}: {cell['text']}" if cell["call"] else str(cell["text"])
