/* SPDX-License-Identifier: Apache-2.0
 * To copy: a board whose output is a serial line, and which nobody sends files. */
#include "base/system/bare/board.h"

extern char tosaic_arena_start[], tosaic_arena_end[], tosaic_stand_in_start[], tosaic_stand_in_end[];
extern const char tosaic_npu_name[]; /* from `tosaic device build --npu` */

#define UART_DATA (*(volatile uint32_t*)0x40000000) /* the serial line's registers */
#define UART_STATUS (*(volatile uint32_t*)0x40000004)
#define UART_FULL 1u
#define NPU_REGISTERS 0x48102000

/* Clocks, power of the NPU, caches. */
void tosaic_board_start(void) {}

void tosaic_board_print(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    while (UART_STATUS & UART_FULL) {}
    UART_DATA = (uint32_t)text[i];
  }
}

void tosaic_board_end(int status) {
  (void)status;
  for (;;) __asm volatile("wfi");
}

uint64_t tosaic_board_nanoseconds(void) { return 0; }
uint64_t tosaic_board_cycles(void) { return 0; }
const char* tosaic_board_npu(void) { return tosaic_npu_name; }
volatile uint32_t* tosaic_board_npu_registers(void) { return (volatile uint32_t*)NPU_REGISTERS; }

/* Where the processor has a data cache: clean, and invalidate, the lines of these bytes. */
void tosaic_board_flush(const void* start, size_t bytes) { (void)start, (void)bytes; }
void tosaic_board_forget(void* start, size_t bytes) { (void)start, (void)bytes; }

tosaic_board_memory tosaic_board_arena(void) {
  return (tosaic_board_memory){tosaic_arena_start, (size_t)(tosaic_arena_end - tosaic_arena_start)};
}
tosaic_board_memory tosaic_board_stand_in_arena(void) {
  return (tosaic_board_memory){tosaic_stand_in_start, (size_t)(tosaic_stand_in_end - tosaic_stand_in_start)};
}

long tosaic_board_read(const char* name, void* to, size_t most) { return (void)name, (void)to, (void)most, -1; }
int tosaic_board_write(const char* name, const void* from, size_t bytes) {
  return (void)name, (void)from, (void)bytes, -1;
}
