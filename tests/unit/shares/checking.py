"""What a plan must hold, looked at without the planner, and every arrangement, gone through."""

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from envbuild.compat.model import Facts
from envbuild.shares.cards import of_model
from envbuild.shares.model import Card, Isolation, Part, Plan, Profile, Wish

Spot = tuple[int, Profile | None, int]


def of(facts: Facts, model: str, count: int = 1) -> tuple[Card, ...]:
    """Return cards of a model."""
    (gpu,) = (row for row in facts.gpus if row.id == model)
    return of_model(gpu, facts, count=count)


def problems(found: Plan, wishes: Sequence[Wish]) -> list[str]:
    """Return what is wrong with a plan that was not refused."""
    wrong = []
    for card in found.cards:
        there = [part for part in found.parts if part.card == card.index]
        wrong += [f"card {card.index}: {what}" for what in _of_card(card, there)]
    for wish in wishes:
        own = [part for part in found.parts if part.job == wish.name]
        if len({part.card for part in own}) != wish.count or len(own) != wish.count:
            wrong.append(f"{wish.name} has {len(own)} parts")
        wrong += [f"{wish.name} has too little" for part in own if not _enough(part, wish, found)]
    return wrong


def _of_card(card: Card, there: Sequence[Part]) -> Iterator[str]:
    modes = {part.mode for part in there}
    if len(modes) > 1:
        yield "shared in two ways"
    slices = [n for part in there for n in range(part.start, part.start + part.size)]
    if len(set(slices)) != len(slices) or any(n >= card.slices for n in slices):
        yield f"slices overlap or lie outside: {slices}"
    if any(card.taken >> n & 1 for n in slices):
        yield "slices of others are taken"
    if modes & {"mps", "none"} and sum(part.memory_mib for part in there) > card.memory_mib:
        yield "too little memory"
    if modes == {"mps"} and len({part.user for part in there}) > 1:
        yield "two users of one MPS server"
    if modes == {"mig"} and sum(part.sm_percent for part in there) > 100.01:
        yield "more multiprocessors than there are"
    if modes == {"whole"} and len(there) > 1:
        yield "whole for two"


def _enough(part: Part, wish: Wish, found: Plan) -> bool:
    (card,) = (one for one in found.cards if one.index == part.card)
    if wish.memory_mib is not None and part.memory_mib < wish.memory_mib:
        return False
    if part.mode == "mig" and wish.memory_percent is not None:
        return 100 * part.size >= wish.memory_percent * card.slices
    return wish.sm_percent is None or part.sm_percent >= wish.sm_percent - 0.001


def possible(wishes: Sequence[Wish], cards: Sequence[Card]) -> bool:
    """Tell by going through all arrangements whether wishes for one card each have places."""
    spots = [list(_spots(wish, cards)) for wish in wishes]
    return any(_fits(wishes, cards, some) for some in product(*spots))


def _spots(wish: Wish, cards: Sequence[Card]) -> Iterator[Spot]:
    by_mig = wish.isolation == "mig" and any(card.profiles for card in cards)
    for place, card in enumerate(cards):
        if not by_mig:
            yield place, None, 0
            continue
        for profile in card.profiles:
            if (
                profile.memory_mib >= (wish.memory_mib or 0)
                and profile.compute / card.compute * 100 >= (wish.sm_percent or 0)
                and profile.size / card.slices * 100 >= (wish.memory_percent or 0)
            ):
                yield from ((place, profile, start) for start in profile.starts)


def _fits(wishes: Sequence[Wish], cards: Sequence[Card], some: Sequence[Spot]) -> bool:
    for place, card in enumerate(cards):
        there = [(w, s) for w, s in zip(wishes, some, strict=True) if s[0] == place]
        cut = [(profile, start) for _, (_, profile, start) in there if profile is not None]
        slices = [n for profile, start in cut for n in range(start, start + profile.size)]
        clients = [wish for wish, (_, profile, _) in there if profile is None]
        if (cut and clients) or len(set(slices)) < len(slices):
            return False
        whole = [wish for wish in clients if wish.is_whole]
        if whole and len(clients) > 1:
            return False
        if len({wish.user for wish in clients}) > 1:
            return False
        if sum(wish.least_mib(card) for wish in clients) > card.memory_mib:
            return False
    return True


def some_wishes(random: Random, card: Card, count: int) -> tuple[Wish, ...]:
    """Return random wishes that may or may not fit on a card."""
    return tuple(_wish(random, card, f"job{number}") for number in range(count))


def _wish(random: Random, card: Card, name: str) -> Wish:
    if random.random() < 0.05:
        return Wish(name=name)
    kinds: tuple[Isolation | None, ...] = ("mig", "mig", "mps", None)
    memory_mib = random.choice((None, random.randrange(1, card.memory_mib * 5 // 4)))
    small = random.choice((None, random.randrange(1, card.memory_mib // 4)))
    sm_percent = random.choice((None, float(random.randrange(1, 101)), 100 / 7, 300 / 7))
    percent = random.choice((None, None, None, float(random.randrange(1, 101)), 12.5, 25.0, 50.0))
    return Wish(
        name=name,
        memory_mib=random.choice((memory_mib, small, small)),
        memory_percent=percent,
        sm_percent=random.choice((sm_percent, None)),
        isolation=random.choice(kinds),
        user=random.choice(("", "", "", "other")),
    )
