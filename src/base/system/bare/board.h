/* SPDX-License-Identifier: Apache-2.0
 * What a board gives to a firmware. A port to another one is these functions, a linker script with its memories, and
 * what its start needs beyond the processor's own (device/README.md). */
#ifndef TOSAIC_BOARD_H
#define TOSAIC_BOARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  void* start;
  size_t bytes;
} tosaic_board_memory;

/* Once, before anything else: clocks, caches, power of the NPU. */
void tosaic_board_start(void);
/* Text for people: a serial line, a debugger. */
void tosaic_board_print(const char* text, size_t bytes);
/* The end of the firmware: back to the simulator or debugger where there is one, else it stops for good. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void tosaic_board_end(int status);
/* A steady clock, and the processor's cycles; 0 where nobody counts. */
uint64_t tosaic_board_nanoseconds(void);
uint64_t tosaic_board_cycles(void);
/* The NPU: "ethos-u55-128"; "": none. */
const char* tosaic_board_npu(void);
/* Its registers; null where a simulator stands in for it. */
volatile uint32_t* tosaic_board_npu_registers(void);
/* Before and after the NPU works on memory that the processor has in its caches. */
void tosaic_board_flush(const void* start, size_t bytes);
void tosaic_board_forget(void* start, size_t bytes);
/* Memory for the program, and for the simulator of an NPU, if that is linked. */
tosaic_board_memory tosaic_board_arena(void);
tosaic_board_memory tosaic_board_stand_in_arena(void);
/* The runner's files, from and to whoever started it: how many bytes were read, or -1; 0, or -1. */
long tosaic_board_read(const char* name, void* to, size_t most);
int tosaic_board_write(const char* name, const void* from, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
