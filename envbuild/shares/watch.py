"""Watching PCIe traffic of the cards of units, and the CPU time of those that are above."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from envbuild.errors import HostError
from envbuild.shares.held import held
from envbuild.shares.host import traffic
from envbuild.shares.pcie import Control
from envbuild.tools.run import Runner, base_environment, run

EVERY_S: Final = 4.0
"""From sample to sample; a sample itself takes a second."""
_WHOLE: Final = 100.0
_US: Final = 1e6


class Watch:
    """The control of all units of a host that have a limit.

    A card's counters are those of all its jobs, so the traffic of a card is held against the sum
    of their limits, and each is above its own in the same measure.
    """

    def __init__(
        self,
        root: Path,
        driver_root: Path | None,
        *,
        cpus: int,
        read: Callable[..., Mapping[str, float]] = traffic,
        runner: Runner = run,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the units of the host whose root is this.

        Args:
            root: The root.
            driver_root: As for NVML.
            cpus: How many CPUs there are.
            read: What reads the traffic of cards.
            runner: What starts systemctl.
            clock: Seconds that only go up.
        """
        self._root = root
        self._driver_root = driver_root
        self._most = cpus * _WHOLE
        self._read = read
        self._runner = runner
        self._clock = clock
        self._controls: dict[str, Control] = {}
        self._used: dict[str, tuple[float, float]] = {}

    def look(self) -> Mapping[str, Control]:
        """Take a sample, change quotas that have to change, and return where each unit stands."""
        units = {name: one for name, one in held(self._root).items() if one.get("pcie_bytes")}
        for gone in self._controls.keys() - units.keys():
            del self._controls[gone]
            self._used.pop(gone, None)
        if not units:
            return {}
        cards = sorted({card for one in units.values() for card in one["uuids"]})
        seen = self._read(cards, self._driver_root)
        for name, one in units.items():
            before = self._controls.get(name) or Control(
                limit_bytes=one["pcie_bytes"], most_percent=self._most
            )
            share = self._above(one, units, seen)
            used = self._percent(name, one["cgroup"])
            if share is not None and used is not None:
                after = before.after(share * one["pcie_bytes"], used)
                if after.quota_percent != before.quota_percent:
                    self._set(name, after.quota_percent)
                before = after
            self._controls[name] = before
        return dict(self._controls)

    def _above(
        self,
        one: Mapping[str, Any],
        units: Mapping[str, Mapping[str, Any]],
        seen: Mapping[str, float],
    ) -> float | None:
        """Return the traffic of a unit's busiest card in parts of what its jobs may have."""
        found = []
        for card in one["uuids"]:
            allowed = sum(other["pcie_bytes"] for other in units.values() if card in other["uuids"])
            if card in seen:
                found.append(seen[card] / allowed)
        return max(found, default=None)

    def _percent(self, name: str, cgroup: str) -> float | None:
        """Return the CPU time since the last sample in percent of one CPU; None at the first."""
        now, before = self._clock(), self._used.get(name)
        try:
            text = (self._root / f"sys/fs/cgroup{cgroup}/cpu.stat").read_text()
            used = float(dict(line.split() for line in text.splitlines())["usage_usec"])
        except (OSError, KeyError, ValueError):
            return None
        self._used[name] = (now, used)
        if before is None or now <= before[0]:
            return None
        return _WHOLE * (used - before[1]) / _US / (now - before[0])

    def _set(self, unit: str, quota_percent: float | None) -> None:
        quota = "" if quota_percent is None else f"{quota_percent:.1f}%"
        argv = ["systemctl", "set-property", "--runtime", unit, f"CPUQuota={quota}"]
        self._runner(argv, env=base_environment())


def watch(looking: Watch, told: Callable[[str], None], *, until: Callable[[], bool]) -> None:
    """Look again and again; what NVML does not say is said once and tried again."""
    said = ""
    while not until():
        try:
            looking.look()
            said = ""
        except HostError as error:
            if error.message != said:
                told(error.message)
            said = error.message
        time.sleep(EVERY_S)
