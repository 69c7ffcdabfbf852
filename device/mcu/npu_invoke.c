/* SPDX-License-Identifier: Apache-2.0 */
/* How the NPU is driven. Choose one when you compile this file:
     (default)                  its registers, at NPU_BASE; the program waits until it is done
     TOSAIC_NPU_DRIVER          Arm's ethos-u-core-driver: ethosu_invoke_v3, its weak functions and its interrupt
     TOSAIC_NPU_SIMULATOR       tosaic's simulator, tosaic/ethosu.h: no hardware at all
   Where weights and scratch memory are behind a data cache, define TOSAIC_NPU_FLUSH and TOSAIC_NPU_INVALIDATE. */
#ifndef TOSAIC_NPU_FLUSH
#define TOSAIC_NPU_FLUSH(address, bytes) ((void)(address), (void)(bytes))
#endif
#ifndef TOSAIC_NPU_INVALIDATE
#define TOSAIC_NPU_INVALIDATE(address, bytes) ((void)(address), (void)(bytes))
#endif

static int last_status;

typedef struct {
  void* base;
  size_t bytes;
} region;

#if defined(TOSAIC_NPU_DRIVER)
#include <ethosu_driver.h>
static int invoke(const unsigned char* commands, size_t bytes, region* r, int count) {
  uint64_t bases[8];
  size_t sizes[8];
  for (int i = 0; i < count; ++i) bases[i] = (uint64_t)(uintptr_t)r[i].base, sizes[i] = r[i].bytes;
  struct ethosu_driver* driver = ethosu_reserve_driver();
  const int said = driver ? ethosu_invoke_v3(driver, commands, (int)bytes, bases, sizes, count, NULL) : -1;
  if (driver) ethosu_release_driver(driver);
  return said;
}
#elif defined(TOSAIC_NPU_SIMULATOR)
#include <tosaic/ethosu.h>
static int invoke(const unsigned char* commands, size_t bytes, region* r, int count) {
  tosaic_ethosu_stream* stream = NULL;
  tosaic_ethosu_region memory[8];
  for (int i = 0; i < count; ++i) memory[i].base = r[i].base, memory[i].bytes = r[i].bytes;
  int said = tosaic_ethosu_open(commands, bytes, r[0].base, r[0].bytes, NULL, &stream, NULL);
  if (said == 0) {
    memory[0].base = NULL; /* the weights given just now */
    said = tosaic_ethosu_run(stream, memory, (size_t)count, NULL, NULL, NULL);
    tosaic_ethosu_close(stream);
  }
  return said;
}
#else
#ifndef NPU_BASE
#define NPU_BASE 0x48102000u /* Corstone-300 */
#endif
#define NPU(offset) (*(volatile uint32_t*)(uintptr_t)(NPU_BASE + (offset)))
enum {
  NPU_ID = 0x00,
  NPU_STATUS = 0x04,
  NPU_CMD = 0x08,
  NPU_RESET = 0x0c,
  NPU_QBASE = 0x10,
  NPU_QCONFIG = 0x1c,
  NPU_QSIZE = 0x20,
  NPU_CONFIG = 0x28,
  NPU_REGIONCFG = 0x3c,
  NPU_BASEP = 0x80
};
/* STATUS: 0 running, 1 interrupt, 2 bus error, 3 resetting, 4 commands not understood, 5 end reached, 8 memory error */
static int invoke(const unsigned char* commands, size_t bytes, region* r, int count) {
  /* The container: words; CONFIG and ID that the commands are made for, then the commands. */
  const uint32_t *word = (const uint32_t*)(const void*)commands, *const end = word + bytes / 4;
  if (word == end || *word++ != 0x31504f43u /* COP1 */) return -2;
  const uint32_t* stream = NULL;
  uint32_t words = 0;
  while (word < end && !stream) {
    const uint32_t tag = *word++, id = tag & 0xff;
    if (id == 1 && word + 2 <= end) {
      if (word[0] != NPU(NPU_CONFIG)) return -3; /* made for another NPU, or there is none */
      word += 2;
    } else if (id == 2) {
      words = (tag & 0xff00) << 8 | tag >> 16;
      stream = word;
    } else if (id != 5) {
      return -2;
    }
  }
  if (!stream || words > (uint32_t)(end - stream)) return -2;
  NPU(NPU_RESET) = 1; /* privileged and secure */
  while (NPU(NPU_STATUS) & 8) {}
  NPU(NPU_QCONFIG) = 0;
  NPU(NPU_REGIONCFG) = 0;
  NPU(NPU_QBASE) = (uint32_t)(uintptr_t)stream;
  NPU(NPU_QBASE + 4) = 0;
  NPU(NPU_QSIZE) = words * 4;
  for (int i = 0; i < count; ++i) {
    NPU(NPU_BASEP + 8 * i) = (uint32_t)(uintptr_t)r[i].base;
    NPU(NPU_BASEP + 8 * i + 4) = 0;
  }
  NPU(NPU_CMD) = 1; /* run */
  uint32_t status;
  do status = NPU(NPU_STATUS);
  while ((status & 1) || !(status & 0x136));
  NPU(NPU_CMD) = 2; /* clears the interrupt */
  return status & 0x20 && !(status & 0x114) ? 0 : (int)(status & 0x1ff);
}
#endif
