"""The process that reads how cards can be cut, and cuts them; see `nvml_asking` for its lines.

Without steps every card is read. A step is one of

- `{"do": "mig", "card": uuid, "on": true}`
- `{"do": "make", "card": uuid, "profile": number, "start": slice, "size": slices}`
- `{"do": "drop", "card": uuid, "instance": number}`

and is answered at `step`; the first that fails is the last that is done. With `traffic` it is read
how much the cards it names send and receive, in the mean of some samples.
"""

import ctypes
import time
from collections.abc import Iterator
from typing import Any

import pynvml

from envbuild.tools.nvml_asking import Asking, Cell, failure, mig_devices, serve
from envbuild.tools.nvml_worker import load

Handle = Any

_ABSENT = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT})
_SAMPLES = 20
_EVERY_S = 0.05
_KIB = 1024  # NVML counts KB
_SHARED = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED


def answer(request: dict[str, Any]) -> None:
    """Do the steps, or read every card, and write the answers."""
    ask = Asking(request["descriptor"])
    ask.path = "init"
    ask.announce("dlopen")
    begun = load(request["libraries"]) or ask.cell("nvmlInit")
    ask.say("init", begun)
    if "error" not in begun:
        steps = request.get("steps")
        if "traffic" in request:
            _traffic(ask, request["traffic"])
        elif steps is None:
            _look(ask)
        else:
            _take(ask, steps)
    ask.end()


def _look(ask: Asking) -> None:
    ask.path = "count"
    count = ask.cell("nvmlDeviceGetCount")
    ask.say("count", count)
    for number in range(count.get("value", 0)):
        ask.card = number
        ask.path = "card"
        try:
            said: Cell = {"value": _card(ask, ask("nvmlDeviceGetHandleByIndex", number))}
        except Exception as error:  # noqa: BLE001 - a card that is lost leaves the others
            said = failure(error)
        ask.say("card", said)


def _card(ask: Asking, gpu: Handle) -> dict[str, Any]:
    mode = ask.cell("nvmlDeviceGetMigMode", gpu)
    running = [
        (each.pid, each.gpuInstanceId)
        for kind in ("Compute", "Graphics", "MPSCompute")
        for each in ask(f"nvmlDeviceGet{kind}RunningProcesses_v3", gpu)
    ]
    on = bool(mode.get("value", (0,))[0])
    return {
        "name": ask("nvmlDeviceGetName", gpu),
        "uuid": ask("nvmlDeviceGetUUID", gpu),
        "address": ask("nvmlDeviceGetPciInfo_v3", gpu).busId,
        "minor": ask("nvmlDeviceGetMinorNumber", gpu),
        "memory_bytes": ask("nvmlDeviceGetMemoryInfo", gpu).total,
        "mig": on if "value" in mode else None,
        "pids": running,
        "profiles": list(_profiles(ask, gpu)) if "value" in mode else [],
        "instances": list(_instances(ask, gpu)) if on else [],
    }


def _profiles(ask: Asking, gpu: Handle) -> Iterator[dict[str, Any]]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = ask("nvmlDeviceGetGpuInstanceProfileInfo", gpu, number, 2)
            count = ctypes.c_uint(0)
            name = "nvmlDeviceGetGpuInstancePossiblePlacements"
            ask(name, gpu, info.id, None, ctypes.byref(count))
            places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
            ask(name, gpu, info.id, places, ctypes.byref(count))
        except pynvml.NVMLError as error:
            if error.value in _ABSENT:
                continue
            raise
        yield {
            "id": info.id,
            "name": info.name.decode() if isinstance(info.name, bytes) else info.name,
            "compute": info.sliceCount,
            "memory_mib": info.memorySizeMB,
            "size": places[0].size if count.value else 0,
            "starts": [place.start for place in places[: count.value]],
        }


def _instances(ask: Asking, gpu: Handle) -> Iterator[dict[str, Any]]:
    devices = _devices(ask, gpu)
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            profile = ask("nvmlDeviceGetGpuInstanceProfileInfo", gpu, number, 2)
        except pynvml.NVMLError as error:
            if error.value in _ABSENT:
                continue
            raise
        handles = (pynvml.c_nvmlGpuInstance_t * profile.instanceCount)()
        count = ctypes.c_uint(profile.instanceCount)
        ask("nvmlDeviceGetGpuInstances", gpu, profile.id, handles, ctypes.byref(count))
        for handle in handles[: count.value]:
            info = ask("nvmlGpuInstanceGetInfo", handle)
            yield {
                "id": info.id,
                "profile": info.profileId,
                "start": info.placement.start,
                "size": info.placement.size,
                "devices": [one for one in devices if one["gpu_instance"] == info.id],
            }


