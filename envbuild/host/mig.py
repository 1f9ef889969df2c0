"""A card in parts: GPU instances, compute instances, and the devices that programs see."""

from dataclasses import dataclass

from envbuild.host.readings import NOT_ASKED, Reading


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where in a card or an instance something lies, in slices.

    Attributes:
        start: Its first slice.
        size: How many.
    """

    start: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ComputeInstance:
    """A part of a GPU instance's compute slices.

    Attributes:
        id: Its number in the GPU instance.
        profile_id: The number of its profile.
        profile: The profile's name, such as `1c.3g.40gb`.
        placement: In compute slices of the GPU instance.
    """

    id: int
    profile_id: int
    profile: Reading[str] = NOT_ASKED
    placement: Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuInstance:
    """A part of a card in MIG mode; the driver shows these to root.

    Attributes:
        id: Its number on the card.
        profile_id: The number of its profile.
        profile: The profile's name, such as `3g.40gb`.
        placement: In memory slices of the card.
        compute: Its compute instances.
    """

    id: int
    profile_id: int
    profile: Reading[str] = NOT_ASKED
    placement: Placement
    compute: Reading[tuple[ComputeInstance, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class MigDevice:
    """A compute instance as programs see it: with a UUID for CUDA_VISIBLE_DEVICES.

    Attributes:
        index: Its number on the card.
        uuid: `MIG-…`.
        name: The card's name and the profile.
        gpu_instance: The GPU instance's number.
        compute_instance: The compute instance's number in it.
        memory_mib: Memory of its GPU instance.
        multiprocessors: SMs.
    """

    index: int
    uuid: Reading[str] = NOT_ASKED
    name: Reading[str] = NOT_ASKED
    gpu_instance: Reading[int] = NOT_ASKED
    compute_instance: Reading[int] = NOT_ASKED
    memory_mib: Reading[int] = NOT_ASKED
    multiprocessors: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Mig:
    """Multi-instance mode and what is made.

    Attributes:
        current: Whether it is on.
        pending: Whether it will be after the next reset.
        most_devices: How many devices the card takes at most.
        instances: GPU instances.
        devices: MIG devices.
    """

    current: Reading[bool] = NOT_ASKED
    pending: Reading[bool] = NOT_ASKED
    most_devices: Reading[int] = NOT_ASKED
    instances: Reading[tuple[GpuInstance, ...]] = NOT_ASKED
    devices: Reading[tuple[MigDevice, ...]] = NOT_ASKED
