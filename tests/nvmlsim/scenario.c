/* Reads `nvmlsim.scenario` beside the library; what is set goes into `nvmlsim.state`, beside it too.
 *
 * A line is `PATH = VALUE`, `#` begins a comment, a later line wins. PATH is `system.KEY`,
 * `gpu.N.KEY` or, for all cards, `gpu.*.KEY`. VALUE is a number, a text, `!N` for an error, or
 * `trace:FILE:COLUMN[:xN][:LOOP]`, a column of a recording, its first column in seconds.
 *
 *   system.clock = monotonic | fixed:SECONDS | calls:SECONDS_PER_CALL | file:PATH
 *   system.speed = N                          of the monotonic clock
 *   system.hang | gpu.N.hang = FUNCTION@K:SECONDS        at the K-th call of it on that card
 *   system.hang_lock = 1                      while one call hangs, all others wait
 *   system.death | gpu.N.death = FUNCTION@K:SIGNAL
 *   system.error.FUNCTION | gpu.N.error.FUNCTION = !N
 *   gpu.N.fault = lost@K                      lost after K calls
 */
#define _GNU_SOURCE
#include "scenario.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

Gpu gpus[MOST_GPUS], mig_devices[MOST_GPUS][MOST_INSTANCES];
unsigned gpu_count;

static Row *rows;
static int row_count, references;
static long call_count;
static char folder[4096];
static long state_read;
static struct timespec started;
static Fault system_hang, system_death;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "nvmlsim: %s: %s\n", what, which);
  abort();
}

static double now(void) {
  Row *clock = find("system.clock"), *speed = find("system.speed");
  const char *kind = clock ? clock->text : "monotonic";
  if (!strncmp(kind, "fixed:", 6)) return atof(kind + 6);
  if (!strncmp(kind, "calls:", 6)) return (double)call_count * atof(kind + 6);
  if (!strncmp(kind, "file:", 5)) {
    double seconds = 0;
    FILE *file = fopen(kind + 5, "r");
    if (!file || fscanf(file, "%lf", &seconds) != 1) fail("no time in", kind + 5);
    fclose(file);
    return seconds;
  }
  if (strcmp(kind, "monotonic")) fail("unknown clock", kind);
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  double seconds = (double)(at.tv_sec - started.tv_sec) + (double)(at.tv_nsec - started.tv_nsec) / 1e9;
  return seconds * (speed ? atof(speed->text) : 1);
}

static char *cell(char *line, int index) { /* the text from a cell on */
  for (; index; index--) {
    line = strchr(line, ',');
    if (!line++) return 0;
  }
  return *line == ',' ? 0 : line;
}

static int column_of(char *line, const char *name) {
  char *one;
  for (int i = 0; (one = strsep(&line, ",")); i++)
    if (!strcmp(one, name)) return i;
  fail("no such column", name);
  return -1;
}

static void read_trace(Row *row) {
  char *save, *copy = strdup(row->text + 6), line[4096], path[8192];
  char *name = strtok_r(copy, ":", &save), *column = strtok_r(0, ":", &save), *option;
  if (!column) fail("a trace has a file and a column", row->text);
  while ((option = strtok_r(0, ":", &save))) {
    if (!strcmp(option, "LOOP")) row->loops = true;
    else if (*option == 'x') row->scale = atof(option + 1);
    else fail("unknown option of a trace", option);
  }
  snprintf(path, sizeof path, "%s/%s", *name == '/' ? "" : folder, name);
  FILE *file = fopen(path, "r");
  if (!file) fail("no trace", path);
  int wanted = -1, room = 0;
  while (fgets(line, sizeof line, file)) {
    if (*line == '#') continue;
    line[strcspn(line, "\r\n")] = 0;
    if (wanted < 0) {
      wanted = column_of(line, column);
      continue;
    }
    char *value = cell(line, wanted);
    if (!value || !*value) continue;
    if (row->count == room) {
      room = room ? 2 * room : 256;
      row->times = realloc(row->times, (size_t)room * sizeof(double));
      row->values = realloc(row->values, (size_t)room * sizeof(double));
    }
    row->times[row->count] = atof(line);
    row->values[row->count++] = atof(value);
  }
  fclose(file);
  free(copy);
  if (!row->count) fail("an empty trace", row->text);
}

