/* Multi-instance mode: profiles, placements, making and taking apart.
 *
 *   gpu.N.mig.profile.P = ID SLICES COUNT SMS MIB NAME     P is one of NVML's profile numbers
 *   gpu.N.mig.placements.ID = SIZE START,START,...
 *   gpu.N.instance.I = ID START SIZE                       a GPU instance that is there; `-`: none
 *   gpu.N.instance.I.compute.C = PROFILE START SIZE        a compute instance in it
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"


#define ENTER                                   \
  nvmlReturn_t code = enter(gpu, __func__);     \
  if (code != SUCCESS) return code

static const unsigned compute_slices[] = {1, 2, 3, 4, 7, 8, 6, 1, 7}; /* by NVML's profile number */
enum { GPU_PROFILES = 18, COMPUTE_PROFILES = 5 };

typedef struct { unsigned profile; Placement placement; } Made;

static bool made(Row *row, Made *out) {
  return row && sscanf(row->text, "%u %u %u", &out->profile, &out->placement.start,
                       &out->placement.size) == 3;
}
static bool gpu_instance(Gpu *gpu, unsigned id, Made *out) {
  return made(of_gpu(gpu, "instance.%u", id), out);
}
static bool compute_instance(Gpu *gpu, unsigned id, unsigned compute, Made *out) {
  return made(of_gpu(gpu, "instance.%u.compute.%u", id, compute), out);
}

static nvmlReturn_t profile(Gpu *gpu, unsigned number, GpuProfile2 *out) {
  Row *row = of_gpu(gpu, "mig.profile.%u", number);
  if (!row) return NOT_SUPPORTED;
  return sscanf(row->text, "%u %u %u %u %llu %95[^\n]", &out->id, &out->sliceCount,
                &out->instanceCount, &out->multiprocessorCount, &out->memorySizeMB,
                out->name) == 6 ? SUCCESS : UNKNOWN;
}
static nvmlReturn_t profile_by_id(Gpu *gpu, unsigned id, GpuProfile2 *out) {
  for (unsigned i = 0; i < GPU_PROFILES; i++)
    if (profile(gpu, i, out) == SUCCESS && out->id == id) return SUCCESS;
  return INVALID_ARGUMENT;
}
static nvmlReturn_t compute_profile(Instance *in, unsigned number, ComputeProfile2 *out) {
  GpuProfile2 whole = {0};
  Made where;
  if (number >= COMPUTE_PROFILES) return NOT_SUPPORTED;
  if (!gpu_instance(in->gpu, in->id, &where)) return INVALID_ARGUMENT;
  nvmlReturn_t code = profile_by_id(in->gpu, where.profile, &whole);
  if (code != SUCCESS) return code;
  unsigned slices = compute_slices[number];
  if (slices > whole.sliceCount) return NOT_SUPPORTED;
  out->id = number;
  out->sliceCount = slices;
  out->instanceCount = whole.sliceCount / slices;
  out->multiprocessorCount = whole.multiprocessorCount * slices / whole.sliceCount;
  if (slices == whole.sliceCount) snprintf(out->name, sizeof out->name, "%.90s", whole.name);
  else snprintf(out->name, sizeof out->name, "%uc.%.85s", slices, whole.name);
  return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t gpu, unsigned *out) {
  u64 most = 0;
  ENTER;
  code = number(of_gpu(gpu, "mig.most"), &most);
  *out = (unsigned)most;
  return code;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t gpu, unsigned which,
                                                     GpuProfile *out) {
  GpuProfile2 whole = {0};
  ENTER;
  code = profile(gpu, which, &whole);
  memcpy(out, &whole.id, offsetof(GpuProfile2, memorySizeMB) - offsetof(GpuProfile2, id));
  out->memorySizeMB = whole.memorySizeMB;
  return code;
}
API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t in, unsigned which,
                                                              unsigned engine,
                                                              ComputeProfile *out) {
  ComputeProfile2 whole = {0};
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code == SUCCESS) code = engine ? INVALID_ARGUMENT : compute_profile(in, which, &whole);
  memcpy(out, &whole.id, sizeof *out);
  return code;
}
#ifndef OLD
API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t gpu, unsigned which,
                                                      GpuProfile2 *out) {
  ENTER;
  return out->version == VERSION(GpuProfile2, 2) ? profile(gpu, which, out)
                                                 : ARGUMENT_VERSION_MISMATCH;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t gpu, unsigned id,
                                                          GpuProfile2 *out) {
  ENTER;
  return out->version == VERSION(GpuProfile2, 2) ? profile_by_id(gpu, id, out)
                                                 : ARGUMENT_VERSION_MISMATCH;
}
API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t in, unsigned which,
                                                               unsigned engine,
                                                               ComputeProfile2 *out) {
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (out->version != VERSION(ComputeProfile2, 2)) return ARGUMENT_VERSION_MISMATCH;
  return engine ? INVALID_ARGUMENT : compute_profile(in, which, out);
}
#endif

