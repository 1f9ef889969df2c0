"""How two hosts differ, or one host before and now: what matters first."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from envbuild.host.machine import Host

_KEYS = ("name", "path", "address", "index", "link", "id", "pid")
_LATER = r"used_bytes|free_bytes|reserved_bytes|available_bytes"
_PASSING = re.compile(
    rf"nvml\.why|\.why$|memory\.(?:{_LATER})|disk\.|\.temperature\.(?:gpu|memory|margin)_"
    r"|\.power\.(?:usage|instant)_|\.clocks\.(?:sm|memory|reasons)|\.utilization\.|\.processes"
    r"|\.pcie\.(?:generation|replays)|\.link\.generation|\.nvlinks\.\d+\.(?:replays|recov|crc)"
    r"|mps\.(?:controls|servers)|^root$|^taken$|^name$|^driver_root$"
)
"""What changes by itself, or is said elsewhere."""
_OWN = re.compile(r"\.uuid$|\.cluster$|\.pci_address$|\.numa|\.cpus$|\.iommu_group$|\.slot$")
"""What is another on every host."""
_RANKS = (
    r"nvml\.state",
    r"nvml\.driver|machine\.driver\.loaded|nvml\.cuda|machine\.driver\.",
    r"nvml\.gpus\.\d+\.(?:name|compute_capability|memory\.total|mig\.|ecc\.(?:current|pending))",
    r"nvml\.gpus\.\d+\.(?:remapped|retired|ecc\.unc|pcie\.|compute_mode|firmware|fabric|power\.)",
    r"nvml\.gpus",
    r"machine\.(?:nodes|pci|log|daemons|mps|rdma)",
    r"machine\.(?:system|loader|modprobe)",
    r"machine\.(?:cpu|memory)",
)
_MATTERS = len(_RANKS)
_NOTHING = "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        what: What it is: names of `Host` and its parts, joined by dots.
        before: What it was, `-` where it was not there.
        now: What it is.
        rank: Its place among what matters, 0 first.
    """

    what: str
    before: str
    now: str
    rank: int

    @property
    def matters(self) -> bool:
        """Whether it can change what runs, and how fast."""
        return self.rank < _MATTERS


def compare(before: Host, now: Host) -> tuple[Difference, ...]:
    """Return what differs, what matters first; what changes by itself is left out.

    What is another on every host (UUIDs, addresses on the bus) counts on one host only.
    """
    same_host = before.name == now.name
    old, new = dict(_flat(before, same_host)), dict(_flat(now, same_host))
    found = [
        Difference(
            what=what, before=old.get(what, _NOTHING), now=new.get(what, _NOTHING), rank=_rank(what)
        )
        for what in dict.fromkeys([*old, *new])
        if old.get(what) != new.get(what)
    ]
    return tuple(sorted(found, key=lambda one: one.rank))


def _rank(what: str) -> int:
    for rank, pattern in enumerate(_RANKS):
        if re.match(pattern, what):
            return rank
    return _MATTERS


def _flat(host: Host, same_host: bool) -> Iterator[tuple[str, str]]:  # noqa: FBT001
    data = msgspec.to_builtins(host)
    log = data["machine"].pop("log")
    data["machine"]["log"] = _counted(log)
    if not same_host:
        places: dict[str, int] = {}  # what has an address is compared by its place in the list
        pci = data["machine"]["pci"]
        for each in (*pci["devices"].get("value", ()), *pci["acs"].get("value", ())):
            place = each.pop("address")
            each["index"] = places.setdefault(place, len(places))
    for what, text in _walk(data, ""):
        if not _PASSING.search(what) and (same_host or not _OWN.search(what)):
            yield what, text


def _counted(log: Mapping[str, Any]) -> object:
    """Return how often each kind of event was seen; a silent log stays as it is."""
    if log["reading"] != "value":
        return log
    counts: dict[str, int] = {}
    for event in log["value"]:
        name = f"{event['kind']} {event['number'] or ''}".strip()
        counts[name] = counts.get(name, 0) + 1
    return counts


def _walk(part: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, dict) and "reading" in part:
        if part["reading"] == "value":
            yield from _walk(part["value"], path)
        else:
            yield path, f"({part['reading']})"
    elif isinstance(part, dict):
        for key, each in part.items():
            yield from _walk(each, f"{path}.{key}" if path else key)
    elif isinstance(part, list | tuple) and part and isinstance(part[0], dict):
        for each in part:
            key = next(key for key in _KEYS if isinstance(each.get(key), str | int))
            rest = {name: value for name, value in each.items() if name != key}
            yield f"{path}.{each[key]}", "there"
            yield from _walk(rest, f"{path}.{each[key]}")
    elif isinstance(part, list | tuple):
        yield path, ", ".join(map(str, part)) or "none"
    else:
        yield path, str(part)
