"""`plan`: from wishes and cards to who gets what, or to why not and the nearest that can be.

Nothing here asks a machine. Memory is never given out above a card's. Multiprocessors are reserved
under MIG; under MPS they are a ceiling, so that their sum may pass the whole.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from envbuild.shares.model import WHOLE_PERCENT, Card, Part, Plan, Refusal, Wish
from envbuild.shares.search import Place, TooMany, allowed, find, mode_of, smallest
from envbuild.shares.words import gib, percent

_FEW_TRIES: Final = 300
_STEPS: Final = 64
_FEW_NAMES: Final = 4
_NO_MIG: Final = (
    "MIG was asked for and no card that will do has it: MPS is taken, where a fatal fault of one "
    "job can end the others on its card"
)
_PCIE: Final = (
    "no kernel mechanism limits PCIe traffic: it is watched, and the CPU time of what feeds the "
    "card is lowered"
)
_CEILING: Final = "under MPS a share of multiprocessors is a ceiling, not reserved"


def plan(wishes: Sequence[Wish], cards: Sequence[Card]) -> Plan:
    """Return who gets what.

    Args:
        wishes: What jobs want, in the order in which they are asked; names differ.
        cards: The cards there are.
    """
    cards = tuple(cards)
    try:
        found = find(wishes, cards)
    except TooMany:
        return Plan(cards=cards, refusal=_refusal(wishes, cards))
    if found is None:
        return Plan(cards=cards, refusal=_refusal(wishes, cards))
    parts = _parts(wishes, cards, found)
    return Plan(cards=cards, parts=parts, notes=tuple(_notes(wishes, cards, parts)))


def _parts(
    wishes: Sequence[Wish], cards: Sequence[Card], found: Sequence[Sequence[Place]]
) -> tuple[Part, ...]:
    """Return the parts; a client that asked for no memory gets an equal part of what is left."""
    placed = [(wish, place) for wish, places in zip(wishes, found, strict=True) for place in places]
    left = [card.memory_mib for card in cards]
    open_ones = [0] * len(cards)
    for wish, place in placed:
        if place.mode in {"mps", "none"}:
            told = _says_memory(wish)
            left[place.card] -= wish.least_mib(cards[place.card]) if told else 0
            open_ones[place.card] += not told
    parts = [
        _part(wish, place, cards[place.card], left[place.card] // max(1, open_ones[place.card]))
        for wish, place in placed
    ]
    return tuple(sorted(parts, key=lambda part: (part.card, part.start, part.job)))


def _part(wish: Wish, place: Place, card: Card, left_mib: int) -> Part:
    memory_mib, sm_percent = card.memory_mib, WHOLE_PERCENT
    if place.profile is not None:
        memory_mib = place.profile.memory_mib
        sm_percent = WHOLE_PERCENT * place.profile.compute / card.compute
    elif place.mode != "whole":
        memory_mib = wish.least_mib(card) if _says_memory(wish) else left_mib
        sm_percent = wish.sm_percent or WHOLE_PERCENT
    return Part(
        job=wish.name,
        card=card.index,
        mode=place.mode,
        memory_mib=memory_mib,
        sm_percent=sm_percent,
        pcie_bytes=wish.pcie_bytes,
        profile=place.profile.name if place.profile else "",
        start=place.start,
        size=place.profile.size if place.profile else 0,
        user=wish.user,
    )


def _says_memory(wish: Wish) -> bool:
    return wish.memory_mib is not None or wish.memory_percent is not None


def _notes(wishes: Sequence[Wish], cards: Sequence[Card], parts: Sequence[Part]) -> Iterator[str]:
    for wish in wishes:
        if wish.isolation == "mig" and mode_of(wish, cards) != "mig":
            yield f"{wish.name}: {_NO_MIG}"
    if any(part.mode == "mps" and part.sm_percent < WHOLE_PERCENT for part in parts):
        yield _CEILING
    if any(part.pcie_bytes for part in parts):
        yield _PCIE


def _refusal(wishes: Sequence[Wish], cards: Sequence[Card]) -> Refusal:
    """Return which wish has no place beside those before it, and what would have one."""
    certain, low, high = True, 0, len(wishes)
    while low < high:  # how many of the first wishes have places together
        middle = (low + high + 1) // 2
        there = _can(wishes[:middle], cards)
        certain = certain and there is not None
        low, high = (middle, high) if there else (low, middle - 1)
    wish, before = wishes[low], wishes[:low]
    nearest = next((_told(near) for near in _nearer(wish, before, cards)), "")
    if not nearest and any(one.isolation == "mig" for one in wishes):
        without = [replace(one, isolation="mps") if one.isolation else one for one in wishes]
        nearest = "all of them by MPS" if _can(without, cards) else ""
    return Refusal(job=wish.name, why=_why(wish, before, cards), nearest=nearest, certain=certain)


def _can(wishes: Sequence[Wish], cards: Sequence[Card]) -> bool | None:
    """Tell whether wishes have places together; None where the search was given up."""
    try:
        return find(wishes, cards, most=_FEW_TRIES) is not None
    except TooMany:
        return None


def _why(wish: Wish, before: Sequence[Wish], cards: Sequence[Card]) -> str:
    there = tuple(allowed(wish, cards))
    usable = [card for card in there if not card.closed]
    if not there:
        named = f" called {', '.join(wish.cards)}" if wish.cards else ""
        return f"there is no card{named}"
    if not usable:
        return "; ".join(f"card {card.index}: {card.closed}" for card in there)
    if wish.count > len(usable):
        return f"it wants {wish.count} cards, and there are {len(usable)} that it may take"
    mode = mode_of(wish, cards)
    if mode == "mig" and all(smallest(wish, card) is None for card in usable):
        return f"no MIG profile of the {usable[0].model} has {_wanted(wish)}"
    most = max(card.memory_mib for card in usable)
    if mode in {"mps", "none"} and min(wish.least_mib(card) for card in usable) > most:
        return f"it wants {_wanted(wish)}, and no card has more than {gib(most)}"
    names = ", ".join(one.name for one in before)
    some = names if len(before) <= _FEW_NAMES else f"the {len(before)} before it"
    others = f" beside {some}" if before else ""
    return f"there is no room for {_wanted(wish)}{others}"


def _nearer(wish: Wish, before: Sequence[Wish], cards: Sequence[Card]) -> Iterator[Wish]:
    """Give wishes like one that has no place, each of which has one, nearest first."""

    def can(near: Wish) -> bool:
        return bool(_can((*before, near), cards))

    usable = [card for card in allowed(wish, cards) if not card.closed]
    if not usable:
        return
    for count in range(wish.count - 1, 0, -1):
        if can(near := replace(wish, count=count)):
            yield near
    mode = mode_of(wish, cards)
    if mode == "mig":
        yield from (near for near in _less(wish, usable) if can(near))
        if can(near := replace(wish, isolation="mps")):
            yield near
    elif mode in {"mps", "none"}:
        most = min(wish.least_mib(card) for card in usable)
        sizes = sorted({most * step // _STEPS for step in range(1, _STEPS)} - {0})
        fits = bisect(sizes, 0, key=lambda mib: int(not can(_of_memory(wish, mib))))
        if fits:
            yield _of_memory(wish, sizes[fits - 1])
    if wish.cards and can(near := replace(wish, cards=())):
        yield near


def _of_memory(wish: Wish, memory_mib: int) -> Wish:
    return replace(wish, memory_mib=memory_mib, memory_percent=None)


def _less(wish: Wish, cards: Sequence[Card]) -> Iterator[Wish]:
    """Give the wishes for each profile that has less, those with the most memory first."""
    profiles = {
        (profile.memory_mib, WHOLE_PERCENT * profile.compute / card.compute)
        for card in cards
        for profile in card.profiles
    }
    asked = min(wish.least_mib(card) for card in cards)
    for memory_mib, sm_percent in sorted(profiles, reverse=True):
        less = replace(
            wish,
            memory_mib=min(memory_mib, asked) if _says_memory(wish) else None,
            memory_percent=None,
            sm_percent=min(sm_percent, wish.sm_percent) if wish.sm_percent else None,
        )
        if less != wish:
            yield less


def _wanted(wish: Wish) -> str:
    """Return what a wish is for, in words."""
    parts = []
    if wish.memory_mib is not None:
        parts.append(gib(wish.memory_mib))
    if wish.memory_percent is not None:
        parts.append(f"{percent(wish.memory_percent)} of the memory")
    if wish.sm_percent is not None:
        parts.append(f"{percent(wish.sm_percent)} of the multiprocessors")
    what = " and ".join(parts) or ("a whole card" if wish.is_whole else "a share")
    return f"{what} on {wish.count} cards" if wish.count > 1 else what


def _told(wish: Wish) -> str:
    how = {"mig": " by MIG", "mps": " by MPS", "none": "", None: ""}[wish.isolation]
    where = f" on {', '.join(wish.cards)}" if wish.cards else ""
    return f"{_wanted(wish)}{how}{where}"
