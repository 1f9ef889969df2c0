/* The driver and its cards. Compiled with -DOLD it lacks what drivers before 510 did not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "scenario.h"

#define ENTER                                   \
  nvmlReturn_t code = enter(gpu, __func__);     \
  if (code != SUCCESS) return code
#define NUMBER(function, key)                                  \
  API nvmlReturn_t function(nvmlDevice_t gpu, unsigned *out) { \
    ENTER;                                                     \
    return u32(of_gpu(gpu, key), out);                         \
  }
#define NUMBER_OF(function, key)                                               \
  API nvmlReturn_t function(nvmlDevice_t gpu, unsigned which, unsigned *out) { \
    ENTER;                                                                     \
    return u32(of_gpu(gpu, key, which), out);                                  \
  }
#define TWO(function, first, second)                                           \
  API nvmlReturn_t function(nvmlDevice_t gpu, unsigned *one, unsigned *two) {  \
    ENTER;                                                                     \
    code = u32(of_gpu(gpu, first), one);                                       \
    return code != SUCCESS ? code : u32(of_gpu(gpu, second), two);             \
  }
#define TEXT(function, key)                                                       \
  API nvmlReturn_t function(nvmlDevice_t gpu, char *buffer, unsigned size) {      \
    ENTER;                                                                        \
    return text(of_gpu(gpu, key), buffer, size);                                  \
  }

static nvmlReturn_t u32(Row *row, unsigned *out) {
  u64 value = 0;
  nvmlReturn_t code = number(row, &value);
  if (code == SUCCESS) *out = (unsigned)value;
  return code;
}

API nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return begin();
}
API nvmlReturn_t nvmlInit_v2(void) { return begin(); }
API nvmlReturn_t nvmlShutdown(void) {
  if (!begun()) return UNINITIALIZED;
  finish();
  return SUCCESS;
}
API const char *nvmlErrorString(int code) {
  static const char *const words[] = {
      [0] = "Success",
      [IN_USE] = "In use by another client",
      [INSUFFICIENT_RESOURCES] = "Insufficient Resources",
      [ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
      [26] = "Deprecated",
  };
  int known = code >= 0 && code < (int)(sizeof words / sizeof *words) && words[code];
  return known ? words[code] : "Unknown Error";
}
API nvmlReturn_t nvmlSystemGetNVMLVersion(char *buffer, unsigned size) {
  nvmlReturn_t code = enter_system(__func__);
  return code != SUCCESS ? code : text(find("system.library"), buffer, size);
}
API nvmlReturn_t nvmlSystemGetDriverVersion(char *buffer, unsigned size) {
  if (!begun()) return UNINITIALIZED;
  nvmlReturn_t code = enter_system(__func__);
  return code != SUCCESS ? code : text(find("system.driver"), buffer, size);
}
API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out) {
  if (!begun()) return UNINITIALIZED;
  nvmlReturn_t code = enter_system(__func__);
  return code != SUCCESS ? code : u32(find("system.cuda"), (unsigned *)out);
}
API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) {
  if (!begun()) return UNINITIALIZED;
  nvmlReturn_t code = enter_system(__func__);
  *out = gpu_count;
  return code;
}
API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) {
  if (!begun()) return UNINITIALIZED;
  if (index >= gpu_count) return INVALID_ARGUMENT;
  *out = gpus + index;
  return enter(*out, __func__);
}
static nvmlReturn_t by_text(const char *key, const char *wanted, const char *function,
                            nvmlDevice_t *out) {
  if (!begun()) return UNINITIALIZED;
  for (unsigned i = 0; i < gpu_count; i++) {
    char value[96], *tail = value;
    if (text(of_gpu(gpus + i, key), value, sizeof value) != SUCCESS) continue;
    if (strlen(value) > strlen(wanted)) tail += strlen(value) - strlen(wanted); /* 8 or 4 digits */
    if (strcasecmp(tail, wanted)) continue;
    *out = gpus + i;
    return enter(*out, function);
  }
  return NOT_FOUND;
}
API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
  return by_text("uuid", uuid, __func__, out);
}
API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *out) {
  return by_text("pci", address, __func__, out);
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, Pci *out) {
  ENTER;
  memset(out, 0, sizeof *out);
  code = text(of_gpu(gpu, "pci"), out->busId, sizeof out->busId);
  if (code != SUCCESS) return code;
  sscanf(out->busId, "%x:%x:%x", &out->domain, &out->bus, &out->device);
  snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
           out->bus & 0xff, out->device & 0xff);
  return SUCCESS;
}
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetMinorNumber, "minor")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired.pending")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.max_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie.max_width")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie.replays")
NUMBER(nvmlDeviceGetPowerUsage, "power.usage")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power.limit")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power.enforced")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power.default")
TWO(nvmlDeviceGetPowerManagementLimitConstraints, "power.min", "power.max")
TWO(nvmlDeviceGetEccMode, "ecc.current", "ecc.pending")
TWO(nvmlDeviceGetMigMode, "mig.current", "mig.pending")
NUMBER_OF(nvmlDeviceGetTemperatureThreshold, "threshold.%u")
NUMBER_OF(nvmlDeviceGetPcieThroughput, "pcie.throughput.%u")
NUMBER_OF(nvmlDeviceGetClockInfo, "clock.%u")
NUMBER_OF(nvmlDeviceGetMaxClockInfo, "clock.max.%u")

