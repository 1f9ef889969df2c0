"""nvidia-ml-py alone, making the calls that reading NVML makes; prints how many.

Usage: bare_nvml.py LIBRARY
"""

import ctypes
import sys
from typing import Any

import pynvml as n

# each with what is put behind the card's handle
CALLS: tuple[tuple[Any, ...], ...] = (
    (n.nvmlDeviceGetName,),
    (n.nvmlDeviceGetUUID,),
    (n.nvmlDeviceGetPciInfo_v3,),
    (n.nvmlDeviceGetMinorNumber,),
    (n.nvmlDeviceGetCudaComputeCapability,),
    (n.nvmlDeviceGetMemoryInfo, n.nvmlMemory_v2),
    (n.nvmlDeviceGetMigMode,),
    (n.nvmlDeviceGetPersistenceMode,),
    (n.nvmlDeviceGetComputeMode,),
    (n.nvmlDeviceGetEccMode,),
    *((n.nvmlDeviceGetTotalEccErrors, kind, counter) for kind in (0, 1) for counter in (0, 1)),
    (n.nvmlDeviceGetRemappedRows,),
    (n.nvmlDeviceGetRowRemapperHistogram,),
    (n.nvmlDeviceGetRetiredPages, 0),
    (n.nvmlDeviceGetRetiredPages, 1),
    (n.nvmlDeviceGetRetiredPagesPendingStatus,),
    (n.nvmlDeviceGetCurrPcieLinkGeneration,),
    (n.nvmlDeviceGetCurrPcieLinkWidth,),
    (n.nvmlDeviceGetMaxPcieLinkGeneration,),
    (n.nvmlDeviceGetMaxPcieLinkWidth,),
    (n.nvmlDeviceGetGpuMaxPcieLinkGeneration,),
    (n.nvmlDeviceGetPcieReplayCounter,),
    (n.nvmlDeviceGetTemperatureV, 0),
    *((n.nvmlDeviceGetTemperatureThreshold, number) for number in range(4)),
    (n.nvmlDeviceGetMarginTemperature,),
    (n.nvmlDeviceGetPowerUsage,),
    (n.nvmlDeviceGetPowerManagementLimit,),
    (n.nvmlDeviceGetEnforcedPowerLimit,),
    (n.nvmlDeviceGetPowerManagementDefaultLimit,),
    (n.nvmlDeviceGetPowerManagementLimitConstraints,),
    *((n.nvmlDeviceGetClockInfo, clock) for clock in (n.NVML_CLOCK_SM, n.NVML_CLOCK_MEM)),
    *((n.nvmlDeviceGetMaxClockInfo, clock) for clock in (n.NVML_CLOCK_SM, n.NVML_CLOCK_MEM)),
    (n.nvmlDeviceGetCurrentClocksEventReasons,),
    (n.nvmlDeviceGetUtilizationRates,),
    (n.nvmlDeviceGetVbiosVersion,),
    (n.nvmlDeviceGetGspFirmwareVersion,),
    (n.nvmlDeviceGetGspFirmwareMode,),
    (n.nvmlDeviceGetComputeRunningProcesses_v3,),
    (n.nvmlDeviceGetGraphicsRunningProcesses_v3,),
    (n.nvmlDeviceGetMPSComputeRunningProcesses_v3,),
    (n.nvmlDeviceGetFieldValues, [(number, 0) for number in (82, 193, 194, 196, 195, 186)]),
    (n.nvmlDeviceGetFieldValues, [(n.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)]),
    (n.nvmlDeviceGetMaxMigDeviceCount,),
)


def main() -> None:
    """Ask every card."""
    ctypes.CDLL(sys.argv[1])
    n.nvmlInit()
    made = [n.nvmlSystemGetNVMLVersion(), n.nvmlSystemGetDriverVersion()]
    made += [n.nvmlSystemGetCudaDriverVersion_v2(), n.nvmlDeviceGetCount()]
    for card in range(made[-1]):
        gpu = n.nvmlDeviceGetHandleByIndex(card)
        for call, *more in CALLS:
            try:
                made.append(call(gpu, *more))
            except n.NVMLError as error:
                made.append(error)
        links = range(made[-2][0].value.uiVal)
        wanted = [(number, link) for link in links for number in (161, 162, 163)]
        made.append(n.nvmlDeviceGetFieldValues(gpu, wanted))
        for link in links:
            made.append(n.nvmlDeviceGetNvLinkState(gpu, link))
            made.append(n.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link))
        info = n.c_nvmlGpuFabricInfo_v3_t()
        made.append(n.nvmlDeviceGetGpuFabricInfoV(gpu, ctypes.byref(info)))
        made.append(gpu)
    print(1 + len(made))


if __name__ == "__main__":
    main()
