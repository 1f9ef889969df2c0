"""Starting and restarting units, and whether each came up."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from envbuild.tools.systemd import Properties, Systemd, number
from envbuild.units import reasons

Restart = Literal["auto", "never", "rolling"]
RESTARTS: Final[tuple[Restart, ...]] = ("auto", "never", "rolling")

_SETTLE_S: Final = 2.0
_POLL_S: Final = 0.2
_WORDS: Final = 5
_UP: Final = {"active", "reloading"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Down:
    """A unit that did not come up.

    Attributes:
        unit: Its name.
        why: The reason, in words.
        words: What it wrote last.
    """

    unit: str
    why: str
    words: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it as lines."""
        return "\n".join([f"{self.unit}: {self.why}", *(f"  {word}" for word in self.words)])


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What is to be brought up.

    Attributes:
        restart: Units that run and are to be started anew, in the order of their names.
        start: Units that are to run.
        says_ready: Whether a unit says by itself when it is ready; of the others is seen whether
            they are still there after a while.
    """

    restart: tuple[str, ...]
    start: tuple[str, ...]
    says_ready: Mapping[str, bool]


def running(systemd: Systemd, units: Iterable[str]) -> tuple[str, ...]:
    """Return which units run, or are about to; a name with `*` means every instance."""
    shown = systemd.show(units, ["ActiveState"])
    states = {"active", "reloading", "activating"}
    return tuple(one["Id"] for one in shown if one.get("ActiveState") in states)


def started_since(systemd: Systemd, units: Iterable[str], since_us: int) -> tuple[str, ...]:
    """Return which units, or their programs, were started at or after a monotonic time."""
    times = ("InactiveExitTimestampMonotonic", "ExecMainStartTimestampMonotonic")
    shown = systemd.show(units, times)
    return tuple(
        one["Id"] for one in shown if max(number(one, name) or 0 for name in times) >= since_us
    )


def bring_up(
    systemd: Systemd, work: Work, *, rolling: bool, told: Callable[[str], None]
) -> tuple[Down, ...]:
    """Start what is to run and wait until it is ready; return what did not come up.

    Args:
        systemd: The manager.
        work: What to do.
        rolling: One unit at a time, and no further after one that did not come up.
        told: Is told what is waited for.
    """
    systemd.forget(_failed(systemd, (*work.restart, *work.start)))
    steps: list[tuple[Callable[[Iterable[str]], None], tuple[str, ...]]] = []
    for verb, units in ((systemd.restart, work.restart), (systemd.start, work.start)):
        if rolling:
            steps += [(verb, group) for group in _groups(units)]
        elif units:
            steps.append((verb, units))
    for act, units in steps:
        told(f"waiting for {', '.join(units)}")
        act(units)
        if down := _down(systemd, units, work.says_ready):
            return down
    return ()


def _groups(units: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """Yield units one by one, a socket with its service: it listens anew only without that."""
    found: dict[str, list[str]] = {}
    for unit in units:
        found.setdefault(unit.rpartition(".")[0], []).append(unit)
    return map(tuple, found.values())


def _failed(systemd: Systemd, units: Sequence[str]) -> tuple[str, ...]:
    shown = systemd.show(units, ["ActiveState"])
    return tuple(one["Id"] for one in shown if one.get("ActiveState") == "failed")


def _down(
    systemd: Systemd, units: Sequence[str], says_ready: Mapping[str, bool]
) -> tuple[Down, ...]:
    first = systemd.show(units, reasons.PROPERTIES)
    if any(not says_ready.get(one["Id"], True) for one in first):
        end = time.monotonic() + _SETTLE_S
        while all(one.get("ActiveState") in _UP for one in first) and time.monotonic() < end:
            time.sleep(_POLL_S)
            now = systemd.show(units, reasons.PROPERTIES)
            if any(_is_another(one, other) for one, other in zip(first, now, strict=True)):
                return _told(systemd, now, first)
            first = now
    return _told(systemd, first, first)


def _is_another(before: Properties, now: Properties) -> bool:
    """Tell whether a unit was started again, or went."""
    return number(before, "NRestarts") != number(now, "NRestarts") or (
        now.get("ActiveState") not in _UP
    )


def _told(
    systemd: Systemd, now: Sequence[Properties], before: Sequence[Properties]
) -> tuple[Down, ...]:
    found: list[Down] = []
    for one, other in zip(now, before, strict=True):
        if one.get("ActiveState") in _UP and not _is_another(other, one):
            continue
        unit = one["Id"]
        said = systemd.last_words(unit, lines=_WORDS)
        why = reasons.why(one, systemd.last_words(unit, lines=_WORDS, own=True))
        found.append(Down(unit=unit, why=why or _state(one), words=said))
    return tuple(found)


def _state(properties: Properties) -> str:
    """Return what to say of a unit that gives no reason."""
    if properties.get("ActiveState") in _UP:
        return "it ended, and was started again"
    return f"it is {properties.get('ActiveState', 'gone')}; what it requires may have failed"
