"""The cards of this host as they can be given out, and changes of them, through NVML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from envbuild.errors import HostError
from envbuild.shares.cards import nominal_mib
from envbuild.shares.model import Card, Profile
from envbuild.tools.nvml import Ending, Heard, Limits, converse

_WORKER: Final = "nvml_shares"
_LIMITS: Final = Limits(silence_s=60, total_s=300)
"""A card that goes into MIG mode is reset, which takes seconds."""
_MIB: Final = 1 << 20
_NO_INSTANCE: Final = 0xFFFFFFFF  # nvml.h, nvmlProcessInfo_t: not in a MIG instance


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """A GPU instance that is there.

    Attributes:
        id: Its number on the card.
        profile: The number of its profile.
        start: Its first memory slice.
        size: How many.
        devices: Its devices: UUID and number of the compute instance.
    """

    id: int
    profile: int
    start: int
    size: int
    devices: tuple[tuple[str, int], ...]

    @property
    def mask(self) -> int:
        """Its memory slices, as bits."""
        return ((1 << self.size) - 1) << self.start


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A card as it is.

    Attributes:
        card: As it can be given out, nothing of it taken.
        minor: N of its node `/dev/nvidiaN`.
        mig: Whether MIG mode is on; None where it has none.
        users: Processes that use it, each with the number of its instance, None for the card.
        profiles: Numbers of its profiles by their names.
        instances: What it is cut into.
    """

    card: Card
    minor: int
    mig: bool | None
    users: tuple[tuple[int, int | None], ...]
    profiles: Mapping[str, int]
    instances: tuple[Instance, ...]


def look(driver_root: Path | None = None) -> tuple[Seen, ...]:
    """Return the cards of this host.

    Raises:
        HostError: NVML does not answer, or a card does not.
    """
    heard = converse(_WORKER, {}, driver_root, limits=_LIMITS)
    _check(heard)
    count = heard.said[None, "count"]["value"]
    return tuple(_seen(number, _value(heard, number, "card")) for number in range(count))


def change(steps: Sequence[Mapping[str, Any]], driver_root: Path | None = None) -> list[Any]:
    """Do steps, one after the other, and return what each says.

    Raises:
        HostError: One fails; those before it are done.
    """
    heard = converse(_WORKER, {"steps": list(steps)}, driver_root, limits=_LIMITS)
    _check(heard)
    return [_value(heard, number, "step") for number in range(len(steps))]


def traffic(uuids: Sequence[str], driver_root: Path | None = None) -> dict[str, float]:
    """Return the PCIe traffic of cards in bytes per second, both ways together.

    A card that does not say is not among them.

    Raises:
        HostError: NVML does not answer.
    """
    heard = converse(_WORKER, {"traffic": list(uuids)}, driver_root, limits=_LIMITS)
    _check(heard, "init")
    found = {uuid: heard.said.get((number, "traffic"), {}) for number, uuid in enumerate(uuids)}
    return {uuid: said["value"] for uuid, said in found.items() if "value" in said}


def available(seen: Seen, *, own: int = 0, reserved: int = 0, holder: str = "") -> Card:
    """Return a card with what of it cannot be given out.

    Args:
        seen: The card.
        own: Slices of instances that will go, as bits.
        reserved: Slices that are promised, whether or not something lies there.
        holder: Who has the whole card, or empty.
    """
    taken = reserved
    for instance in seen.instances:
        taken |= instance.mask & ~own
    busy = f"{holder} has it" if holder else ""
    if seen.users and not seen.mig:
        pids = ", ".join(str(pid) for pid in dict.fromkeys(pid for pid, _ in seen.users))
        busy = f"in use by process {pids}"
    return replace(seen.card, taken=taken, mig_only=bool(taken), closed=busy)


def _seen(index: int, said: Mapping[str, Any]) -> Seen:
    profiles = tuple(
        Profile(
            name=one["name"],
            compute=one["compute"],
            size=one["size"],
            starts=tuple(one["starts"]),
            memory_mib=nominal_mib(one["name"]) or one["memory_mib"],
        )
        for one in said["profiles"]
        if "+" not in one["name"] and one["starts"]
    )
    whole = max((one.size + one.starts[-1] for one in profiles), default=0)
    card = Card(
        index=index,
        model=said["name"],
        memory_mib=said["memory_bytes"] // _MIB,
        uuid=said["uuid"],
        pci_address=said["address"].lower(),
        compute=max((one.compute for one in profiles), default=0),
        slices=whole,
        profiles=profiles,
    )
    instances = tuple(
        Instance(
            id=one["id"],
            profile=one["profile"],
            start=one["start"],
            size=one["size"],
            devices=tuple((each["uuid"], each["compute_instance"]) for each in one["devices"]),
        )
        for one in said["instances"]
    )
    return Seen(
        card=card,
        minor=said["minor"],
        mig=said["mig"],
        users=tuple(
            (pid, None if instance == _NO_INSTANCE else instance) for pid, instance in said["pids"]
        ),
        profiles={one["name"]: one["id"] for one in said["profiles"]},
        instances=instances,
    )


def _check(heard: Heard, *paths: str) -> None:
    if heard.ending is not Ending.WHOLE:
        raise HostError(heard.why, hint="envbuild doctor says what is the matter with the driver")
    for path in paths or ("init", "count"):
        said = heard.said.get((None, path), {})
        if "error" in said:
            message = f"NVML does not answer: {said['call']}: {said['text']}"
            raise HostError(message, hint="--gpu MODEL plans for cards that are not here")


def _value(heard: Heard, number: int, path: str) -> Any:  # noqa: ANN401
    said = heard.said.get((number, path), {"error": None, "text": "not done", "call": ""})
    if "error" in said:
        where = f"card {number}" if path == "card" else f"step {number + 1}"
        message = f"{where}: {said['call']}: {said['text']}"
        hint = "envbuild doctor says what is the matter with a card; only root may change one"
        raise HostError(message, hint=hint)
    return said["value"]
