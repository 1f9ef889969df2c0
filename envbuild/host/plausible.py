"""What NVML says, as words and true numbers; what cannot be true is refused with its reason.

A driver in trouble answers with all bits set or with what was never filled in, and no error. Bounds
are wide: they part what no card can be from what one may be.
"""

import functools
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Check = Callable[[Any], Any]


class Impossible(ValueError):
    """A value that cannot be; the message says why."""


def judged(path: str, value: Any) -> Any:  # noqa: ANN401 - one per field
    """Return the value of a field of `Gpu` as the field has it.

    Raises:
        Impossible: It cannot be true.
    """
    check = _CHECKS.get(path)
    return value if check is None else check(value)


def _within(value: Any, *, low: int, high: int, what: str) -> int:  # noqa: ANN401
    if not isinstance(value, int) or not low <= value <= high:
        message = f"{value} is no {what} ({low} to {high})"
        raise Impossible(message)
    return value


def _between(low: int, high: int, what: str) -> Check:
    return functools.partial(_within, low=low, high=high, what=what)


def _one_of(value: int, *, words: Mapping[int, Any], what: str) -> Any:  # noqa: ANN401
    if value not in words:
        message = f"{value} is no {what} that is known"
        raise Impossible(message)
    return words[value]


def _words(what: str, words: Mapping[int, Any]) -> Check:
    return functools.partial(_one_of, words=words, what=what)


def _flag(value: int) -> bool:
    if value not in (0, 1):
        message = f"{value} is neither yes nor no"
        raise Impossible(message)
    return value == 1


def _cuda(value: int) -> str:
    """Return 12040 as 12.4 (nvml.h: 1000 times the major and ten times the minor version)."""
    number = _within(value, low=1000, high=999_990, what="version of CUDA")
    return f"{number // 1000}.{number % 1000 // 10}"


def _capability(value: Sequence[int]) -> str:
    major, minor = value
    _within(major, low=1, high=99, what="compute capability")
    return f"{major}.{_within(minor, low=0, high=9, what='compute capability')}"


def _pci_address(value: str) -> str:
    """Return `00000000:1B:00.0` as sysfs has it: the domain in four digits, letters small."""
    domain, _, rest = value.partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest.lower()}"
    except ValueError:
        message = f"{value!r} is no PCI address"
        raise Impossible(message) from None


def _uuid(value: str) -> str:
    return str(uuid.UUID(value))


def _status(value: int) -> str:
    return f"error {value}" if value else "success"


def _reasons(mask: int) -> tuple[str, ...]:
    """Return what a mask of clock event reasons says; a bit that came later is a number."""
    _within(mask, low=0, high=2**32 - 1, what="mask of reasons")
    bits = [1 << n for n in range(mask.bit_length()) if mask >> n & 1]
    return tuple(_REASONS.get(bit, f"reason-{bit:#x}") for bit in bits)


def _faults(mask: int) -> tuple[str, ...]:
    """Return the faults in a health mask: two bits a fault, 1 is yes, 2 is no (nvml.h)."""
    found = [word for shift, word in _FAULTS.items() if mask >> shift & 3 == 1]
    configuration = mask >> 8 & 0xF
    if configuration > 1:
        found.append(_CONFIGURATION.get(configuration, f"configuration-{configuration}"))
    return tuple(found)


def _spare(value: Mapping[str, int]) -> dict[str, int]:
    return {key: _COUNT_32(number) for key, number in value.items()}


# nvml.h, nvmlClocksEventReasons
_REASONS = {
    0x1: "gpu-idle",
    0x2: "applications-clocks",
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal-slowdown",
    0x40: "hw-thermal-slowdown",
    0x80: "hw-power-brake",
    0x100: "display-clocks",
}
# nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*
_FAULTS = {
    0: "degraded-bandwidth",
    2: "route-recovery",
    4: "route-unhealthy",
    6: "access-timeout-recovery",
}
_CONFIGURATION = {
    2: "wrong-system-guid",
    3: "wrong-chassis-serial",
    4: "no-partition",
    5: "too-few-nvlinks",
    6: "incompatible-firmware",
    7: "invalid-location",
    8: "invalid-gpu-state",
}
# Counters of 32 and 64 bits; all bits set is "not available" (nvml.h, NVML_VALUE_NOT_AVAILABLE).
_COUNT_32 = _between(0, 2**32 - 2, "count")
_COUNT_64 = _between(0, 2**63 - 1, "count")
_BYTES = _between(0, 2**46, "amount of memory in bytes")  # 64 TiB: hundred times what cards have
_MIB = _between(1, 2**26, "amount of memory in MiB")
# A card that runs is warmer than 0: 0 and -1 are what was never filled in. It ends itself near 100.
_DEGREES = _between(1, 150, "temperature")
_LIMIT = _between(1, 150, "limit of temperature")
_MARGIN = _between(-150, 150, "margin of temperature")
_MILLIWATT = _between(0, 20_000_000, "power in mW")  # 20 kW: ten times what one card takes
_LIMIT_MILLIWATT = _between(1, 20_000_000, "limit of power in mW")
_MEGAHERTZ = _between(0, 100_000, "clock in MHz")
_PERCENT = _between(0, 100, "percentage")
_GENERATION = _between(1, 8, "generation of PCIe")  # PCI-SIG: 7.0 came out in 2025
_WIDTH = _words("width of a PCIe link", {n: n for n in (1, 2, 4, 8, 12, 16, 32)})
_INSTANCE = _between(0, 2**16, "number of an instance")

