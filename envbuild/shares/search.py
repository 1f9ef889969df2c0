"""The search for places: exact, through arrangements of jobs on cards, cards that are alike once.

A job is placed where it leaves the most room for others; another place is tried only where that
leads nowhere, and what was found to lead nowhere is not tried again. How many places are tried is
bounded by number, so that the answer is the same on every machine.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from envbuild.shares.bounds import Bounds, Demand, State, places_left
from envbuild.shares.model import MOST_CLIENTS, WHOLE_PERCENT, Card, Mode, Profile, Wish

MOST_TRIES: Final = 3_000


class TooMany(Exception):
    """There are more arrangements than are gone through."""


class Place(NamedTuple):
    """Where a job goes on a card (its place in the list): an instance there, or a client."""

    card: int
    mode: Mode
    profile: Profile | None
    start: int


def find(
    wishes: Sequence[Wish], cards: Sequence[Card], *, most: int = MOST_TRIES
) -> tuple[tuple[Place, ...], ...] | None:
    """Return the places of each wish, or None where there are none for all of them.

    Args:
        wishes: What is wanted.
        cards: The cards.
        most: How many places are tried.

    Raises:
        TooMany: The search was given up.
    """
    search = _Search(wishes, cards, most)
    found = search.run()
    if found is None:
        return None
    places: list[tuple[Place, ...]] = [()] * len(wishes)
    for number, place in zip(search.order, found, strict=True):
        places[number] = place
    return tuple(places)


def mode_of(wish: Wish, cards: Sequence[Card]) -> Mode:
    """Return how a wish is to be kept apart: by MIG only where a card that will do has it."""
    if wish.is_whole:
        return "whole"
    if wish.isolation == "mig" and any(card.profiles for card in allowed(wish, cards)):
        return "mig"
    return "none" if wish.isolation == "none" else "mps"


def allowed(wish: Wish, cards: Sequence[Card]) -> Iterator[Card]:
    """Give the cards that a wish lets be taken."""
    for card in cards:
        if not wish.cards or any(card.is_called(word) for word in wish.cards):
            yield card


def smallest(wish: Wish, card: Card) -> Profile | None:
    """Return the profile that answers a wish and leaves the most room, or None.

    Every placement of a larger profile holds one of the smallest, so no other need be tried.
    """
    fitting = [profile for profile in card.profiles if _answers(profile, wish, card)]
    return min(fitting, key=lambda one: (one.size, -len(one.starts)), default=None)


def _answers(profile: Profile, wish: Wish, card: Card) -> bool:
    return (
        profile.memory_mib >= (wish.memory_mib or 0)
        and WHOLE_PERCENT * profile.size >= (wish.memory_percent or 0) * card.slices
        and WHOLE_PERCENT * profile.compute >= (wish.sm_percent or 0) * card.compute
    )


class _Search:
    """One search.

    Attributes:
        order: The wishes' places in the list, hardest first.
    """

    def __init__(self, wishes: Sequence[Wish], cards: Sequence[Card], most: int) -> None:
        self._cards = cards
        self._modes = [mode_of(wish, cards) for wish in wishes]
        self._open = [
            tuple(
                index
                for index, card in enumerate(cards)
                if not card.closed and any(one is card for one in allowed(wish, cards))
            )
            for wish in wishes
        ]
        self._profiles = [
            [smallest(wish, card) for card in cards] if mode == "mig" else []
            for wish, mode in zip(wishes, self._modes, strict=True)
        ]
        self._least = [[wish.least_mib(card) for card in cards] for wish in wishes]
        self._wishes = wishes
        self.order = sorted(range(len(wishes)), key=self._hardness)
        self._alike = self._classes()
        self._dead: set[tuple[int, tuple[tuple[int, State], ...]]] = set()
        self._left_tries = most
        self._bounds = Bounds(
            cards,
            [
                Demand(
                    mode=self._modes[number],
                    cards=wishes[number].count,
                    profiles=[self._profiles[number][index] for index in self._open[number]]
                    if self._profiles[number]
                    else [],
                    least_mib=min(
                        (self._least[number][index] for index in self._open[number]), default=0
                    ),
                )
                for number in self.order
            ],
        )

    def run(self) -> list[tuple[Place, ...]] | None:
        states = [State("", card.taken, 0, 0, "") for card in self._cards]
        if not all(self._choices(number, states) for number in self.order):
            return None  # one has no place even alone
        found: list[tuple[Place, ...]] = []
        return found if self._step(0, states, found) else None

    def _hardness(self, number: int) -> tuple[int, int, int, int, int]:
        wish, mode = self._wishes[number], self._modes[number]
        sizes = [one for one in self._profiles[number] if one is not None]
        size, starts = min(((-one.size, len(one.starts)) for one in sizes), default=(0, 0))
        rank = {"whole": 0, "mig": 1, "mps": 2, "none": 3}[mode]
        return (rank, size, starts, -max(self._least[number], default=0) * wish.count, number)

    def _classes(self) -> list[int]:
        """Return a number for each card; cards of one number are alike for these wishes."""
        kinds: dict[object, int] = {}
        numbers = []
        for index, card in enumerate(self._cards):
            named = tuple(number for number, them in enumerate(self._open) if index in them)
            kind = (card.memory_mib, card.profiles, card.mig_only, card.mps_only, named)
            numbers.append(kinds.setdefault(kind, len(kinds)))
        return numbers

    def _step(self, step: int, states: list[State], found: list[tuple[Place, ...]]) -> bool:
        if step == len(self.order):
            return True
        key = (step, tuple(sorted(zip(self._alike, states, strict=True))))
        if key in self._dead or self._bounds.exceeded(step, states):
            return False
        number = self.order[step]
        for places in self._choices(number, states):
            self._left_tries -= 1
            if self._left_tries < 0:
                raise TooMany
            after = list(states)
            for place in places:
                after[place.card] = self._after(number, place, states[place.card])
            found.append(places)
            if self._step(step + 1, after, found):
                return True
            found.pop()
        self._dead.add(key)
        return False

    def _choices(self, number: int, states: Sequence[State]) -> list[tuple[Place, ...]]:
        """Return where a wish can go, best first; of what is alike, no more than it needs."""
        single: list[tuple[tuple[object, ...], Place]] = []
        seen: dict[object, int] = {}
        count = self._wishes[number].count
        for index in self._open[number]:
            state = states[index]
            kind = (self._alike[index], state)
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] > count:
                continue
            for place in self._places(number, index, state):
                after = self._after(number, place, state)
                single.append(((state.mode == "", *self._loss(index, state, after), index), place))
        single.sort(key=lambda one: one[0])
        places = [place for _, place in single]
        if count == 1:
            return [(place,) for place in places]
        return [
            some
            for some in combinations(places, count)
            if len({place.card for place in some}) == count
        ]

    def _places(self, number: int, index: int, state: State) -> Iterator[Place]:
        card, wish, mode = self._cards[index], self._wishes[number], self._modes[number]
        if state.mode not in {"", mode}:
            return
        if mode == "mig":
            profile = self._profiles[number][index]
            if profile is not None and card.cuttable:
                for start in profile.starts:
                    if not state.taken & profile.mask(start):
                        yield Place(index, mode, profile, start)
        elif state.taken or card.mig_only:
            return
        elif mode == "whole":
            if state.mode == "":
                yield Place(index, mode, None, 0)
        else:
            fits = state.used_mib + self._least[number][index] <= card.memory_mib
            one_user = mode == "none" or state.user == wish.user or not state.clients
            if fits and one_user and state.clients < MOST_CLIENTS:
                yield Place(index, mode, None, 0)

    def _after(self, number: int, place: Place, state: State) -> State:
        if place.mode == "whole":
            return State("whole", 0, 0, 0, "")
        if place.profile is not None:
            taken = state.taken | place.profile.mask(place.start)
            return State("mig", taken, 0, 0, "")
        user = self._wishes[number].user if place.mode == "mps" else ""
        used_mib = state.used_mib + self._least[number][place.card]
        return State(place.mode, 0, used_mib, state.clients + 1, user)

    def _loss(self, index: int, before: State, after: State) -> tuple[int, int]:
        """Return what a choice spoils for others, and what it leaves: less is better."""
        card = self._cards[index]
        if after.mode != "mig":
            return (0, card.memory_mib - after.used_mib)
        spoiled = places_left(card, before.taken) - places_left(card, after.taken)
        return (spoiled, card.slices - after.taken.bit_count())
