/* The part of NVML's interface that the simulator speaks; tests compare it with nvidia-ml-py's. */
#pragma once

#define API __attribute__((visibility("default")))
#define VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

typedef unsigned long long u64;
typedef enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NO_PERMISSION = 4,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  DRIVER_NOT_LOADED = 9,
  FUNCTION_NOT_FOUND = 13,
  GPU_IS_LOST = 15,
  LIB_RM_VERSION_MISMATCH = 18,
  IN_USE = 19,
  INSUFFICIENT_RESOURCES = 23,
  ARGUMENT_VERSION_MISMATCH = 25,
  UNKNOWN = 999,
} nvmlReturn_t;

typedef struct Gpu *nvmlDevice_t;
typedef struct Instance *nvmlGpuInstance_t;
typedef struct Instance *nvmlComputeInstance_t;

typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
typedef struct { unsigned version, sensorType; int temperature; } Temperature1;
typedef struct { unsigned version; int marginTemperature; } Margin1;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} Pci;
typedef struct { unsigned pid; u64 usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } Process;
typedef struct { unsigned max, high, partial, low, none; } Histogram;
typedef union { double dVal; int siVal; unsigned uiVal; unsigned long ulVal; u64 ullVal; } Any;
typedef struct {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned valueType, nvmlReturn;
  Any value;
} FieldValue;
typedef struct { unsigned char clusterUuid[16]; unsigned status, cliqueId, state; } Fabric;
typedef struct {
  unsigned version;
  unsigned char clusterUuid[16];
  unsigned status, cliqueId, state, healthMask;
} Fabric2;
typedef struct {
  unsigned version;
  unsigned char clusterUuid[16];
  unsigned status, cliqueId, state, healthMask;
  unsigned char healthSummary;
} Fabric3;
typedef struct { unsigned start, size; } Placement;
typedef struct {
  unsigned id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
      decoderCount, encoderCount, jpegCount, ofaCount;
  u64 memorySizeMB;
} GpuProfile;
typedef struct {
  unsigned version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
      copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
  u64 memorySizeMB;
  char name[96];
} GpuProfile2;
typedef struct {
  unsigned id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} ComputeProfile;
typedef struct {
  unsigned version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[96];
} ComputeProfile2;
typedef struct { nvmlDevice_t device; unsigned id, profileId; Placement placement; } GpuInstanceInfo;
typedef struct {
  nvmlDevice_t device;
  nvmlGpuInstance_t gpuInstance;
  unsigned id, profileId;
  Placement placement;
} ComputeInstanceInfo;
typedef struct {
  unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
      sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  u64 memorySizeMB;
} Attributes;
