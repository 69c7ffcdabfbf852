/* SPDX-License-Identifier: Apache-2.0
 * Arm's MPS3 with Corstone-300 (AN547), and QEMU's machine of that name. QEMU has no NPU: a simulator stands in. */
#include "base/system/bare/board.h"

#include "cortex-m/semihosting.h"

extern char tosaic_arena_start[], tosaic_arena_end[], tosaic_stand_in_start[], tosaic_stand_in_end[];
extern const char tosaic_npu_name[]; /* from `tosaic device build --npu` */

#define DEMCR (*(volatile uint32_t*)0xE000EDFC)
#define DWT_CTRL (*(volatile uint32_t*)0xE0001000)
#define DWT_CYCCNT (*(volatile uint32_t*)0xE0001004)

void tosaic_board_start(void) {
  DEMCR |= 1u << 24; /* trace on: the counter of cycles needs it */
  DWT_CYCCNT = 0;
  DWT_CTRL |= 1;
}
void tosaic_board_print(const char* text, size_t bytes) { semihosting_print(text, bytes); }
void tosaic_board_end(int status) { semihosting_end(status); }
uint64_t tosaic_board_nanoseconds(void) { return semihosting_nanoseconds(); }
uint64_t tosaic_board_cycles(void) { return DWT_CYCCNT; } /* QEMU does not count: 0 */
const char* tosaic_board_npu(void) { return tosaic_npu_name; }
volatile uint32_t* tosaic_board_npu_registers(void) { return (volatile uint32_t*)0x58102000; }
void tosaic_board_flush(const void* start, size_t bytes) { (void)start, (void)bytes; } /* caches are off */
void tosaic_board_forget(void* start, size_t bytes) { (void)start, (void)bytes; }
tosaic_board_memory tosaic_board_arena(void) {
  return (tosaic_board_memory){tosaic_arena_start, (size_t)(tosaic_arena_end - tosaic_arena_start)};
}
tosaic_board_memory tosaic_board_stand_in_arena(void) {
  return (tosaic_board_memory){tosaic_stand_in_start, (size_t)(tosaic_stand_in_end - tosaic_stand_in_start)};
}
long tosaic_board_read(const char* name, void* to, size_t most) { return semihosting_read(name, to, most); }
int tosaic_board_write(const char* name, const void* from, size_t bytes) {
  return semihosting_write(name, from, bytes);
}
