/* SPDX-License-Identifier: Apache-2.0
 * Files and text through the debugger or QEMU (Arm's semihosting). Files lie in the folder that the command line names.
 */
#include "cortex-m/semihosting.h"

#include <string.h>

enum {
  sys_open = 1,
  sys_close = 2,
  sys_write = 5,
  sys_read = 6,
  sys_flen = 12,
  sys_get_cmdline = 21,
  sys_exit_extended = 32,
  sys_elapsed = 48,
  sys_tickfreq = 49
};

static long call(long operation, const void* argument) {
  register long r0 __asm("r0") = operation;
  register const void* r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static long open_file(const char* name, long mode) {
  const struct {
    const char* name;
    long mode;
    unsigned long length;
  } argument = {name, mode, strlen(name)};
  return call(sys_open, &argument);
}

static long transfer(long operation, long file, const void* memory, size_t bytes) {
  const struct {
    long file;
    const void* memory;
    size_t bytes;
  } argument = {file, memory, bytes};
  return call(operation, &argument); /* how many bytes were not transferred */
}

void semihosting_print(const char* text, size_t bytes) {
  static long console = -1;
  if (console < 0) console = open_file(":tt", 4);
  transfer(sys_write, console, text, bytes);
}

void semihosting_end(int status) {
  const long argument[2] = {0x20026, status}; /* the application ended by itself */
  for (;;) call(sys_exit_extended, argument);
}

uint64_t semihosting_nanoseconds(void) {
  uint64_t ticks = 0;
  const long per_second = call(sys_tickfreq, 0);
  if (per_second <= 0 || call(sys_elapsed, &ticks) != 0) return 0;
  return per_second == 1000000000 ? ticks : ticks * 1000000000u / (uint64_t)per_second;
}

/* The folder is all of the command line that follows the first word. */
static int path_of(const char* name, char* to, size_t bytes) {
  struct {
    char* text;
    long bytes;
  } argument = {to, (long)bytes};
  if (call(sys_get_cmdline, &argument) != 0) return -1;
  const char* space = strchr(to, ' ');
  if (!space) return -1;
  const size_t folder = strlen(space + 1);
  if (folder + 1 + strlen(name) + 1 > bytes) return -1;
  memmove(to, space + 1, folder);
  to[folder] = '/';
  strcpy(to + folder + 1, name);
  return 0;
}

long semihosting_read(const char* name, void* to, size_t most) {
  char path[512];
  if (path_of(name, path, sizeof path) != 0) return -1;
  const long file = open_file(path, 1);
  if (file < 0) return -1;
  const long length = call(sys_flen, &file);
  const size_t wanted = length < 0 ? 0 : (size_t)length < most ? (size_t)length : most;
  const long missing = wanted > 0 ? transfer(sys_read, file, to, wanted) : 0;
  call(sys_close, &file);
  return length < 0 || missing != 0 ? -1 : length;
}

int semihosting_write(const char* name, const void* from, size_t bytes) {
  char path[512];
  if (path_of(name, path, sizeof path) != 0) return -1;
  const long file = open_file(path, 5);
  if (file < 0) return -1;
  const long missing = bytes > 0 ? transfer(sys_write, file, from, bytes) : 0;
  call(sys_close, &file);
  return missing != 0 ? -1 : 0;
}