static nvmlReturn_t nvlink(Gpu *gpu, unsigned which, const char *key, unsigned *out) {
  unsigned count = 0;
  nvmlReturn_t code = u32(of_gpu(gpu, "field.91"), &count); /* NVML_FI_DEV_NVLINK_LINK_COUNT */
  if (code != SUCCESS) return code;
  if (which >= count) return INVALID_ARGUMENT;
  Row *own = of_gpu(gpu, "nvlink.%u.%s", which, key);
  return u32(own ? own : of_gpu(gpu, "nvlink.%s", key), out);
}
API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t gpu, unsigned which, unsigned *out) {
  ENTER;
  return nvlink(gpu, which, "active", out);
}
API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t gpu, unsigned which,
                                                     unsigned *out) {
  ENTER;
  return nvlink(gpu, which, "remote", out);
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t gpu, int *major, int *minor) {
  char value[16];
  ENTER;
  code = text(of_gpu(gpu, "capability"), value, sizeof value);
  return code == SUCCESS && sscanf(value, "%d.%d", major, minor) != 2 ? UNKNOWN : code;
}
API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t gpu, unsigned sensor, unsigned *out) {
  ENTER;
  return sensor ? INVALID_ARGUMENT : u32(of_gpu(gpu, "temperature"), out);
}
API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t gpu, Utilization *out) {
  ENTER;
  code = u32(of_gpu(gpu, "utilization.gpu"), &out->gpu);
  return code != SUCCESS ? code : u32(of_gpu(gpu, "utilization.memory"), &out->memory);
}
API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t gpu, u64 *out) {
  ENTER;
  return number(of_gpu(gpu, "reasons"), out);
}
API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t gpu, unsigned kind, unsigned counter,
                                             u64 *out) {
  ENTER;
  return number(of_gpu(gpu, "ecc.%s.%s", kind ? "uncorrected" : "corrected",
                       counter ? "aggregate" : "volatile"), out);
}
API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t gpu, unsigned *corrected,
                                           unsigned *uncorrected, unsigned *pending,
                                           unsigned *failed) {
  char value[64];
  ENTER;
  code = text(of_gpu(gpu, "remapped"), value, sizeof value);
  if (code != SUCCESS) return code;
  return sscanf(value, "%u %u %u %u", corrected, uncorrected, pending, failed) == 4 ? SUCCESS : UNKNOWN;
}
API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t gpu, Histogram *out) {
  char value[64];
  ENTER;
  code = text(of_gpu(gpu, "remapped.spare"), value, sizeof value);
  if (code != SUCCESS) return code;
  return sscanf(value, "%u %u %u %u %u", &out->max, &out->high, &out->partial, &out->low,
                &out->none) == 5 ? SUCCESS : UNKNOWN;
}
API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t gpu, unsigned cause, unsigned *count,
                                           u64 *addresses) {
  unsigned retired = 0;
  ENTER;
  code = u32(of_gpu(gpu, "retired.%u", cause), &retired);
  if (code != SUCCESS) return code;
  unsigned room = *count;
  *count = retired;
  if (room < retired || !addresses) return retired ? INSUFFICIENT_SIZE : SUCCESS;
  for (unsigned i = 0; i < retired; i++) addresses[i] = 0x10000ull * (i + 1);
  return SUCCESS;
}

static nvmlReturn_t processes(Gpu *gpu, const char *kind, unsigned *count, Process *out) {
  Row *error = of_gpu(gpu, "%s", kind), *row;
  if (error && *error->text == '!') return (nvmlReturn_t)atoi(error->text + 1);
  unsigned found = 0, room = *count;
  while ((row = of_gpu(gpu, "%s.%u", kind, found))) {
    if (out && found < room) {
      char held[32];
      Process *each = out + found;
      each->gpuInstanceId = each->computeInstanceId = 0xFFFFFFFF;
      sscanf(row->text, "%u %31s %u %u", &each->pid, held, &each->gpuInstanceId,
             &each->computeInstanceId);
      each->usedGpuMemory = strcmp(held, "-") ? strtoull(held, 0, 0) : ~0ull;
    }
    found++;
  }
  *count = found;
  return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
#define PROCESSES(function, kind)                                                    \
  API nvmlReturn_t function(nvmlDevice_t gpu, unsigned *count, Process *out) {       \
    ENTER;                                                                           \
    return processes(gpu, kind, count, out);                                         \
  }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps")

static void field(Gpu *gpu, FieldValue *value) {
  u64 found = 0;
  Row *row = of_gpu(gpu, "field.%u.%u", value->fieldId, value->scopeId);
  if (!row) row = of_gpu(gpu, "field.%u", value->fieldId);
  value->nvmlReturn = number(row, &found);
  value->value.ullVal = found;
  value->valueType = 3; /* unsigned long long */
  if (value->fieldId >= 193 && value->fieldId <= 196) { /* margins of temperature */
    value->valueType = 5;
    value->value.siVal = (int)found;
  }
}
API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t gpu, int count, FieldValue *values) {
  ENTER;
  for (int i = 0; i < count; i++) field(gpu, values + i);
  return SUCCESS;
}