def _devices(ask: Asking, gpu: Handle) -> list[dict[str, Any]]:
    found = []
    most = ask("nvmlDeviceGetMaxMigDeviceCount", gpu)
    for _, device in mig_devices(ask, gpu, most):
        found.append(
            {
                "uuid": ask("nvmlDeviceGetUUID", device),
                "gpu_instance": ask("nvmlDeviceGetGpuInstanceId", device),
                "compute_instance": ask("nvmlDeviceGetComputeInstanceId", device),
            }
        )
    return found


def _traffic(ask: Asking, uuids: list[str]) -> None:
    """Say the traffic of cards in bytes per second; NVML looks at 20 ms for each answer."""
    for number, uuid in enumerate(uuids):
        ask.card = number
        ask.path = "traffic"
        sums = 0
        try:
            gpu = ask("nvmlDeviceGetHandleByUUID", uuid.encode())
            for _ in range(_SAMPLES):
                for counter in (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES):
                    sums += ask("nvmlDeviceGetPcieThroughput", gpu, counter)
                time.sleep(_EVERY_S)
            said: Cell = {"value": sums * _KIB // _SAMPLES}
        except Exception as error:  # noqa: BLE001 - a card that is lost leaves the others
            said = failure(error)
        ask.say("traffic", said)


def _take(ask: Asking, steps: list[dict[str, Any]]) -> None:
    do = {"mig": _mig, "make": _make, "drop": _drop}
    for number, step in enumerate(steps):
        ask.card = number
        ask.path = "step"
        try:
            gpu = ask("nvmlDeviceGetHandleByUUID", step["card"].encode())
            said: Cell = {"value": do[step["do"]](ask, gpu, step)}
        except Exception as error:  # noqa: BLE001 - told as the step's answer
            said = failure(error)
        ask.say("step", said)
        if "error" in said:
            return


def _mig(ask: Asking, gpu: Handle, step: dict[str, Any]) -> None:
    """Turn MIG mode on or off; where the card would have to be reset, it is left as it was."""
    before, _ = ask("nvmlDeviceGetMigMode", gpu)
    status = ask("nvmlDeviceSetMigMode", gpu, int(step["on"]))
    if status:
        ask("nvmlDeviceSetMigMode", gpu, before)
        error = pynvml.NVMLError(status)
        error.function = "nvmlDeviceSetMigMode"
        raise error


def _make(ask: Asking, gpu: Handle, step: dict[str, Any]) -> dict[str, Any]:
    """Make an instance at its place, or go on with the one that is there, and one device in it."""
    instance = _at(ask, gpu, step)
    if instance is None:
        place = pynvml.c_nvmlGpuInstancePlacement_t(start=step["start"], size=step["size"])
        name = "nvmlDeviceCreateGpuInstanceWithPlacement"
        instance = ask(name, gpu, step["profile"], ctypes.byref(place))
    number = ask("nvmlGpuInstanceGetInfo", instance).id
    there = [one for one in _devices(ask, gpu) if one["gpu_instance"] == number]
    if not there:
        ask("nvmlGpuInstanceCreateComputeInstance", instance, _whole(ask, instance))
        there = [one for one in _devices(ask, gpu) if one["gpu_instance"] == number]
    return {"instance": number, **there[0]}


def _at(ask: Asking, gpu: Handle, step: dict[str, Any]) -> Handle | None:
    """Return the instance of a step's profile at its place, None where there is none."""
    for one in _instances(ask, gpu):
        if (one["profile"], one["start"]) == (step["profile"], step["start"]):
            return ask("nvmlDeviceGetGpuInstanceById", gpu, one["id"])
    return None


def _whole(ask: Asking, instance: Handle) -> int:
    """Return the profile of the compute instance that takes the whole of a GPU instance."""
    found = {}
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        name = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
        try:
            profile = ask(name, instance, number, _SHARED)
        except pynvml.NVMLError as error:
            if error.value in _ABSENT:
                continue
            raise
        found[profile.sliceCount] = profile.id
    return int(found[max(found)])


def _drop(ask: Asking, gpu: Handle, step: dict[str, Any]) -> None:
    """Take an instance apart, from the inside out."""
    instance = ask("nvmlDeviceGetGpuInstanceById", gpu, step["instance"])
    for one in _devices(ask, gpu):
        if one["gpu_instance"] == step["instance"]:
            name = "nvmlGpuInstanceGetComputeInstanceById"
            ask("nvmlComputeInstanceDestroy", ask(name, instance, one["compute_instance"]))
    ask("nvmlGpuInstanceDestroy", instance)


if __name__ == "__main__":
    serve(answer)
