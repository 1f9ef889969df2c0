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
        value: The need as text (a version range, a floor, a name), None if unknown.
        origin: `recipe` or `file`: where it was read; None if unknown.
    """

    value: str | None
    origin: Literal["recipe", "file"] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a host must have before the environment may run on it (`needs.json`)."""

    driver: Need
    gpus: Need
    glibc: Need
    cuda: Need
