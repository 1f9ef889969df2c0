"""What an environment must run on: platforms, driver, GPUs, glibc."""

from dataclasses import dataclass
from typing import Literal, get_args

Platform = Literal["linux-64", "linux-aarch64"]
PLATFORMS: tuple[Platform, ...] = get_args(Platform)

MACHINES: dict[Platform, str] = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What the environment must run on, for one platform; the solvers see nothing else.

    Attributes:
        platform: conda subdir.
        glibc: Version text of the oldest glibc it must run on.
        cuda: CUDA version that the driver offers (`__cuda`), or None for no GPU.
        archspec: CPU microarchitecture (`__archspec`), or None for the platform's baseline.
    """

    platform: Platform
    glibc: str = "2.28"
    cuda: str | None = None
    archspec: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """One need of an environment.

    Attributes:
        value: The need as text (a version range, a floor, a name), `none` where nothing is needed,
            None if unknown.
        origin: Where it was read: `recipe`, `file`, or the rows of facts that it follows from,
            after `facts: `; None, or why not, if unknown.
    """

    value: str | None
    origin: str | None


NONE = "none"
UNKNOWN = Need(value=None, origin=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a host must have before the environment may run on it (`needs.json`).

    What came after the first four is unknown in files of an earlier envbuild.

    Attributes:
        driver: Range of drivers.
        gpus: Names of cards, joined by commas.
        glibc: Oldest glibc, as a range.
        cuda: The CUDA that the driver has to offer.
        branches: Branches of the driver (`R550`), joined by commas.
        floor: Oldest driver that runs the CUDA and the cards.
        codes: GPU code of each framework: `NAME: sm_80 sm_90`, joined by `; `.
        capabilities: Compute capabilities of the cards, joined by commas.
        cpu: Oldest CPU (`x86_64_v3`), or the platform's processor.
        platform: conda subdir.
        memory: Most memory (bytes) that one of its services may take.
        cards: Compute capability by the PCI device id of every card that is known: `2330=9.0`,
            joined by spaces; what its code runs on follows from it and `codes`.
        disk: The least room (bytes) that its files take: its archives, which no file system packs
            tighter.
    """

    driver: Need
    gpus: Need
    glibc: Need
    cuda: Need
    branches: Need = UNKNOWN
    floor: Need = UNKNOWN
    codes: Need = UNKNOWN
    capabilities: Need = UNKNOWN
    cpu: Need = UNKNOWN
    platform: Need = UNKNOWN
    memory: Need = UNKNOWN
    cards: Need = UNKNOWN
    disk: Need = UNKNOWN
