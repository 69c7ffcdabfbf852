/* SPDX-License-Identifier: Apache-2.0
 * The start of a Cortex-M with an FPU: vectors, memory as C expects it, constructors, main. */
#include <stdint.h>
#include <string.h>

#include "base/system/bare/board.h"

extern uint32_t tosaic_stack_top, tosaic_data_start, tosaic_data_end, tosaic_data_source, tosaic_bss_start,
    tosaic_bss_end;
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
int main(void);

#define REGISTER(address) (*(volatile uint32_t*)(address))

void tosaic_reset(void);
void tosaic_reset(void) {
  REGISTER(0xE000ED88) |= 0xFu << 20; /* CPACR: FPU and MVE */
  __asm volatile("dsb\n isb" ::: "memory");
  memcpy(&tosaic_data_start, &tosaic_data_source, (size_t)((char*)&tosaic_data_end - (char*)&tosaic_data_start));
  memset(&tosaic_bss_start, 0, (size_t)((char*)&tosaic_bss_end - (char*)&tosaic_bss_start));
  tosaic_board_start();
  for (void (**constructor)(void) = __init_array_start; constructor < __init_array_end; ++constructor) (*constructor)();
  tosaic_board_end(main());
}

static void put(const char* text) { tosaic_board_print(text, strlen(text)); }
static void put_register(const char* name, uint32_t value) {
  char text[] = " 0x00000000";
  for (int i = 10; i > 2; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  put(name);
  put(text);
}

void tosaic_fault(const uint32_t* frame);
void tosaic_fault(const uint32_t* frame) {
  put("error[device.fault]: the processor stopped:");
  put_register(" pc", frame[6]);
  put_register(", lr", frame[5]);
  put_register(", CFSR", REGISTER(0xE000ED28));
  put_register(", BFAR", REGISTER(0xE000ED38));
  put("\n");
  tosaic_board_end(3);
}

__attribute__((naked)) static void on_fault(void) {
  __asm volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n b tosaic_fault");
}

__attribute__((section(".vectors"), used)) static const void* const vectors[16] = {
    &tosaic_stack_top, tosaic_reset, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault,
    on_fault,          on_fault,     on_fault, on_fault, on_fault, on_fault, on_fault, on_fault};

/* What the C library asks of a system, though nothing calls it. */
int _close(int file);
int _close(int file) { return (void)file, -1; }
int _fstat(int file, void* status);
int _fstat(int file, void* status) { return (void)file, (void)status, -1; }
int _isatty(int file);
int _isatty(int file) { return (void)file, 0; }
int _lseek(int file, int offset, int from);
int _lseek(int file, int offset, int from) { return (void)file, (void)offset, (void)from, -1; }
int _read(int file, char* to, int bytes);
int _read(int file, char* to, int bytes) { return (void)file, (void)to, (void)bytes, -1; }
int _write(int file, const char* from, int bytes);
int _write(int file, const char* from, int bytes) {
  (void)file;
  tosaic_board_print(from, (size_t)bytes);
  return bytes;
}
int _getpid(void);
int _getpid(void) { return 1; }
int _kill(int process, int signal);
int _kill(int process, int signal) { return (void)process, (void)signal, -1; }
__attribute__((noreturn)) void _exit(int status);
void _exit(int status) { tosaic_board_end(status); }