static double sample(const Row *row) { /* the last one before now, as a sensor would */
  double length = row->times[row->count - 1] - row->times[0], at = now();
  if (row->loops && length > 0) at = fmod(at, length);
  int i = 0;
  while (i + 1 < row->count && row->times[i + 1] <= row->times[0] + at) i++;
  return row->values[i] * row->scale;
}

static void add(char *line) {
  line[strcspn(line, "#\r\n")] = 0;
  char *equals = strchr(line, '='), *path = line + strspn(line, " \t");
  if (!*path) return;
  if (!equals) fail("a line without =", line);
  char *value = equals + 1 + strspn(equals + 1, " \t"), *end = value + strlen(value);
  while (end > value && strchr(" \t", end[-1])) *--end = 0;
  for (end = equals; end > path && strchr(" \t", end[-1]);) end--;
  *end = 0;
  rows = realloc(rows, (size_t)(row_count + 1) * sizeof *rows);
  Row *row = rows + row_count++;
  *row = (Row){.path = strdup(path), .text = strdup(value), .scale = 1};
  if (!strncmp(value, "trace:", 6)) read_trace(row);
}

static bool read_rows(const char *name, long *from) {
  char path[8192], line[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  fseek(file, from ? *from : 0, SEEK_SET);
  while (fgets(line, sizeof line, file)) add(line);
  if (from) *from = ftell(file);
  fclose(file);
  return true;
}

static void refresh(void) { /* what other processes have set since */
  char path[8192];
  struct stat found;
  snprintf(path, sizeof path, "%s/nvmlsim.state", folder);
  if (!stat(path, &found) && found.st_size > state_read) read_rows("nvmlsim.state", &state_read);
}

void set(const char *format, ...) {
  char path[8192], line[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  snprintf(path, sizeof path, "%s/nvmlsim.state", folder);
  FILE *file = fopen(path, "a");
  if (!file) fail("cannot write", path);
  flock(fileno(file), LOCK_EX);
  fprintf(file, "%s\n", line);
  fclose(file);
  refresh();
}

static Fault fault(Row *row) {
  Fault found = {.at = -1};
  if (row && sscanf(row->text, "%95[^@]@%ld:%ld", found.function, &found.at, &found.argument) != 3)
    fail("not FUNCTION@K:N", row->text);
  return found;
}

static void prepare(Gpu *gpu, unsigned index) {
  *gpu = (Gpu){.card = gpu, .index = index, .lost_after = -1};
  gpu->hang = fault(of_gpu(gpu, "hang"));
  gpu->death = fault(of_gpu(gpu, "death"));
  Row *lost = of_gpu(gpu, "fault");
  if (lost && sscanf(lost->text, "lost@%ld", &gpu->lost_after) != 1) fail("not lost@K", lost->text);
  for (unsigned i = 0; i < MOST_INSTANCES; i++) {
    gpu->instances[i] = (Instance){.gpu = gpu, .id = i};
    for (unsigned c = 0; c < MOST_INSTANCES; c++)
      gpu->computes[i][c] = (Instance){.gpu = gpu, .parent = &gpu->instances[i], .id = c};
  }
}

static void load(void) {
  Dl_info self;
  if (!dladdr((void *)load, &self)) fail("where is", "this library");
  snprintf(folder, sizeof folder, "%s", self.dli_fname);
  char *slash = strrchr(folder, '/');
  if (!slash) fail("loaded without a path", folder);
  *slash = 0;
  if (!read_rows("nvmlsim.scenario", 0)) fail("no nvmlsim.scenario in", folder);
  read_rows("nvmlsim.state", &state_read);
  u64 count = 0;
  number(find("system.gpus"), &count);
  if (count > MOST_GPUS) fail("too many in", "system.gpus");
  gpu_count = (unsigned)count;
  for (unsigned i = 0; i < gpu_count; i++) prepare(gpus + i, i);
  system_hang = fault(find("system.hang"));
  system_death = fault(find("system.death"));
}

nvmlReturn_t begin(void) {
  pthread_mutex_lock(&counting);
  if (!rows) load();
  pthread_mutex_unlock(&counting);
  nvmlReturn_t code = enter_system("nvmlInitWithFlags");
  if (code != SUCCESS) return code;
  if (!references++) clock_gettime(CLOCK_MONOTONIC, &started);
  return SUCCESS;
}

bool begun(void) { return references > 0; }

void finish(void) { references--; }

bool is_handle(const Gpu *gpu) {
  return (gpu >= gpus && gpu < gpus + gpu_count) ||
         (gpu >= mig_devices[0] && gpu < mig_devices[MOST_GPUS]);
}

static nvmlReturn_t happen(Fault *hang, Fault *death, Row *error, const char *function) {
  pthread_mutex_lock(&counting);
  call_count++;
  refresh();
  bool hangs = !strcmp(hang->function, function) && --hang->at == 0;
  bool dies = !strcmp(death->function, function) && --death->at == 0;
  pthread_mutex_unlock(&counting);
  Row *locks = find("system.hang_lock");
  if (locks) pthread_mutex_lock(&whole);
  if (hangs) sleep((unsigned)hang->argument);
  if (locks) pthread_mutex_unlock(&whole);
  if (dies) raise((int)death->argument);
  return error ? (nvmlReturn_t)atoi(error->text + 1) : SUCCESS;
}

nvmlReturn_t enter_system(const char *function) {
  char path[256];
  snprintf(path, sizeof path, "system.error.%s", function);
  return happen(&system_hang, &system_death, find(path), function);
}

nvmlReturn_t enter(Gpu *gpu, const char *function) {
  if (!begun()) return UNINITIALIZED;
  if (!is_handle(gpu)) return INVALID_ARGUMENT;
  Gpu *card = gpu->card;
  nvmlReturn_t code = happen(&card->hang, &card->death, of_gpu(card, "error.%s", function), function);
  return card->lost_after >= 0 && ++card->calls > card->lost_after ? GPU_IS_LOST : code;
}

Row *find(const char *path) {
  for (int i = row_count - 1; i >= 0; i--)
    if (!strcmp(rows[i].path, path)) return rows + i;
  return 0;
}

Row *of_gpu(const Gpu *gpu, const char *format, ...) {
  char key[192], path[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(key, sizeof key, format, arguments);
  va_end(arguments);
  snprintf(path, sizeof path, "gpu.%u.%s", gpu->card->index, key);
  Row *row = find(path);
  if (row) return row;
  snprintf(path, sizeof path, "gpu.*.%s", key);
  return find(path);
}

nvmlReturn_t number(Row *row, u64 *value) {
  if (!row) return NOT_SUPPORTED;
  if (*row->text == '!') return (nvmlReturn_t)atoi(row->text + 1);
  char *end;
  *value = row->count ? (u64)llround(sample(row)) : strtoull(row->text, &end, 0);
  if (!row->count && *end && *end != ' ' && *end != '.') fail("no number", row->path);
  return SUCCESS;
}

nvmlReturn_t text(Row *row, char *buffer, unsigned size) {
  if (!row) return NOT_SUPPORTED;
  if (*row->text == '!') return (nvmlReturn_t)atoi(row->text + 1);
  if (strlen(row->text) >= size) return INSUFFICIENT_SIZE;
  strcpy(buffer, row->text);
  return SUCCESS;
}
