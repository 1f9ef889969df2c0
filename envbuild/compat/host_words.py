"""What several judges of a host ask: which cards it has, and what they are called."""

from envbuild.compat.model import Facts
from envbuild.host.machine import Host, PciDevice
from envbuild.host.model import Gpu
from envbuild.host.readings import Value, known

Card = Gpu | PciDevice
"""A card: as NVML has it, or as the bus has it where NVML does not answer."""


def on_bus(host: Host) -> tuple[PciDevice, ...]:
    """Return the cards on the bus."""
    devices = known(host.machine.pci.devices) or ()
    return tuple(device for device in devices if device.kind == "gpu")


def cards(host: Host) -> tuple[Card, ...]:
    """Return every card once: NVML's, then those that only the bus knows."""
    told = places(host).values()
    if len(told) < len(host.nvml.gpus):  # a card that does not say where it is may be any
        return host.nvml.gpus
    return (*host.nvml.gpus, *(one for one in on_bus(host) if one.address not in told))


def places(host: Host) -> dict[int, str]:
    """Return the address on the bus of NVML's cards, by their number.

    A lost card does not say where it is; where one card and one place are left, they are one.
    """
    found = {gpu.index: known(gpu.pci_address) for gpu in host.nvml.gpus}
    silent = [index for index, address in found.items() if address is None]
    free = [one.address for one in on_bus(host) if one.address not in found.values()]
    if len(silent) == len(free) == 1:
        found[silent[0]] = free[0]
    return {index: address for index, address in found.items() if address is not None}


def card_name(card: Card) -> str:
    """Return what a card is called in a sentence: `GPU 0 (NVIDIA H100 80GB HBM3)`."""
    if isinstance(card, PciDevice):
        model = known(card.model)
        return f"the card at {card.address}" + (f" ({model})" if model else "")
    name = known(card.name)
    return f"GPU {card.index}" + (f" ({name})" if name else "")


def capability(card: Card, facts: Facts) -> str | None:
    """Return a card's compute capability: as NVML says, else by its PCI device id."""
    if isinstance(card, Gpu):
        return known(card.compute_capability)
    rows = (row for row in facts.gpus if card.device_id in row.pci_ids)
    return next((row.capability for row in rows), None)


def driver_of(host: Host) -> str | None:
    """Return the version of the driver that runs, or None without one."""
    for reading in (host.machine.driver.loaded, host.nvml.driver):
        if isinstance(reading, Value):
            return reading.value
    return None
