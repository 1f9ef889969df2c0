"""Keeping PCIe traffic below a limit by the CPU time of what feeds the card.

No kernel mechanism limits PCIe traffic: NVML's counters show that of a whole card, and a process
that gets less CPU time copies less. So the quota of CPU time is lowered while traffic is above the
limit, and raised again in small steps while it is well below. Between the two nothing changes, so
that the quota does not swing; nothing here asks a machine.
"""

from dataclasses import dataclass, replace
from typing import Final

LOWER: Final = 0.7
"""What is left of the quota after a step down."""
RAISE: Final = 1.15
"""What the quota becomes in a step up; smaller than a step down, so that steps up come seldom."""
WELL_BELOW: Final = 0.75
"""Share of the limit below which the quota is raised."""
PATIENCE: Final = 3
"""How many samples in a row have to be well below before it is."""
LEAST_PERCENT: Final = 5.0
"""Lowest quota, in percent of one CPU: a service that gets nothing cannot even stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """Where the control of one job stands.

    Attributes:
        limit_bytes: The most traffic in bytes per second.
        most_percent: Quota at which nothing is limited, in percent of one CPU.
        quota_percent: The quota now; None while there is none.
        calm: How many samples in a row were well below the limit.
    """

    limit_bytes: int
    most_percent: float
    quota_percent: float | None = None
    calm: int = 0

    def after(self, traffic_bytes: float, used_percent: float) -> "Control":
        """Return where it stands after a sample.

        Args:
            traffic_bytes: Traffic since the last sample, in bytes per second.
            used_percent: CPU time that the job took meanwhile, in percent of one CPU.
        """
        if traffic_bytes > self.limit_bytes:
            now = min(self.quota_percent or self.most_percent, max(used_percent, LEAST_PERCENT))
            lowered = now * max(LOWER, min(1.0, self.limit_bytes / traffic_bytes))
            return replace(self, quota_percent=max(LEAST_PERCENT, round(lowered, 1)), calm=0)
        if traffic_bytes > WELL_BELOW * self.limit_bytes or self.quota_percent is None:
            return replace(self, calm=0)
        if self.calm + 1 < PATIENCE:
            return replace(self, calm=self.calm + 1)
        raised = round(self.quota_percent * RAISE, 1)
        none = raised >= self.most_percent
        return replace(self, quota_percent=None if none else raised, calm=0)
