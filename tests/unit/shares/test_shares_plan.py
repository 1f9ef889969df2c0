"""The planner: never overlaps, never above a card, refuses only what cannot be."""

import os
from random import Random

import pytest
from unit.shares.checking import of, possible, problems, some_wishes

from envbuild.compat.model import Facts
from envbuild.compat.tables import load
from envbuild.shares.model import Card, Profile, Wish
from envbuild.shares.plan import plan

FACTS = load(only=("gpus",))
CUT = tuple(gpu.id for gpu in FACTS.gpus if gpu.mig)
_GIB = 1024
_ROUNDS = int(os.environ.get("ENVBUILD_TEST_WISHES") or 40)
_BRUTE = max(10, _ROUNDS // 20)


@pytest.fixture(scope="module")
def facts() -> Facts:
    return FACTS


def _gib(name: str, memory: float, sm: float | None = None, **more: object) -> Wish:
    return Wish(name=name, memory_mib=int(memory * _GIB), sm_percent=sm, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", CUT)
def test_random_wishes_never_overlap_and_fit(model: str, facts: Facts) -> None:
    random = Random(model)  # noqa: S311 - the same wishes each time
    (card,) = of(facts, model)
    planned = 0
    for _ in range(_ROUNDS):
        wishes = some_wishes(random, card, random.randrange(1, 8))
        found = plan(wishes, (card,))
        if found.refusal is None:
            planned += 1
            assert problems(found, wishes) == []
        else:
            assert found.refusal.certain
            assert found.parts == ()
    assert planned


@pytest.mark.parametrize("model", CUT)
def test_only_what_cannot_be_is_refused(model: str, facts: Facts) -> None:
    random = Random(model + "brute")  # noqa: S311 - the same wishes each time
    cards = of(facts, model, 2)
    answers = set()
    for number in range(_BRUTE):
        some = cards[: 1 + number % 2]
        wishes = some_wishes(random, some[0], random.randrange(1, 4))
        refusal = plan(wishes, some).refusal
        assert possible(wishes, some) is (refusal is None), wishes
        if refusal is not None:
            assert refusal.certain
        answers.add(refusal is None)
    assert answers == {True, False}


def test_fine_tuning_beside_inference(facts: Facts) -> None:
    wishes = (_gib("finetune", 40, 80, pcie_bytes=12 << 30), _gib("serve", 8, 30))
    found = plan(wishes, of(facts, "h100"))
    assert [(part.job, part.mode, part.memory_mib, part.sm_percent) for part in found.parts] == [
        ("finetune", "mps", 40960, 80),
        ("serve", "mps", 8192, 30),
    ]
    assert [note.partition(":")[0] for note in found.notes] == [
        "under MPS a share of multiprocessors is a ceiling, not reserved",
        "no kernel mechanism limits PCIe traffic",
    ]


def test_mig_takes_the_smallest_profiles(facts: Facts) -> None:
    wishes = (
        _gib("a", 8, isolation="mig"),
        _gib("b", 40, 40, isolation="mig"),
        _gib("c", 20, isolation="mig"),
    )
    found = plan(wishes, of(facts, "h100"))
    assert problems(found, wishes) == []
    assert sorted(part.profile for part in found.parts) == ["1g.10gb", "1g.20gb", "3g.40gb"]


def test_the_nearest_that_can_be_is_said(facts: Facts) -> None:
    card = of(facts, "h100")
    refusal = plan((_gib("a", 40, isolation="mig"), _gib("b", 50, isolation="mig")), card).refusal
    assert refusal is not None
    assert (refusal.job, refusal.why, refusal.nearest) == (
        "b",
        "there is no room for 50G beside a",
        "40G by MIG",
    )
    refusal = plan((_gib("a", 60), _gib("b", 40)), card).refusal
    assert refusal is not None
    assert (refusal.job, refusal.nearest) == ("b", "20G")
    refusal = plan((_gib("a", 90),), card).refusal
    assert refusal is not None
    assert refusal.why == "it wants 90G, and no card has more than 80G"
    refusal = plan((_gib("a", 90, isolation="mig"),), card).refusal
    assert refusal is not None
    assert refusal.why == "no MIG profile of the H100 80GB SXM5 has 90G"
    assert refusal.nearest == "80G by MIG"
    refusal = plan((Wish(name="a", count=3),), of(facts, "h100", 2)).refusal
    assert refusal is not None
    assert refusal.nearest == "a whole card on 2 cards"


def test_isolation_on_cards_without_mig_is_mps_and_said(facts: Facts) -> None:
    found = plan((_gib("a", 8, isolation="mig"),), of(facts, "l40s"))
    assert [part.mode for part in found.parts] == ["mps"]
    assert found.notes[0].startswith("a: MIG was asked for and no card that will do has it")


def test_two_users_never_share_an_mps_server(facts: Facts) -> None:
    wishes = (_gib("a", 8, user="a"), _gib("b", 8, user="b"))
    assert plan(wishes, of(facts, "h100")).refusal is not None
    found = plan(wishes, of(facts, "h100", 2))
    assert {part.card for part in found.parts} == {0, 1}


def test_a_job_without_memory_gets_what_is_left(facts: Facts) -> None:
    wishes = (_gib("a", 20), Wish(name="b", sm_percent=10), Wish(name="c", sm_percent=10))
    found = plan(wishes, of(facts, "h100"))
    assert [part.memory_mib for part in found.parts] == [20480, 30720, 30720]


def test_what_others_made_and_closed_cards_are_left_alone(facts: Facts) -> None:
    (card,) = of(facts, "h100")
    taken = Card(
        index=0,
        model=card.model,
        memory_mib=card.memory_mib,
        compute=7,
        slices=8,
        profiles=card.profiles,
        taken=0b1111,
        mig_only=True,
    )
    found = plan((_gib("a", 10, isolation="mig"),), (taken,))
    assert [part.start for part in found.parts] == [6]
    assert plan((_gib("a", 10),), (taken,)).refusal is not None
    closed = Card(index=0, model="x", memory_mib=80, closed="4711 (python) uses it")
    refusal = plan((Wish(name="a"),), (closed,)).refusal
    assert refusal is not None
    assert refusal.why == "card 0: 4711 (python) uses it"


def test_pins_by_index_uuid_and_address() -> None:
    profile = Profile(name="1g.10gb", compute=1, size=1, starts=(0,), memory_mib=10240)
    cards = tuple(
        Card(
            index=index,
            model="x",
            memory_mib=81920,
            uuid=f"GPU-0000000{index}",
            pci_address=f"00000000:{index}B:00.0",
            compute=7,
            slices=8,
            profiles=(profile,),
        )
        for index in range(3)
    )
    for word, index in (("1", 1), ("GPU-00000002", 2), ("0000:1b:00.0", 1), ("2b:00.0", 2)):
        found = plan((Wish(name="a", cards=(word,)),), cards)
        assert [part.card for part in found.parts] == [index]
    refusal = plan((Wish(name="a", cards=("7",)),), cards).refusal
    assert refusal is not None
    assert (refusal.why, refusal.nearest) == ("there is no card called 7", "")


def test_many_jobs_on_eight_cards(facts: Facts) -> None:
    cards = of(facts, "h100", 8)
    sizes = (10, 10, 10, 10, 10, 20, 10)
    wishes = [_gib(f"m{n}", sizes[n % 7], isolation="mig") for n in range(32)]
    wishes += [_gib(f"p{n}", 5 + n % 4, 30) for n in range(32)]
    found = plan(wishes, cards)
    assert found.refusal is None
    assert problems(found, wishes) == []


def test_many_jobs_one_too_many(facts: Facts) -> None:
    cards = of(facts, "h100", 8)
    wishes = [_gib(f"m{n}", 10, isolation="mig") for n in range(57)]
    refusal = plan(wishes, cards).refusal
    assert refusal is not None
    assert (refusal.job, refusal.certain, refusal.nearest) == (
        "m56",
        True,
        "all of them by MPS",
    )
    assert refusal.why == "there is no room for 10G beside the 56 before it"
