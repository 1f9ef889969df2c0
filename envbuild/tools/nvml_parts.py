"""What a card is asked with several calls: fields, links, fabric, instances.

Loaded in the worker alone.
"""

import ctypes
from collections.abc import Iterator
from typing import Any

import pynvml

from envbuild.tools.nvml_asking import LATER, Asking, Call, Cell, failure, mig_devices, refused

Handle = Any

_ABSENT = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT})
_FIELDS = {
    pynvml.NVML_FI_DEV_MEMORY_TEMP: "temperature.memory_c",
    pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT: "temperature.shutdown_margin_c",
    pynvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: "temperature.slowdown_margin_c",
    pynvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT: "temperature.gpu_max_margin_c",
    pynvml.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT: "temperature.memory_max_margin_c",
    pynvml.NVML_FI_DEV_POWER_INSTANT: "power.instant_mw",
}
_LINK_FIELDS = {
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY: "replays",
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY: "recoveries",
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC: "crc_errors",
}
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t
_FABRIC = {
    "state": "state",
    "status": "status",
    "clique": "cliqueId",
    "faults": "healthMask",
}
_DEVICE = {
    "uuid": "nvmlDeviceGetUUID",
    "name": "nvmlDeviceGetName",
    "gpu_instance": "nvmlDeviceGetGpuInstanceId",
    "compute_instance": "nvmlDeviceGetComputeInstanceId",
}
_ATTRIBUTES = {"memory_mib": "memorySizeMB", "multiprocessors": "multiprocessorCount"}


def ask_fields(ask: Asking, gpu: Handle) -> None:
    """Ask for what only field values have."""
    ask.path = "temperature.memory_c"
    cells = _field_values(ask, gpu, [(number, 0) for number in _FIELDS])
    for path, said in zip(_FIELDS.values(), cells, strict=True):
        ask.say(path, said)


def ask_nvlinks(ask: Asking, gpu: Handle) -> None:
    """Ask for every NVLink's state and errors."""
    ask.path = "nvlinks"
    (count,) = _field_values(ask, gpu, [(pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)])
    if "error" in count:
        ask.say("nvlinks", count)
        return
    links = range(min(count["value"], pynvml.NVML_NVLINK_MAX_LINKS))
    wanted = [(number, link) for link in links for number in _LINK_FIELDS]
    errors = iter(_field_values(ask, gpu, wanted) if wanted else ())
    said = [
        {
            "link": link,
            "active": ask.cell("nvmlDeviceGetNvLinkState", gpu, link),
            "remote": ask.cell("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, link),
            **{name: next(errors) for name in _LINK_FIELDS.values()},
        }
        for link in links
    ]
    ask.say("nvlinks", {"value": said})


def ask_fabric(ask: Asking, gpu: Handle) -> None:
    """Ask for the card's place among NVSwitches, in the latest form that the driver knows."""
    ask.path = "fabric.state"
    said: Cell = {}
    for name, info in (
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v3_t()),
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v2_t()),
        ("nvmlDeviceGetGpuFabricInfo", pynvml.c_nvmlGpuFabricInfo_t()),
    ):
        said = ask.cell(name, gpu, ctypes.byref(info))
        if "value" in said:
            missing = refused(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, f"{name}V")
            for path, member in _FABRIC.items():
                value = getattr(info, member, None)
                ask.say(f"fabric.{path}", missing if value is None else {"value": value})
            ask.say("fabric.cluster", {"value": bytes(info.clusterUuid).hex()})
            return
        if said["error"] not in LATER:
            break
    for path in (*_FABRIC, "cluster"):
        ask.say(f"fabric.{path}", said)


def ask_mig(ask: Asking, gpu: Handle, mode: Cell) -> None:
    """Ask for instances and devices where multi-instance mode is on."""
    ask.path = "mig.most_devices"
    most = ask.cell("nvmlDeviceGetMaxMigDeviceCount", gpu)
    ask.say("mig.most_devices", most)
    if not mode.get("value"):
        none = mode if "error" in mode else {"value": []}
        ask.say("mig.instances", none)
        ask.say("mig.devices", none)
        return
    ask.path = "mig.instances"
    ask.say("mig.instances", _listed(_gpu_instances(ask, gpu)))
    ask.path = "mig.devices"
    ask.say("mig.devices", _listed(_mig_devices(ask, gpu, most.get("value", 0))))


