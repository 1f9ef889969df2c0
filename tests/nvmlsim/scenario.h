/* A scenario: what the cards say, what goes wrong, and what has been set since. */
#pragma once
#include <stdbool.h>

#include "nvml.h"

enum { MOST_GPUS = 16, MOST_INSTANCES = 16 };

typedef struct Row {
  char *path, *text;
  double *times, *values, scale; /* of a trace */
  int count;
  bool loops;
} Row;

typedef struct Fault { /* at the N-th call of a function */
  char function[96];
  long at, argument;
} Fault;

typedef struct Instance { /* a GPU instance, or a compute instance in one */
  struct Gpu *gpu;
  struct Instance *parent;
  unsigned id;
} Instance;

typedef struct Gpu { /* a card, or a MIG device of one */
  struct Gpu *card;
  unsigned index;
  Instance *instance, *compute; /* of a MIG device */
  long calls, lost_after;
  Fault hang, death;
  Instance instances[MOST_INSTANCES], computes[MOST_INSTANCES][MOST_INSTANCES];
} Gpu;

extern Gpu gpus[MOST_GPUS], mig_devices[MOST_GPUS][MOST_INSTANCES];
extern unsigned gpu_count;

nvmlReturn_t begin(void);
bool begun(void);
void finish(void);
bool is_handle(const Gpu *gpu);

/* The start of every call: counts it, hangs, dies or fails as the scenario has it. */
nvmlReturn_t enter_system(const char *function);
nvmlReturn_t enter(Gpu *gpu, const char *function);

Row *find(const char *path);
Row *of_gpu(const Gpu *gpu, const char *format, ...) __attribute__((format(printf, 2, 3)));
nvmlReturn_t number(Row *row, u64 *value);
nvmlReturn_t text(Row *row, char *buffer, unsigned size);
void set(const char *format, ...) __attribute__((format(printf, 1, 2)));
