"""Cards to be given out: of a model, as the facts have it, or of this host, as NVML has them."""

import re
from collections.abc import Sequence
from typing import Final

from envbuild.compat.model import Facts, Gpu, Layout
from envbuild.shares.model import Card, Profile

_KIB: Final = 1024


def of_model(gpu: Gpu, facts: Facts, *, count: int = 1) -> tuple[Card, ...]:
    """Return cards of a model; sizes are nominal.

    Args:
        gpu: The model.
        facts: The tables, which say how cards are divided.
        count: How many.
    """
    whole = max((one.compute for one in gpu.mig), default=0)
    layout = next((row for row in facts.layouts if row.compute == whole), None)
    profiles = () if layout is None else tuple(_profiles(gpu, layout))
    memory_mib = max((one.memory_mib for one in profiles), default=(gpu.memory_gb or 0) * _KIB)
    return tuple(
        Card(
            index=index,
            model=gpu.title,
            memory_mib=memory_mib,
            compute=whole if profiles else 0,
            slices=layout.memory if layout is not None else 0,
            profiles=profiles,
        )
        for index in range(count)
    )


def nominal_mib(profile: str) -> int | None:
    """Return the memory that a profile's name has: 40960 of `3g.40gb`; None where it has none."""
    found = re.fullmatch(r"\d+g\.(\d+)gb", profile)
    return int(found[1]) * _KIB if found else None


def _profiles(gpu: Gpu, layout: Layout) -> Sequence[Profile]:
    """Return the profiles without media extensions; of those with, a card has one."""
    found = []
    for one in gpu.mig:
        for row in layout.placements:
            memory_mib = nominal_mib(one.profile)
            if (one.compute, one.count) == (row.compute, len(row.starts)) and memory_mib:
                found.append(
                    Profile(
                        name=one.profile,
                        compute=one.compute,
                        size=row.memory,
                        starts=row.starts,
                        memory_mib=memory_mib,
                    )
                )
    return found