def _field_values(ask: Asking, gpu: Handle, wanted: list[tuple[int, int]]) -> list[Cell]:
    """Return a cell for each (field, link)."""
    found = ask.cell("nvmlDeviceGetFieldValues", gpu, wanted)
    if "error" in found:
        return [found] * len(wanted)
    return [_field_value(said) for said in found["value"]]


def _field_value(said: Any) -> Cell:  # noqa: ANN401
    call = f"nvmlDeviceGetFieldValues, field {said.fieldId}"
    if said.nvmlReturn in _ABSENT:  # a driver does not know the fields of later ones
        return refused(pynvml.NVML_ERROR_NOT_SUPPORTED, call)
    if said.nvmlReturn != pynvml.NVML_SUCCESS:
        return refused(said.nvmlReturn, call)
    if said.valueType >= len(_MEMBERS):
        return {"error": None, "text": f"unknown type of value {said.valueType}", "call": call}
    return {"value": getattr(said.value, _MEMBERS[said.valueType])}


def _listed(parts: Iterator[dict[str, Any]]) -> Cell:
    try:
        return {"value": list(parts)}
    except Exception as error:  # noqa: BLE001 - as for one call
        return failure(error)


def _gpu_instances(ask: Asking, gpu: Handle) -> Iterator[dict[str, Any]]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        profile = _profile(ask, ("nvmlDeviceGetGpuInstanceProfileInfo", gpu, number))
        if profile is None:
            continue
        handles = (pynvml.c_nvmlGpuInstance_t * profile.instanceCount)()
        count = ctypes.c_uint(profile.instanceCount)
        ask("nvmlDeviceGetGpuInstances", gpu, profile.id, handles, ctypes.byref(count))
        for handle in handles[: count.value]:
            said = _instance(ask("nvmlGpuInstanceGetInfo", handle), profile)
            yield said | {"compute": _listed(_compute_instances(ask, handle))}


def _compute_instances(ask: Asking, instance: Handle) -> Iterator[dict[str, Any]]:
    name = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        profile = _profile(ask, (name, instance, number, shared))
        if profile is None:
            continue
        handles = (pynvml.c_nvmlComputeInstance_t * profile.instanceCount)()
        count = ctypes.c_uint(profile.instanceCount)
        listing = "nvmlGpuInstanceGetComputeInstances"
        ask(listing, instance, profile.id, handles, ctypes.byref(count))
        for handle in handles[: count.value]:
            yield _instance(ask("nvmlComputeInstanceGetInfo_v2", handle), profile)


def _profile(ask: Asking, call: Call) -> Any:  # noqa: ANN401
    """Return a profile, without its name from an older driver; None where there is none."""
    try:
        return ask.first((*call, 2), (*call, 1))
    except pynvml.NVMLError as error:
        if error.value in _ABSENT:
            return None
        raise


def _instance(info: Any, profile: Any) -> dict[str, Any]:  # noqa: ANN401
    missing = refused(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "…ProfileInfoV")
    return {
        "id": info.id,
        "profile_id": info.profileId,
        "profile": {"value": profile.name} if hasattr(profile, "name") else missing,
        "placement": {"start": info.placement.start, "size": info.placement.size},
    }


def _mig_devices(ask: Asking, gpu: Handle, count: int) -> Iterator[dict[str, Any]]:
    for index, device in mig_devices(ask, gpu, count):
        said = {key: ask.cell(name, device) for key, name in _DEVICE.items()}
        found = ask.cell("nvmlDeviceGetAttributes_v2", device)
        for key, member in _ATTRIBUTES.items():
            said[key] = {"value": getattr(found["value"], member)} if "value" in found else found
        yield {"index": index, **said}