static nvmlReturn_t fabric(Gpu *gpu, Fabric3 *out) {
  char cluster[33] = "", value[128];
  nvmlReturn_t code = text(of_gpu(gpu, "fabric"), value, sizeof value);
  if (code != SUCCESS) return code;
  if (sscanf(value, "%u %u %u %32s %i", &out->state, &out->status, &out->cliqueId, cluster,
             (int *)&out->healthMask) != 5)
    return UNKNOWN;
  for (int i = 0; i < 16; i++) sscanf(cluster + 2 * i, "%2hhx", out->clusterUuid + i);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t gpu, Fabric *out) {
  Fabric3 whole;
  ENTER;
  code = fabric(gpu, &whole);
  memcpy(out, whole.clusterUuid, sizeof *out);
  return code;
}
static nvmlReturn_t memory(Gpu *gpu, Memory2 *out) {
  u64 reserved = 0;
  nvmlReturn_t code = number(of_gpu(gpu, "memory.total"), &out->total);
  if (code == SUCCESS) code = number(of_gpu(gpu, "memory.used"), &out->used);
  if (code != SUCCESS) return code;
  number(of_gpu(gpu, "memory.reserved"), &reserved);
  out->reserved = reserved;
  out->free = out->total - out->used - reserved;
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t gpu, Memory *out) {
  Memory2 whole = {0};
  ENTER;
  code = memory(gpu, &whole);
  *out = (Memory){whole.total, whole.free, whole.used + whole.reserved};
  return code;
}

API nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t gpu, unsigned limit) {
  u64 low = 0, high = 0;
  ENTER;
  code = number(of_gpu(gpu, "power.min"), &low);
  if (code == SUCCESS) code = number(of_gpu(gpu, "power.max"), &high);
  if (code != SUCCESS) return code;
  if (limit < low || limit > high) return INVALID_ARGUMENT;
  set("gpu.%u.power.limit = %u", gpu->index, limit);
  set("gpu.%u.power.enforced = %u", gpu->index, limit);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t gpu, unsigned mode) {
  ENTER;
  if (mode > 3) return INVALID_ARGUMENT;
  set("gpu.%u.compute_mode = %u", gpu->index, mode);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t gpu, unsigned mode) {
  ENTER;
  set("gpu.%u.persistence = %u", gpu->index, mode);
  return SUCCESS;
}

#ifndef OLD
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.card_max_generation")
TWO(nvmlDeviceGetGspFirmwareMode, "gsp.enabled", "gsp.default")
API nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t gpu, char *buffer) {
  ENTER;
  return text(of_gpu(gpu, "gsp.version"), buffer, 64);
}
API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t gpu, Temperature1 *out) {
  ENTER;
  if (out->version != VERSION(Temperature1, 1)) return ARGUMENT_VERSION_MISMATCH;
  if (out->sensorType) return INVALID_ARGUMENT;
  return u32(of_gpu(gpu, "temperature"), (unsigned *)&out->temperature);
}
API nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t gpu, Margin1 *out) {
  ENTER;
  if (out->version != VERSION(Margin1, 1)) return ARGUMENT_VERSION_MISMATCH;
  return u32(of_gpu(gpu, "margin"), (unsigned *)&out->marginTemperature);
}
API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t gpu, u64 *out) {
  ENTER;
  return number(of_gpu(gpu, "reasons"), out);
}
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t gpu, Memory2 *out) {
  ENTER;
  if (out->version != VERSION(Memory2, 2)) return ARGUMENT_VERSION_MISMATCH;
  return memory(gpu, out);
}
API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t gpu, void *out) {
  Fabric3 whole = {0};
  unsigned version = *(unsigned *)out;
  ENTER;
  bool third = version == VERSION(Fabric3, 3) && !of_gpu(gpu, "fabric.no_v3");
  if (!third && version != VERSION(Fabric2, 2)) return ARGUMENT_VERSION_MISMATCH;
  code = fabric(gpu, &whole);
  whole.version = version;
  memcpy(out, &whole, third ? sizeof(Fabric3) : sizeof(Fabric2));
  return code;
}
#endif
