"""Making and removing MIG instances for jobs; nothing that somebody else made is touched.

What shall be is written into the ledger first, then made, then written down as made. So the next
run finishes what one that was killed began: an instance at the place of a part that was not there
before is that part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from envbuild.errors import Refused
from envbuild.shares import ledger
from envbuild.shares.host import Instance, Seen, available, change, look
from envbuild.shares.ledger import Books, Ledger, Made
from envbuild.shares.model import Part, Plan, Wish
from envbuild.shares.plan import plan

_SEVERAL: Final = ", "


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """What was done.

    Attributes:
        plan: The plan of what was not there before.
        parts: What there is of the owner now.
        made: Jobs whose instances were made.
        dropped: Jobs whose instances were removed.
    """

    plan: Plan | None
    parts: tuple[Made, ...]
    made: tuple[str, ...]
    dropped: tuple[str, ...]


def apply(
    owner: str, wishes: Sequence[Wish], *, root: Path, driver_root: Path | None = None
) -> Applied:
    """Make what an owner's jobs want, and remove what they no longer want.

    Raises:
        Refused: It cannot be, or what would be removed is in use; nothing is changed.
        HostError: NVML does not do it; what was done is in the ledger.
        StoreError: The ledger cannot be read.
    """
    with ledger.opened(root) as book:
        seen = {one.card.uuid: one for one in look(driver_root)}
        _check_places(book.books, seen)
        wanted = {wish.name: _text(wish) for wish in wishes}
        own = [part for part in book.books.parts if part.owner == owner]
        stale = [part for part in own if wanted.get(part.job) != part.wish]
        kept = {part.job for part in own if part not in stale}
        _check_unused(stale, seen)
        found = _planned(
            [wish for wish in wishes if wish.name not in kept], book.books, stale, seen
        )
        if found.refusal is not None:
            return Applied(plan=found, parts=(), made=(), dropped=())
        dropped = _drop(book, stale, seen, driver_root)
        if dropped:
            seen = {one.card.uuid: one for one in look(driver_root)}
        _promise(book, owner, wanted, found, seen)
        made = _make(book, seen, driver_root)
        _publish(book.books, seen, root)
        parts = tuple(part for part in book.books.parts if part.owner == owner)
        return Applied(plan=found, parts=parts, made=made, dropped=dropped)


def again(*, root: Path, driver_root: Path | None = None) -> tuple[str, ...]:
    """Make what the ledger has and the cards do not, as after a boot; return whose.

    Raises:
        Refused: Something else lies in its place.
        HostError: NVML does not do it.
        StoreError: The ledger cannot be read.
    """
    with ledger.opened(root) as book:
        seen = {one.card.uuid: one for one in look(driver_root)}
        _check_places(book.books, seen)
        made = _make(book, seen, driver_root)
        _publish(book.books, seen, root)
        return made


def release(owner: str, *, root: Path, driver_root: Path | None = None) -> tuple[str, ...]:
    """Remove what was made for an owner, set cards back that nothing is left on; return whose.

    Raises:
        Refused: It is in use; nothing is changed.
        HostError: NVML does not do it; what was done is in the ledger.
        StoreError: The ledger cannot be read.
    """
    with ledger.opened(root) as book:
        seen = {one.card.uuid: one for one in look(driver_root)}
        own = [part for part in book.books.parts if part.owner == owner]
        _check_unused(own, seen)
        dropped = _drop(book, own, seen, driver_root)
        _publish(book.books, seen, root)
        used = {part.card for part in book.books.parts}
        seen = {one.card.uuid: one for one in look(driver_root)} if book.books.switched else {}
        for card in book.books.switched:
            there = seen.get(card)
            if card in used or there is None or there.instances or there.users:
                continue
            if there.mig:
                change([{"do": "mig", "card": card, "on": False}], driver_root)
            left = tuple(one for one in book.books.switched if one != card)
            book.keep(replace(book.books, switched=left))
        return dropped


def found_of(part: Made, seen: Mapping[str, Seen]) -> Instance | None:
    """Return the instance of a part, None where it is not there."""
    there = seen.get(part.card)
    for one in there.instances if there is not None else ():
        if (one.profile, one.start, one.size) != (part.number, part.start, part.size):
            continue
        if part.instance is None:
            return None if one.id in part.before else one
        uuids = [uuid for uuid, _ in one.devices]
        return one if one.id == part.instance and (not uuids or part.uuid in uuids) else None
    return None


def _text(wish: Wish) -> str:
    return repr(tuple(asdict(wish).items()))


def _planned(
    wishes: Sequence[Wish], books: Books, stale: Sequence[Made], seen: Mapping[str, Seen]
) -> Plan:
    cards = []
    for uuid, one in seen.items():
        going = reserved = 0
        for part in books.parts:
            if part.card != uuid:
                continue
            if part in stale:
                going |= part.mask if found_of(part, seen) is not None else 0
            else:
                reserved |= part.mask
        cards.append(available(one, own=going, reserved=reserved))
    return plan(wishes, cards)


def _check_places(books: Books, seen: Mapping[str, Seen]) -> None:
    """Refuse where something that is not ours lies in the place of a part."""
    for part in books.parts:
        there = seen.get(part.card)
        if there is None:
            continue
        own = found_of(part, seen)
        for other in there.instances:
            if other is not own and other.mask & part.mask:
                users = _users(there, other.id)
                message = (
                    f"card {there.card.index}: instance {other.id}, which is not of the ledger, "
                    f"lies where {part.job} has its place{users}"
                )
                hint = f"envbuild slice release {part.owner} forgets that place"
                raise Refused(message, hint=hint)


def _users(there: Seen, instance: int) -> str:
    pids = [str(pid) for pid, where in there.users if where in {instance, None}]
    return f"; in use by process {_SEVERAL.join(pids)}" if pids else ""


def _check_unused(parts: Iterable[Made], seen: Mapping[str, Seen]) -> None:
    for part in parts:
        own = found_of(part, seen)
        users = _users(seen[part.card], own.id) if own is not None else ""
        if users:
            message = (
                f"the instance of {part.job} on card {seen[part.card].card.index} stays{users}"
            )
            raise Refused(message, hint="stop what uses it first")


def _drop(
    book: Ledger, parts: Sequence[Made], seen: Mapping[str, Seen], driver_root: Path | None
) -> tuple[str, ...]:
    """Remove parts, each out of the ledger when it is gone."""
    for part in sorted(parts, key=lambda one: one.job):
        own = found_of(part, seen)
        if own is not None:
            change([{"do": "drop", "card": part.card, "instance": own.id}], driver_root)
        book.keep(book.books.without(part))
    return tuple(sorted(part.job for part in parts))


def _promise(
    book: Ledger, owner: str, wanted: Mapping[str, str], found: Plan, seen: Mapping[str, Seen]
) -> None:
    """Write into the ledger what shall be made."""
    books = book.books
    for part in found.parts:
        if part.mode == "mig":
            there = next(one for one in seen.values() if one.card.index == part.card)
            books = books.with_(_promised(owner, part, wanted[part.job], there))
    if books != book.books:
        book.keep(books)


def _promised(owner: str, part: Part, wish: str, there: Seen) -> Made:
    return Made(
        owner=owner,
        job=part.job,
        wish=wish,
        card=there.card.uuid,
        profile=part.profile,
        number=there.profiles[part.profile],
        start=part.start,
        size=part.size,
        memory_mib=part.memory_mib,
        sm_percent=part.sm_percent,
        before=tuple(one.id for one in there.instances),
    )


def _make(book: Ledger, seen: Mapping[str, Seen], driver_root: Path | None) -> tuple[str, ...]:
    """Make every part of the ledger that is not there yet."""
    made = []
    on = {uuid for uuid, there in seen.items() if there.mig}
    for part in _in_order(book.books.parts):
        there = seen.get(part.card)
        own = found_of(part, seen)
        if there is None or (own is not None and own.devices and part.instance is not None):
            continue
        if part.card not in on:
            _switch(book, part.card, seen, driver_root)
            on.add(part.card)
        if part.instance is not None and own is None:  # gone with a boot
            part = replace(part, instance=None, uuid="", before=tuple(_ids(there)))  # noqa: PLW2901
            book.keep(book.books.with_(part))
        step = {"do": "make", "card": part.card, "profile": part.number}
        (said,) = change([{**step, "start": part.start, "size": part.size}], driver_root)
        done = replace(
            part,
            instance=said["instance"],
            uuid=said["uuid"],
            compute_instance=said["compute_instance"],
        )
        book.keep(book.books.with_(done))
        made.append(part.job)
    return tuple(made)


def _switch(book: Ledger, card: str, seen: Mapping[str, Seen], driver_root: Path | None) -> None:
    """Put a card into MIG mode, once; that it was not is written down first."""
    there = seen[card]
    if there.users:
        pids = _SEVERAL.join(str(pid) for pid, _ in there.users)
        message = f"card {there.card.index} is in use by process {pids} and cannot be cut"
        raise Refused(message, hint="stop what uses it first")
    if card not in book.books.switched:
        book.keep(replace(book.books, switched=(*book.books.switched, card)))
    change([{"do": "mig", "card": card, "on": True}], driver_root)


def _ids(there: Seen) -> Iterator[int]:
    return (one.id for one in there.instances)


def _in_order(parts: Iterable[Made]) -> list[Made]:
    """Return parts by card, wide ones first, as they are made."""
    return sorted(parts, key=lambda part: (part.card, -part.size, part.start))


def _publish(books: Books, seen: Mapping[str, Seen], root: Path) -> None:
    """Write down for services which instances there are."""
    found: list[Mapping[str, Any]] = [
        {
            "uuid": part.uuid,
            "card_uuid": part.card,
            "address": _sysfs(seen[part.card].card.pci_address),
            "index": seen[part.card].card.index,
            "minor": seen[part.card].minor,
            "gpu_instance": part.instance,
            "compute_instance": part.compute_instance,
            "memory_mib": part.memory_mib,
            "card_mib": seen[part.card].card.memory_mib,
            "sm_percent": part.sm_percent,
            "job": part.job,
        }
        for part in books.parts
        if part.instance is not None and part.card in seen
    ]
    ledger.publish(root, found)


def _sysfs(address: str) -> str:
    """Return a PCI address as sysfs has it: a domain of four digits."""
    return address[-12:]
