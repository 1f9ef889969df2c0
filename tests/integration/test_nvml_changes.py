"""What the simulator does when cards are changed, as nvidia-ml-py asks it to."""

import subprocess
import sys
from pathlib import Path

import pytest
from nvmlsim.simulator import LIBRARY, place

from envbuild.host.gpus import read_nvml
from envbuild.host.mig import Placement
from envbuild.host.model import Gpu
from envbuild.host.readings import Value

_HEAD = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
def refused(call, *arguments):
    try:
        call(*arguments)
    except n.NVMLError as error:
        return type(error).__name__
"""


def _change(root: Path, code: str) -> str:
    argv = [sys.executable, "-c", _HEAD + code, str(root / "usr/lib64" / LIBRARY)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _read(root: Path) -> Gpu:
    (gpu,) = read_nvml(root).gpus
    return gpu


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return place(tmp_path, "h100x8-idle", "system.gpus = 1")


def test_a_power_limit_is_kept_and_is_within_its_bounds(root: Path) -> None:
    said = _change(
        root,
        "n.nvmlDeviceSetPowerManagementLimit(gpu, 400000)\n"
        "print(refused(n.nvmlDeviceSetPowerManagementLimit, gpu, 900000))",
    )
    assert said == "NVMLError_InvalidArgument\n"
    power = _read(root).power
    assert (power.limit_mw, power.enforced_mw) == (Value(400000), Value(400000))


def test_a_compute_mode_is_kept(root: Path) -> None:
    _change(root, "n.nvmlDeviceSetComputeMode(gpu, n.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)")
    assert _read(root).compute_mode == Value("exclusive-process")


def test_what_one_process_changes_another_sees(root: Path) -> None:
    again = (
        "import subprocess\n"
        "before = n.nvmlDeviceGetPowerManagementLimit(gpu)\n"
        "subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]], check=True)\n"
        "print(before, n.nvmlDeviceGetPowerManagementLimit(gpu))"
    )
    other = _HEAD + "n.nvmlDeviceSetPowerManagementLimit(gpu, 300000)"
    argv = [sys.executable, "-c", _HEAD + again, str(root / "usr/lib64" / LIBRARY), other]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert ended.stdout == "700000 300000\n"


def test_instances_are_made_where_there_is_room(root: Path) -> None:
    said = _change(
        root,
        "print(refused(n.nvmlDeviceCreateGpuInstance, gpu, 9))\n"
        "print(n.nvmlDeviceSetMigMode(gpu, 1), n.nvmlDeviceGetMigMode(gpu))\n"
        "print(n.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 9))\n"
        "where = n.c_nvmlGpuInstancePlacement_t(start=4, size=4)\n"
        "half = n.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, ctypes.byref(where))\n"
        "n.nvmlGpuInstanceCreateComputeInstance(half, 1)\n"
        "print(refused(n.nvmlGpuInstanceCreateComputeInstance, half, 1))\n"
        "n.nvmlDeviceCreateGpuInstance(gpu, 19)\n"
        "print(n.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 9))\n"
        "print(n.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19))\n"
        "print(refused(n.nvmlDeviceCreateGpuInstance, gpu, 9))\n",
    )
    assert said.splitlines() == [
        "NVMLError_NotSupported",
        "0 [1, 1]",
        "2",
        "NVMLError_InsufficientResources",
        "0",
        "3",
        "NVMLError_InsufficientResources",
    ]
    mig = _read(root).mig
    assert isinstance(mig.instances, Value)
    made = [(each.profile, each.placement) for each in mig.instances.value]
    assert made == [
        (Value("1g.10gb"), Placement(start=0, size=1)),
        (Value("3g.40gb"), Placement(start=4, size=4)),
    ]
    assert isinstance(mig.devices, Value)
    assert [device.name for device in mig.devices.value] == [
        Value("NVIDIA H100 80GB HBM3 MIG 2c.3g.40gb")
    ]


def test_instances_go_from_the_inside_out(root: Path) -> None:
    said = _change(
        root,
        "n.nvmlDeviceSetMigMode(gpu, 1)\n"
        "whole = n.nvmlDeviceCreateGpuInstance(gpu, 0)\n"
        "part = n.nvmlGpuInstanceCreateComputeInstance(whole, 4)\n"
        "print(refused(n.nvmlGpuInstanceDestroy, whole))\n"
        "print(refused(n.nvmlDeviceSetMigMode, gpu, 0))\n"
        "n.nvmlComputeInstanceDestroy(part)\n"
        "n.nvmlGpuInstanceDestroy(whole)\n"
        "print(refused(n.nvmlGpuInstanceGetInfo, whole))\n"
        "print(n.nvmlDeviceSetMigMode(gpu, 0), n.nvmlDeviceGetMigMode(gpu))\n",
    )
    assert said.splitlines() == [
        "NVMLError_InUse",
        "NVMLError_InUse",
        "NVMLError_NotFound",
        "0 [0, 0]",
    ]
    assert _read(root).mig.instances == Value(())
