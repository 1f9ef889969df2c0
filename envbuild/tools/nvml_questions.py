"""What a card is asked with one call each. Loaded in the worker alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pynvml

from envbuild.tools.nvml_asking import Call, Cell, refused

_NO_INSTANCE = 0xFFFFFFFF  # nvml.h, nvmlProcessInfo_t: not in a MIG instance


class Question(NamedTuple):
    """One call, and the fields that it answers.

    Attributes:
        paths: The fields, in the order of what `take` returns.
        calls: The call without its handle, then the older forms of it.
        take: From what the call returned to a cell for each field.
    """

    paths: tuple[str, ...]
    calls: tuple[Call, ...]
    take: Callable[[Any], tuple[Cell, ...]]


def _one(path: str, *calls: str | Call) -> Question:
    whole = tuple((call,) if isinstance(call, str) else call for call in calls)
    return Question((path,), whole, lambda said: _values([said]))


def _several(group: str, names: str, *calls: str | Call) -> Question:
    """Return a question whose call returns a sequence, one of each name."""
    paths = tuple(f"{group}.{name}" for name in names.split())
    return Question(paths, _one("", *calls).calls, _values)


def _values(said: Any) -> tuple[Cell, ...]:  # noqa: ANN401
    return tuple({"value": v.decode() if isinstance(v, bytes) else v} for v in said)


def _counted(path: str, call: Call) -> Question:
    return Question((path,), (call,), lambda said: _values([len(said)]))


def _members(group: str, names: str, call: str, *members: str) -> Question:
    """Return a question whose call returns a structure with these members."""
    paths = tuple(f"{group}.{name}" for name in names.split())
    return Question(paths, ((call,),), lambda said: _values(getattr(said, m) for m in members))


def _memory(said: Any) -> tuple[Cell, ...]:  # noqa: ANN401
    """Return the memory's fields; the older form does not say what is reserved."""
    missing = refused(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "nvmlDeviceGetMemoryInfo_v2")
    reserved = {"value": said.reserved} if hasattr(said, "reserved") else missing
    return (*_values((said.total, said.used, said.free)), reserved)


def _processes(kind: str, name: str) -> Question:
    calls = tuple((f"nvmlDeviceGet{name}RunningProcesses_v{n}",) for n in (3, 2))
    path = f"processes.{kind}"
    return Question((path,), calls, lambda said: _values([[_process(each) for each in said]]))


def _process(each: Any) -> dict[str, Any]:  # noqa: ANN401
    unknown = refused(pynvml.NVML_ERROR_NOT_SUPPORTED, "usedGpuMemory")
    held = each.usedGpuMemory
    numbers = (each.gpuInstanceId, each.computeInstanceId)
    instance, compute = (None if number == _NO_INSTANCE else number for number in numbers)
    return {
        "pid": each.pid,
        "memory_bytes": unknown if held is None else {"value": held},
        "gpu_instance": instance,
        "compute_instance": compute,
    }


_SM, _MEM = pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM
_GPU = pynvml.NVML_TEMPERATURE_GPU
_CORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
_UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
_VOLATILE, _AGGREGATE = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
_ECC = "nvmlDeviceGetTotalEccErrors"
_RETIRED = "nvmlDeviceGetRetiredPages"
_LIMIT = "nvmlDeviceGetTemperatureThreshold"

QUESTIONS = (
    _one("name", "nvmlDeviceGetName"),
    _one("uuid", "nvmlDeviceGetUUID"),
    Question(("pci_address",), (("nvmlDeviceGetPciInfo_v3",),), lambda said: _values([said.busId])),
    _one("minor", "nvmlDeviceGetMinorNumber"),
    _one("compute_capability", "nvmlDeviceGetCudaComputeCapability"),
    Question(
        ("memory.total_bytes", "memory.used_bytes", "memory.free_bytes", "memory.reserved_bytes"),
        (("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2), ("nvmlDeviceGetMemoryInfo",)),
        _memory,
    ),
    _several("mig", "current pending", "nvmlDeviceGetMigMode"),
    _one("persistence", "nvmlDeviceGetPersistenceMode"),
    _one("compute_mode", "nvmlDeviceGetComputeMode"),
    _several("ecc", "current pending", "nvmlDeviceGetEccMode"),
    _one("ecc.corrected_volatile", (_ECC, _CORRECTED, _VOLATILE)),
    _one("ecc.corrected_aggregate", (_ECC, _CORRECTED, _AGGREGATE)),
    _one("ecc.uncorrected_volatile", (_ECC, _UNCORRECTED, _VOLATILE)),
    _one("ecc.uncorrected_aggregate", (_ECC, _UNCORRECTED, _AGGREGATE)),
    _several("remapped_rows", "corrected uncorrected pending failed", "nvmlDeviceGetRemappedRows"),
    Question(
        ("remapped_rows.spare",),
        (("nvmlDeviceGetRowRemapperHistogram",),),
        lambda said: _values([{name: getattr(said, name) for name, _ in said._fields_}]),
    ),
    _counted(
        "retired_pages.single_bit",
        (_RETIRED, pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS),
    ),
    _counted(
        "retired_pages.double_bit",
        (_RETIRED, pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR),
    ),
    _one("retired_pages.pending", "nvmlDeviceGetRetiredPagesPendingStatus"),
    _one("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one("pcie.max_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie.max_width", "nvmlDeviceGetMaxPcieLinkWidth"),
    _one("pcie.card_max_generation", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    _one("pcie.replays", "nvmlDeviceGetPcieReplayCounter"),
    _one(
        "temperature.gpu_c",
        ("nvmlDeviceGetTemperatureV", _GPU),
        ("nvmlDeviceGetTemperature", _GPU),
    ),
    _one("temperature.shutdown_c", (_LIMIT, pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)),
    _one("temperature.slowdown_c", (_LIMIT, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)),
    _one("temperature.gpu_max_c", (_LIMIT, pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX)),
    _one("temperature.memory_max_c", (_LIMIT, pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX)),
    _one("temperature.margin_c", "nvmlDeviceGetMarginTemperature"),
    _one("power.usage_mw", "nvmlDeviceGetPowerUsage"),
    _one("power.limit_mw", "nvmlDeviceGetPowerManagementLimit"),
    _one("power.enforced_mw", "nvmlDeviceGetEnforcedPowerLimit"),
    _one("power.default_mw", "nvmlDeviceGetPowerManagementDefaultLimit"),
    _several("power", "min_mw max_mw", "nvmlDeviceGetPowerManagementLimitConstraints"),
    _one("clocks.sm_mhz", ("nvmlDeviceGetClockInfo", _SM)),
    _one("clocks.memory_mhz", ("nvmlDeviceGetClockInfo", _MEM)),
    _one("clocks.max_sm_mhz", ("nvmlDeviceGetMaxClockInfo", _SM)),
    _one("clocks.max_memory_mhz", ("nvmlDeviceGetMaxClockInfo", _MEM)),
    _one(
        "clocks.reasons",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ),
    _members(
        "utilization",
        "gpu_percent memory_percent",
        "nvmlDeviceGetUtilizationRates",
        "gpu",
        "memory",
    ),
    _one("firmware.vbios", "nvmlDeviceGetVbiosVersion"),
    _one("firmware.gsp", "nvmlDeviceGetGspFirmwareVersion"),
    _several("firmware", "gsp_enabled gsp_default", "nvmlDeviceGetGspFirmwareMode"),
    _processes("compute", "Compute"),
    _processes("graphics", "Graphics"),
    _processes("mps", "MPSCompute"),
)
