"""What the units of an environment do now: one row each."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from envbuild.tools.systemd import Properties, Systemd, number, seconds_since
from envbuild.units import pressure, reasons

_PROPERTIES: Final = (
    *reasons.PROPERTIES,
    "StateChangeTimestampMonotonic",
    "MemoryCurrent",
    "CPUUsageNSec",
    "DeviceAllow",
    "NeedDaemonReload",
    "FragmentPath",
    "DropInPaths",
    "UnitFileState",
    "ControlGroup",
)
_CARD: Final = re.compile(r"^/dev/(?:nvidia|char/195:)(\d+) ", re.MULTILINE)
_MOST_CARDS: Final = 250
_SET: Final = "/system.control/"  # where `systemctl set-property` writes


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A unit now.

    Attributes:
        unit: Its name.
        state: `active`, `failed`, `refused`, or another word of systemd's.
        since_s: Seconds since it came into this state, None where it never was in another.
        restarts: How often systemd started it again by itself.
        memory: Bytes that it uses, None where that is not known.
        cpu_s: Seconds of CPU time that it used, None where that is not known.
        pressure: Percent of the last ten seconds in which some task of it waited, by resource
            (cpu, memory, io); empty where that is not known.
        cards: Numbers of the cards that it may open.
        why: Why it does not run, or what is the matter; empty for nothing.
        at_boot: Whether it is started at boot, None where it cannot be.
        pid: Its main process, None for none.
    """

    unit: str
    state: str
    since_s: float | None = None
    restarts: int | None = None
    memory: int | None = None
    cpu_s: float | None = None
    pressure: Mapping[str, float] = field(default_factory=dict)
    cards: tuple[int, ...] = ()
    why: str = ""
    at_boot: bool | None = None
    pid: int | None = None

    @property
    def bad(self) -> bool:
        """Whether it ought to run and does not."""
        return self.state in {"failed", "refused", "gone"}


def rows(systemd: Systemd, files: Sequence[str]) -> tuple[Row, ...]:
    """Return a row for each unit, for a template one for each instance that is loaded.

    Args:
        systemd: The manager.
        files: The units' files.
    """
    shown = systemd.show([unit.replace("@.", "@*.") for unit in files], _PROPERTIES)
    return tuple(_row(systemd, one) for one in shown)


def _row(systemd: Systemd, one: Properties) -> Row:
    unit = one["Id"]
    why = _why(systemd, one)
    cpu = number(one, "CPUUsageNSec")
    cards = {int(text) for text in _CARD.findall(one.get("DeviceAllow", ""))}
    told = one.get("UnitFileState", "")
    group = one.get("ControlGroup", "")
    return Row(
        unit=unit,
        state=_state(one),
        since_s=seconds_since(one, "StateChangeTimestampMonotonic"),
        restarts=number(one, "NRestarts"),
        memory=number(one, "MemoryCurrent"),
        cpu_s=None if cpu is None else cpu / 1e9,
        pressure=pressure.read(group) if group else {},
        cards=tuple(sorted(card for card in cards if card < _MOST_CARDS)),
        why=why,
        at_boot={"enabled": True, "disabled": False}.get(told),
        pid=number(one, "MainPID") or None,
    )


def _state(one: Properties) -> str:
    if one.get("LoadState") == "not-found":
        return "gone"
    if one.get("Result") == "exec-condition" and one.get("ActiveState") == "inactive":
        return "refused"
    return one.get("ActiveState", "unknown")


def _is_changed(systemd: Systemd, one: Properties) -> bool:
    """Tell whether files of a unit were changed after systemd read them.

    Once properties were set, as a service's cards are, systemd says so of drop-ins whose order is
    not that of their names (seen with 252): then their times are looked at.
    """
    if one.get("NeedDaemonReload") != "yes":
        return False
    files = [one.get("FragmentPath", ""), *one.get("DropInPaths", "").split()]
    own = [file for file in files if _SET not in file]
    read_at = systemd.read_at()
    if len(own) == len(files) or read_at is None:
        return True
    folders = {file.rpartition("/")[0] for file in own[1:]}
    return any(_changed_at(path) > read_at for path in (*own, *folders))


def _changed_at(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return math.inf


def _why(systemd: Systemd, one: Properties) -> str:
    state, sub = one.get("ActiveState"), one.get("SubState")
    if _is_changed(systemd, one):
        return "its file was changed after systemd read it: systemctl daemon-reload"
    if state == "active":
        return ""
    own: tuple[str, ...] = ()
    if state == "failed":
        own = systemd.last_words(one["Id"], lines=3, own=True)
    text = reasons.why(one, own)
    if reasons.condition_status(one) is not None or (state == "activating" and sub != "start"):
        run = one.get("InvocationID", "")
        words = systemd.last_words(one["Id"], run, lines=1)
        text = ": ".join((text, *words)) if text else " ".join(words)
    return text
