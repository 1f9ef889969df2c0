"""What cannot be for its sums alone, so that no arrangement need be tried."""

from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from envbuild.shares.model import Card, Mode, Profile


class State(NamedTuple):
    """What is on a card: how it is shared, slices taken, and memory and user of its clients."""

    mode: Mode | Literal[""]
    taken: int
    used_mib: int
    clients: int
    user: str


class Demand(NamedTuple):
    """What a wish takes at the least, wherever it goes."""

    mode: Mode
    cards: int
    profiles: Sequence[Profile | None]
    least_mib: int


class _Left(NamedTuple):
    """What is still to be placed: cards, slices, client memory, instances by size."""

    whole: int
    slices: int
    compute: int
    memory_mib: int
    sizes: dict[tuple[int, int], int]


class Bounds:
    """Holds what is left to be placed against what is free."""

    def __init__(self, cards: Sequence[Card], demands: Sequence[Demand]) -> None:
        """Sum up what is left after each step, in the order of the demands."""
        self._cards = cards
        self._left = [_Left(0, 0, 0, 0, {})]
        for demand in reversed(demands):
            self._left.append(_more(self._left[-1], demand))
        self._left.reverse()

    def exceeded(self, step: int, states: Sequence[State]) -> bool:
        """Tell whether more is left than is free."""
        left = self._left[step]
        slices, compute, memory_mib = left.slices, left.compute, left.memory_mib
        empty: list[Card] = []
        cut: list[tuple[Card, int]] = []
        for card, state in zip(self._cards, states, strict=True):
            if card.closed:
                continue
            if state.mode == "mig":
                cut.append((card, state.taken))
                slices -= card.slices - state.taken.bit_count()
                compute -= compute_left(card, state.taken)
            elif state.mode == "mps":
                memory_mib -= card.memory_mib - state.used_mib
            elif not state.mode:
                empty.append(card)
        needed = left.whole + _cards_for(memory_mib, [card.memory_mib for card in empty])
        needed += max(
            _cards_for(slices, [card.slices for card in empty]),
            _cards_for(compute, [card.compute for card in empty]),
        )
        return needed > len(empty) or any(
            count
            > sum(_starts(card, taken, *size) for card, taken in cut)
            + sum(_starts(card, card.taken, *size) for card in empty)
            for size, count in left.sizes.items()
        )


@cache
def places_left(card: Card, taken: int) -> int:
    """Return how much could still be placed on a card, each placement by its slices."""
    return sum(
        profile.size
        for profile in card.profiles
        for start in profile.starts
        if not taken & profile.mask(start)
    )


@cache
def compute_left(card: Card, taken: int) -> int:
    """Return the most compute slices that can still be given out on a card."""
    return max(
        (
            profile.compute + compute_left(card, taken | profile.mask(start))
            for profile in card.profiles
            for start in profile.starts
            if not taken & profile.mask(start)
        ),
        default=0,
    )


@cache
def _starts(card: Card, taken: int, size: int, count: int) -> int:
    """Return where instances as wide as this could begin, of those that have as few starts."""
    return max(
        (
            sum(not taken & profile.mask(start) for start in profile.starts)
            for profile in card.profiles
            if (profile.size, len(profile.starts)) == (size, count)
        ),
        default=0,
    )


def _more(left: _Left, demand: Demand) -> _Left:
    if demand.mode == "whole":
        return left._replace(whole=left.whole + demand.cards)
    if demand.mode == "mps":
        return left._replace(memory_mib=left.memory_mib + demand.cards * demand.least_mib)
    sizes = {(one.size, len(one.starts)) for one in demand.profiles if one is not None}
    if not sizes:
        return left
    found = dict(left.sizes)
    if len(sizes) == 1:
        (size,) = sizes
        found[size] = found.get(size, 0) + 1
    return left._replace(
        slices=left.slices + min(size for size, _ in sizes),
        compute=left.compute + min(one.compute for one in demand.profiles if one is not None),
        sizes=found,
    )


def _cards_for(amount: int, each: Sequence[int]) -> int:
    """Return how many cards an amount takes at the least; more than there are: none has any."""
    if amount <= 0:
        return 0
    most = max(each, default=0)
    return -(-amount // most) if most else len(each) + 1