_CHECKS: dict[str, Check] = {
    "cuda": _cuda,
    "pci_address": _pci_address,
    "minor": _between(0, 2**20 - 1, "minor number"),  # Linux, MINORBITS
    "compute_capability": _capability,
    "memory.total_bytes": _BYTES,
    "memory.used_bytes": _BYTES,
    "memory.free_bytes": _BYTES,
    "memory.reserved_bytes": _BYTES,
    "mig.current": _flag,
    "mig.pending": _flag,
    "mig.most_devices": _INSTANCE,
    "mig.devices.gpu_instance": _INSTANCE,
    "mig.devices.compute_instance": _INSTANCE,
    "mig.devices.memory_mib": _MIB,
    "mig.devices.multiprocessors": _between(1, 10_000, "number of multiprocessors"),
    "persistence": _flag,
    "compute_mode": _words(
        "compute mode",
        {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"},
    ),
    "ecc.current": _flag,
    "ecc.pending": _flag,
    "ecc.corrected_volatile": _COUNT_64,
    "ecc.corrected_aggregate": _COUNT_64,
    "ecc.uncorrected_volatile": _COUNT_64,
    "ecc.uncorrected_aggregate": _COUNT_64,
    "remapped_rows.corrected": _COUNT_32,
    "remapped_rows.uncorrected": _COUNT_32,
    "remapped_rows.pending": _flag,
    "remapped_rows.failed": _flag,
    "remapped_rows.spare": _spare,
    "retired_pages.pending": _flag,
    "pcie.generation": _GENERATION,
    "pcie.width": _WIDTH,
    "pcie.max_generation": _GENERATION,
    "pcie.max_width": _WIDTH,
    "pcie.card_max_generation": _GENERATION,
    "pcie.replays": _COUNT_32,
    "nvlinks.active": _flag,
    "nvlinks.remote": _words(
        "kind of device", {0: "gpu", 1: "ibm-npu", 2: "switch", 255: "unknown"}
    ),
    "nvlinks.replays": _COUNT_64,
    "nvlinks.recoveries": _COUNT_64,
    "nvlinks.crc_errors": _COUNT_64,
    "fabric.state": _words(
        "state of a fabric",
        {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"},
    ),
    "fabric.status": _status,
    "fabric.cluster": _uuid,
    "fabric.faults": _faults,
    "temperature.gpu_c": _DEGREES,
    "temperature.memory_c": _DEGREES,
    "temperature.slowdown_c": _LIMIT,
    "temperature.shutdown_c": _LIMIT,
    "temperature.gpu_max_c": _LIMIT,
    "temperature.memory_max_c": _LIMIT,
    "temperature.margin_c": _MARGIN,
    "temperature.slowdown_margin_c": _MARGIN,
    "temperature.shutdown_margin_c": _MARGIN,
    "temperature.gpu_max_margin_c": _MARGIN,
    "temperature.memory_max_margin_c": _MARGIN,
    "power.usage_mw": _MILLIWATT,
    "power.instant_mw": _MILLIWATT,
    "power.limit_mw": _LIMIT_MILLIWATT,
    "power.enforced_mw": _LIMIT_MILLIWATT,
    "power.default_mw": _LIMIT_MILLIWATT,
    "power.min_mw": _LIMIT_MILLIWATT,
    "power.max_mw": _LIMIT_MILLIWATT,
    "clocks.sm_mhz": _MEGAHERTZ,
    "clocks.memory_mhz": _MEGAHERTZ,
    "clocks.max_sm_mhz": _MEGAHERTZ,
    "clocks.max_memory_mhz": _MEGAHERTZ,
    "clocks.reasons": _reasons,
    "utilization.gpu_percent": _PERCENT,
    "utilization.memory_percent": _PERCENT,
    "firmware.gsp_enabled": _flag,
    "firmware.gsp_default": _flag,
    "processes.compute.memory_bytes": _BYTES,
    "processes.graphics.memory_bytes": _BYTES,
    "processes.mps.memory_bytes": _BYTES,
}
