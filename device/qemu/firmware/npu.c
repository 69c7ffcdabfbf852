/* SPDX-License-Identifier: Apache-2.0
 * Runs one payload on the NPU by its registers, and prints the output's bytes: no runtime, no driver, no library. The
 * payload is what `tosaic extract` writes of an Ethos-U program; PAYLOAD and INPUT name the files at build. With
 * BY_INTERRUPT the core sleeps until the NPU's interrupt instead of asking STATUS; SCRATCH is the section of its memory. */
#include "tosaic/ethosu_registers.h"

#define NPU(offset) (*(volatile uint32_t*)(0x48102000u + (offset)))
#define EMBED(name, file) \
  __asm__(".section .npu_data,\"aw\"\n.balign 16\n" #name ": .incbin \"" file "\"\n.balign 16\n.previous\n")

EMBED(payload, PAYLOAD);
EMBED(input, INPUT);
extern const uint8_t payload[], input[];
#ifndef SCRATCH
#define SCRATCH ".npu_scratch"
#endif
static uint8_t scratch[1 << 18] __attribute__((section(SCRATCH), aligned(16)));
static uint8_t fast_scratch[1 << 17] __attribute__((section(SCRATCH), aligned(16))); /* of a U65's programs */
extern uint32_t stack_top[];

static int semihost(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void print(const char* text) { semihost(0x04, text); }

static void print_number(int value) {
  char text[12], *at = text + 11;
  unsigned rest = value < 0 ? -(unsigned)value : (unsigned)value;
  for (*at = 0; at == text + 11 || rest; rest /= 10) *--at = (char)('0' + rest % 10);
  if (value < 0) *--at = '-';
  print(at), print(" ");
}

static void finish(int code) {
  const uint32_t stopped[2] = {0x20026 /* the application exits */, (uint32_t)code};
  for (;;) semihost(0x20, stopped);
}

/* A block's data, by the first letter that tells it: cmd_data, weight_data, inputs, outputs. */
static const uint32_t* block(char letter) {
  const uint8_t* at = payload;
  while (at[0] != (uint8_t)letter) at += 32 + ((*(const uint32_t*)(at + 16) + 15) & ~15u);
  return (const uint32_t*)(at + 32);
}

#ifdef BY_INTERRUPT
enum { npu_interrupt = 56 };
static volatile int done;

static void finished(void) {
  NPU(TOSAIC_ETHOSU_CMD) = TOSAIC_ETHOSU_CMD_CLEAR_IRQ;
  done = 1;
}

static void start_and_wait(void) {
  ((volatile uint32_t*)0xe000e100)[npu_interrupt / 32] = 1u << npu_interrupt % 32; /* enabled in the NVIC */
  NPU(TOSAIC_ETHOSU_CMD) = TOSAIC_ETHOSU_CMD_RUN;
  while (!done) __asm__ volatile("wfe");
  if (NPU(TOSAIC_ETHOSU_STATUS) & TOSAIC_ETHOSU_STATUS_IRQ) print("the interrupt stays\n"), finish(3);
}
#else
static void start_and_wait(void) {
  NPU(TOSAIC_ETHOSU_CMD) = TOSAIC_ETHOSU_CMD_RUN;
  while (!(NPU(TOSAIC_ETHOSU_STATUS) & TOSAIC_ETHOSU_STATUS_IRQ)) {}
}
#endif

void reset(void) {
  const uint32_t *words = block('c') + 1, *in = block('i') + 1, *out = block('o') + 1, *at;
  const uint8_t* weights = (const uint8_t*)block('w');
  uint32_t elements = 1, bytes, i;
  for (i = 0; i < 6; ++i) elements *= in[i];
  for (i = 0; i < elements * in[6]; ++i) scratch[in[7] + i] = input[i];
  while ((*words & 255) != 2) words += (*words & 255) == 1 ? 3 : 1; /* the container's other entries */
  bytes = 4 * ((*words >> 8 & 255) << 16 | *words >> 16);

  NPU(TOSAIC_ETHOSU_RESET) = 1; /* privileged and secure */
  while (NPU(TOSAIC_ETHOSU_STATUS) & TOSAIC_ETHOSU_STATUS_RESETTING) {}
  if (NPU(TOSAIC_ETHOSU_CONFIG) == 0) print("no NPU\n"), finish(2);
  NPU(TOSAIC_ETHOSU_QBASE) = (uint32_t)(words + 1);
  NPU(TOSAIC_ETHOSU_QBASE_HI) = 0;
  NPU(TOSAIC_ETHOSU_QSIZE) = bytes;
  NPU(TOSAIC_ETHOSU_BASEP + 0) = (uint32_t)weights;
  NPU(TOSAIC_ETHOSU_BASEP + 8) = (uint32_t)scratch;
  NPU(TOSAIC_ETHOSU_BASEP + 16) = (uint32_t)fast_scratch;
  start_and_wait();

  const uint32_t status = NPU(TOSAIC_ETHOSU_STATUS);
  if (status & TOSAIC_ETHOSU_STATUS_FAULTS || !(status & TOSAIC_ETHOSU_STATUS_END_REACHED)) {
    char text[160];
    tosaic_ethosu_status_text((NPU(TOSAIC_ETHOSU_CONFIG) >> 28) == 2 ? 85 : 55, status, text, sizeof text);
    print(text), print("\n"), finish(1);
  }
  for (elements = 1, i = 0; i < 6; ++i) elements *= out[i];
  for (at = out, i = 0; i < elements * at[6]; ++i) print_number((int8_t)scratch[at[7] + i]);
  print("\n"), finish(0);
}

__attribute__((section(".vectors"), used)) static const void* const vectors[16 + 96] = {
    stack_top, reset,
#ifdef BY_INTERRUPT
    [16 + npu_interrupt] = finished,
#endif
};
