"""What jobs want of cards, what cards are, and who gets what: `Wish`, `Card`, `Plan`.

Memory is in MiB. A share of memory or of multiprocessors is in percent of a card.
"""

import math
from dataclasses import dataclass, field
from typing import Final, Literal

Mode = Literal["whole", "mig", "mps", "none"]
"""How a part of a card is kept apart: not shared at all, by MIG, by MPS, by nothing."""
Isolation = Literal["mig", "mps", "none"]

WHOLE_PERCENT: Final = 100.0
MOST_CLIENTS: Final = 48
"""How many clients an MPS server takes from Volta on (NVIDIA MPS documentation, limitations)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a job wants of cards; a wish without memory, share or isolation is for whole ones.

    Attributes:
        name: The job.
        count: On how many cards.
        cards: The only cards that will do, by index, UUID or PCI address; empty for any.
        memory_mib: Memory of each card, or None.
        memory_percent: The same as a share of the card, or None.
        sm_percent: Share of each card's multiprocessors, or None.
        pcie_bytes: Most PCIe traffic in bytes per second, or None; nothing enforces it.
        isolation: How it is to be kept apart, None for what is usual.
        user: Who it runs as: an MPS server serves one user at a time.
    """

    name: str
    count: int = 1
    cards: tuple[str, ...] = ()
    memory_mib: int | None = None
    memory_percent: float | None = None
    sm_percent: float | None = None
    pcie_bytes: int | None = None
    isolation: Isolation | None = None
    user: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it wants cards for itself."""
        told = (self.memory_mib, self.memory_percent, self.sm_percent, self.isolation)
        return all(value is None for value in told)

    def least_mib(self, card: "Card") -> int:
        """Return the memory it needs of a card at least; what says nothing needs a little."""
        share = (self.memory_percent or 0.0) * card.memory_mib / WHOLE_PERCENT
        return max(self.memory_mib or 0, math.ceil(share), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """One size of MIG instances of a card.

    Attributes:
        name: What the driver calls it (`3g.40gb`).
        compute: Its compute slices.
        size: Its memory slices.
        starts: The memory slices at which one may begin.
        memory_mib: Its memory as its name has it; the driver keeps up to 3 % of it.
    """

    name: str
    compute: int
    size: int
    starts: tuple[int, ...]
    memory_mib: int

    def mask(self, start: int) -> int:
        """Return the memory slices that one takes, as bits."""
        return ((1 << self.size) - 1) << start


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A card that can be given out.

    Attributes:
        index: Its number.
        model: What it is called.
        memory_mib: Its memory.
        uuid: Its UUID, empty where it is no card of this host.
        pci_address: Its PCI address, or empty.
        compute: Compute slices of the whole card, 0 without MIG.
        slices: Its memory slices, 0 without MIG.
        profiles: How it can be cut.
        taken: Memory slices that instances of others take, as bits.
        mig_only: Whether it is in MIG mode and stays there: others have instances on it.
        mps_only: Whether it cannot go into MIG mode.
        closed: Why it cannot be given out at all, or empty.
    """

    index: int
    model: str
    memory_mib: int
    uuid: str = ""
    pci_address: str = ""
    compute: int = 0
    slices: int = 0
    profiles: tuple[Profile, ...] = ()
    taken: int = 0
    mig_only: bool = False
    mps_only: bool = False
    closed: str = ""

    def is_called(self, word: str) -> bool:
        """Tell whether a recipe's word for a card means this one."""
        if word.isdecimal():
            return int(word) == self.index
        if word.startswith("GPU-"):
            return word == self.uuid
        return bool(self.pci_address) and _address(word) == _address(self.pci_address)

    @property
    def cuttable(self) -> bool:
        """Whether MIG instances can be made on it."""
        return bool(self.profiles) and not self.mps_only


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one job gets of one card.

    Attributes:
        job: The job.
        card: The card's index.
        mode: How it is kept apart.
        memory_mib: Its memory: reserved under MIG, a limit under MPS.
        sm_percent: Multiprocessors: reserved under MIG, a ceiling under MPS.
        pcie_bytes: Most PCIe traffic in bytes per second, or None.
        profile: The MIG profile, or empty.
        start: First memory slice of the instance.
        size: Its memory slices; 0 without MIG.
        user: Who the job runs as.
    """

    job: str
    card: int
    mode: Mode
    memory_mib: int
    sm_percent: float
    pcie_bytes: int | None = None
    profile: str = ""
    start: int = 0
    size: int = 0
    user: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why there is no plan.

    Attributes:
        job: The first job, in the order asked, that has no place.
        why: What stands in its way.
        nearest: The nearest wish that has a place, in words; empty where there is none.
        certain: Whether it cannot be; else the search was given up.
    """

    job: str
    why: str
    nearest: str = ""
    certain: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Who gets what.

    Attributes:
        cards: The cards that were looked at.
        parts: The parts, by card and place; none where the plan was refused.
        refusal: Why there is no plan, or None.
        notes: What a person should know of it.
    """

    cards: tuple[Card, ...]
    parts: tuple[Part, ...] = ()
    refusal: Refusal | None = None
    notes: tuple[str, ...] = field(default=())


def _address(text: str) -> str:
    """Return a PCI address as sysfs writes it; NVML's has a domain of eight digits."""
    parts = text.lower().split(":")
    domain = parts[0][-4:] if len(parts) == 3 else "0000"  # noqa: PLR2004 - domain, bus, device
    return ":".join([domain, *parts[-2:]])