static unsigned possible(Gpu *gpu, unsigned id, Placement *out) {
  Row *row = of_gpu(gpu, "mig.placements.%u", id);
  if (!row) return 0;
  char *end;
  unsigned size = (unsigned)strtoul(row->text, &end, 10), count = 0;
  while (*end) {
    out[count] = (Placement){(unsigned)strtoul(end + 1, &end, 10), size};
    if (++count == MOST_INSTANCES) break;
  }
  return count;
}
static bool overlap(Placement a, Placement b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}
static bool is_free(Gpu *gpu, Placement place) {
  Made other;
  for (unsigned i = 0; i < MOST_INSTANCES; i++)
    if (gpu_instance(gpu, i, &other) && overlap(place, other.placement)) return false;
  return true;
}

API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t gpu, unsigned id,
                                                               Placement *out, unsigned *count) {
  Placement all[MOST_INSTANCES];
  ENTER;
  unsigned found = possible(gpu, id, all), room = *count;
  if (!found) return NOT_SUPPORTED;
  *count = found;
  if (!out) return SUCCESS;
  if (room < found) return INSUFFICIENT_SIZE;
  memcpy(out, all, found * sizeof *all);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t gpu, unsigned id,
                                                           unsigned *out) {
  Placement all[MOST_INSTANCES], taken = {0, 0};
  ENTER;
  unsigned found = possible(gpu, id, all);
  *out = 0;
  for (unsigned i = 0; i < found; i++) {
    if (!is_free(gpu, all[i]) || (taken.size && overlap(taken, all[i]))) continue;
    taken = all[i];
    ++*out;
  }
  return SUCCESS;
}

