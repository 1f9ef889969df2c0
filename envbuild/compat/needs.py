"""What follows for a host from an environment's cards, frameworks and CUDA."""

from dataclasses import replace

from envbuild.compat.check import builds_of
from envbuild.compat.model import Facts
from envbuild.compat.subject import Subject
from envbuild.compat.triangle import driver_floor
from envbuild.target import UNKNOWN, Need, Needs

_FRAMEWORKS = ("pytorch", "libtorch", "jaxlib")


def complete(needs: Needs, subject: Subject, facts: Facts) -> Needs:
    """Return needs with what the facts say where nothing is known yet.

    Args:
        needs: What is known.
        subject: The environment's cards and packages.
        facts: The tables.
    """
    capabilities = _capabilities(subject, facts)
    return replace(
        needs,
        capabilities=_known(needs.capabilities, capabilities),
        floor=_known(needs.floor, _floor(subject, facts, capabilities)),
        codes=_known(needs.codes, _codes(subject, facts)),
        cards=_known(needs.cards, _cards(facts)),
    )


def _known(need: Need, found: Need) -> Need:
    return need if need.value is not None else found


def _cards(facts: Facts) -> Need:
    """Return the capability of every card that has PCI ids, unknown where no table was read."""
    found = {card: row.capability for row in facts.gpus for card in row.pci_ids}
    if not found:
        return UNKNOWN
    text = " ".join(f"{card.lower()}={found[card]}" for card in sorted(found))
    return Need(value=text, origin="facts: gpus")


def _capabilities(subject: Subject, facts: Facts) -> Need:
    """Return the cards' capabilities, unknown where no table has one of the cards."""
    rows = [row for gpu in subject.gpus for row in facts.gpus if row.id == gpu]
    if not rows or len({row.id for row in rows}) < len(set(subject.gpus)):
        return UNKNOWN
    found = dict.fromkeys(row.capability for row in rows)
    return Need(value=",".join(found), origin=f"facts: {', '.join(row.name for row in rows)}")


def _floor(subject: Subject, facts: Facts, capabilities: Need) -> Need:
    """Return the oldest driver, of what the frameworks and the recipe say of CUDA."""
    builds = builds_of(subject, facts)
    cudas = {build.cuda for build in builds if build.cuda}
    cudas |= {part.cuda for part in subject.parts if part.cuda and part.name != "cudnn"}
    cudas |= {subject.cuda} if subject.cuda else set()
    if not cudas or not subject.gpus:
        return UNKNOWN
    cards = capabilities.value.split(",") if capabilities.value else []
    found = driver_floor(facts, sorted(cudas), cards)
    return UNKNOWN if found is None else Need(value=found.version, origin=f"facts: {found.why}")


def _codes(subject: Subject, facts: Facts) -> Need:
    """Return the code of the frameworks, unknown where one of them was not read."""
    builds = builds_of(subject, facts)
    unread = [name for name in _FRAMEWORKS if (part := subject.conda(name)) and part.cuda]
    codes = {build.framework: build.all_codes or build.codes for build in builds}
    if unread or not codes or not all(codes.values()):
        return UNKNOWN
    return Need(
        value="; ".join(f"{name}: {' '.join(found)}" for name, found in codes.items()),
        origin=f"facts: {', '.join(build.name for build in builds)}",
    )