static nvmlReturn_t create(Gpu *gpu, unsigned id, const Placement *wanted, nvmlGpuInstance_t *out) {
  Placement all[MOST_INSTANCES];
  u64 mode = 0;
  number(of_gpu(gpu, "mig.current"), &mode);
  if (!mode) return NOT_SUPPORTED;
  unsigned found = possible(gpu, id, all), number = 1;
  Made other;
  if (!found) return INVALID_ARGUMENT;
  while (number < MOST_INSTANCES && gpu_instance(gpu, number, &other)) number++;
  for (unsigned i = 0; i < found && number < MOST_INSTANCES; i++) {
    if (wanted && wanted->start != all[i].start) continue;
    if (!is_free(gpu, all[i])) continue;
    set("gpu.%u.instance.%u = %u %u %u", gpu->index, number, id, all[i].start, all[i].size);
    *out = &gpu->instances[number];
    return SUCCESS;
  }
  return INSUFFICIENT_RESOURCES;
}
API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t gpu, unsigned id, nvmlGpuInstance_t *out) {
  ENTER;
  return create(gpu, id, 0, out);
}
API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t gpu, unsigned id,
                                                          const Placement *wanted,
                                                          nvmlGpuInstance_t *out) {
  ENTER;
  return create(gpu, id, wanted, out);
}
API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t in) {
  Made other;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (!gpu_instance(in->gpu, in->id, &other)) return NOT_FOUND;
  for (unsigned c = 0; c < MOST_INSTANCES; c++)
    if (compute_instance(in->gpu, in->id, c, &other)) return IN_USE;
  set("gpu.%u.instance.%u = -", in->gpu->index, in->id);
  return SUCCESS;
}
API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t in, unsigned id,
                                                      nvmlComputeInstance_t *out) {
  ComputeProfile2 wanted = {0};
  Made other;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code == SUCCESS) code = compute_profile(in, id, &wanted);
  if (code != SUCCESS) return code;
  unsigned used = 0, number = 0;
  for (unsigned c = 0; c < MOST_INSTANCES; c++)
    if (compute_instance(in->gpu, in->id, c, &other)) used += other.placement.size;
  while (compute_instance(in->gpu, in->id, number, &other)) number++;
  GpuProfile2 whole = {0};
  gpu_instance(in->gpu, in->id, &other);
  profile_by_id(in->gpu, other.profile, &whole);
  if (used + wanted.sliceCount > whole.sliceCount) return INSUFFICIENT_RESOURCES;
  set("gpu.%u.instance.%u.compute.%u = %u %u %u", in->gpu->index, in->id, number, id, used,
      wanted.sliceCount);
  *out = &in->gpu->computes[in->id][number];
  return SUCCESS;
}
API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t in) {
  Made other;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (!compute_instance(in->gpu, in->parent->id, in->id, &other)) return NOT_FOUND;
  set("gpu.%u.instance.%u.compute.%u = -", in->gpu->index, in->parent->id, in->id);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t gpu, unsigned mode, nvmlReturn_t *status) {
  Made other;
  u64 now = 0;
  ENTER;
  code = number(of_gpu(gpu, "mig.current"), &now);
  if (code != SUCCESS) return code;
  for (unsigned i = 0; i < MOST_INSTANCES; i++)
    if (gpu_instance(gpu, i, &other)) return IN_USE;
  set("gpu.%u.mig.pending = %u", gpu->index, mode);
  bool busy = of_gpu(gpu, "compute.0") != 0;
  *status = busy ? IN_USE : SUCCESS;
  if (!busy) set("gpu.%u.mig.current = %u", gpu->index, mode);
  return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t gpu, unsigned id, nvmlGpuInstance_t *out,
                                           unsigned *count) {
  Made other;
  ENTER;
  *count = 0;
  for (unsigned i = 0; i < MOST_INSTANCES; i++)
    if (gpu_instance(gpu, i, &other) && other.profile == id) out[(*count)++] = &gpu->instances[i];
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t gpu, unsigned id, nvmlGpuInstance_t *out) {
  Made other;
  ENTER;
  if (id >= MOST_INSTANCES || !gpu_instance(gpu, id, &other)) return NOT_FOUND;
  *out = &gpu->instances[id];
  return SUCCESS;
}
API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t in, GpuInstanceInfo *out) {
  Made found;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (!gpu_instance(in->gpu, in->id, &found)) return NOT_FOUND;
  *out = (GpuInstanceInfo){in->gpu, in->id, found.profile, found.placement};
  return SUCCESS;
}
API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t in, unsigned id,
                                                    nvmlComputeInstance_t *out, unsigned *count) {
  Made other;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  *count = 0;
  for (unsigned c = 0; c < MOST_INSTANCES; c++)
    if (compute_instance(in->gpu, in->id, c, &other) && other.profile == id)
      out[(*count)++] = &in->gpu->computes[in->id][c];
  return SUCCESS;
}
API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t in, unsigned id,
                                                       nvmlComputeInstance_t *out) {
  Made other;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (id >= MOST_INSTANCES || !compute_instance(in->gpu, in->id, id, &other)) return NOT_FOUND;
  *out = &in->gpu->computes[in->id][id];
  return SUCCESS;
}
API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t in, ComputeInstanceInfo *out) {
  Made found;
  nvmlReturn_t code = enter(in->gpu, __func__);
  if (code != SUCCESS) return code;
  if (!compute_instance(in->gpu, in->parent->id, in->id, &found)) return NOT_FOUND;
  *out = (ComputeInstanceInfo){in->gpu, in->parent, in->id, found.profile, found.placement};
  return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t gpu, unsigned index,
                                                     nvmlDevice_t *out) {
  Made other;
  unsigned seen = 0;
  ENTER;
  for (unsigned i = 0; i < MOST_INSTANCES; i++) {
    if (!gpu_instance(gpu, i, &other)) continue;
    for (unsigned c = 0; c < MOST_INSTANCES; c++) {
      if (!compute_instance(gpu, i, c, &other) || seen++ != index) continue;
      Gpu *device = &mig_devices[gpu->index][index];
      *device = (Gpu){.card = gpu, .index = index, .instance = &gpu->instances[i],
                      .compute = &gpu->computes[i][c]};
      *out = device;
      return SUCCESS;
    }
  }
  return NOT_FOUND;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t gpu, unsigned *out) {
  ENTER;
  if (!gpu->instance) return INVALID_ARGUMENT;
  *out = gpu->instance->id;
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t gpu, unsigned *out) {
  ENTER;
  if (!gpu->instance) return INVALID_ARGUMENT;
  *out = gpu->compute->id;
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t gpu, Attributes *out) {
  GpuProfile2 whole = {0};
  ComputeProfile2 part = {0};
  Made in, found;
  ENTER;
  if (!gpu->instance || !gpu_instance(gpu->card, gpu->instance->id, &in)) return INVALID_ARGUMENT;
  compute_instance(gpu->card, gpu->instance->id, gpu->compute->id, &found);
  profile_by_id(gpu->card, in.profile, &whole);
  compute_profile(gpu->instance, found.profile, &part);
  *out = (Attributes){.multiprocessorCount = part.multiprocessorCount,
                      .gpuInstanceSliceCount = whole.sliceCount,
                      .computeInstanceSliceCount = part.sliceCount,
                      .memorySizeMB = whole.memorySizeMB};
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t gpu, char *buffer, unsigned size) {
  ENTER;
  if (!gpu->instance) return text(of_gpu(gpu, "uuid"), buffer, size);
  /* real ones are random; these tell which they are */
  unsigned parts[] = {gpu->card->index, gpu->instance->id, gpu->compute->id};
  snprintf(buffer, size, "MIG-%08x-0000-5000-%04x-%012x", parts[0], parts[1], parts[2]);
  return SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t gpu, char *buffer, unsigned size) {
  ComputeProfile2 part = {0};
  Made found;
  ENTER;
  code = text(of_gpu(gpu, "name"), buffer, size);
  if (code != SUCCESS || !gpu->instance) return code;
  compute_instance(gpu->card, gpu->instance->id, gpu->compute->id, &found);
  compute_profile(gpu->instance, found.profile, &part);
  snprintf(buffer + strlen(buffer), size - strlen(buffer), " MIG %s", part.name);
  return SUCCESS;
}
