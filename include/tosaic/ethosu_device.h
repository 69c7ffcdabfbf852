/* SPDX-License-Identifier: Apache-2.0
 * An Ethos-U55, U65 or U85 as a device: its registers, its interrupt line and its accesses to memory, over the
 * simulator (ethosu.h). For what runs drivers and firmware without the chip: tests, emulators of boards.
 *
 * It is as functional as the simulator. A run ends as on hardware, or in the fault that the hardware's registers
 * describe. What nobody outside knows (the simulator refuses it) ends in a command parse error, and the host hears why:
 * never in a result that may be wrong. The cycle counter counts a floor, not a measurement (PMU, below).
 *
 *   open      the device, after its power-on reset
 *   read      a register
 *   write     a register; a write to CMD runs the commands
 *   close
 *
 * No function throws or prints. One device must not be used by two threads at once.
 */
#ifndef TOSAIC_ETHOSU_DEVICE_H
#define TOSAIC_ETHOSU_DEVICE_H

#include "tosaic/ethosu.h"
#include "tosaic/ethosu_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tosaic_ethosu_device tosaic_ethosu_device;

typedef struct {
  uint32_t struct_bytes; /* sizeof(tosaic_ethosu_device_options) */
  uint32_t product;      /* 55, 65 or 85 */
  uint32_t macs;         /* per cycle: 32 to 2048, as the product has them */
  uint32_t config, id;   /* what CONFIG and ID say; 0: what Vela's programs for this product expect */
  uint32_t deferred; /* 1: a run that CMD starts waits for tosaic_ethosu_device_work; 0: it is done inside the write */
  uint32_t threads;  /* 0: as many as the machine has, at most 8 */
  double most_work;  /* as in tosaic_ethosu_options */
} tosaic_ethosu_device_options;

/* What the device is connected to. Either `memory`, or `read` and `write`, must be there; the rest may be null. */
typedef struct {
  void* user;
  /* Memory at a bus address, directly: a pointer to the byte there, or null where nothing can be read (or written, with
   * `writes`). `*bytes` comes as how many are wanted, and is set to how many lie there in one piece, at most that. */
  void* (*memory)(void* user, uint64_t address, uint64_t* bytes, int writes);
  /* The device is done with what `memory` gave. */
  void (*release)(void* user, uint64_t address, void* memory, uint64_t bytes, int written);
  /* Memory by copies, 0: done, anything else: there is no memory, or it may not be written. What a run needs is read
   * before it and written after it. */
  int (*read)(void* user, uint64_t address, void* to, uint64_t bytes);
  int (*write)(void* user, uint64_t address, const void* from, uint64_t bytes);
  /* The interrupt line changed. It may use the device. */
  void (*interrupt)(void* user, int level);
  /* Why a run ended in a fault, in the simulator's words, and use of the registers that hardware would ignore. */
  void (*report)(void* user, const char* code, const char* message);
} tosaic_ethosu_host;

/* TOSAIC_ETHOSU_OK, or TOSAIC_ETHOSU_ARGUMENT and TOSAIC_ETHOSU_MEMORY. Copies both structures. `error` may be null. */
TOSAIC_ETHOSU_API int tosaic_ethosu_device_open(const tosaic_ethosu_device_options* options,
                                                const tosaic_ethosu_host* host, tosaic_ethosu_device** device,
                                                tosaic_ethosu_error* error);

/* A 32-bit register. One that the product does not have is 0, and ignores writes. */
TOSAIC_ETHOSU_API uint32_t tosaic_ethosu_device_read(tosaic_ethosu_device* device, uint32_t offset);
TOSAIC_ETHOSU_API void tosaic_ethosu_device_write(tosaic_ethosu_device* device, uint32_t offset, uint32_t value);

/* How many bytes of addresses its registers take. */
TOSAIC_ETHOSU_API uint32_t tosaic_ethosu_device_register_bytes(const tosaic_ethosu_device* device);

/* Does the run that waits, with `deferred`. 1: there was one. */
TOSAIC_ETHOSU_API int tosaic_ethosu_device_work(tosaic_ethosu_device* device);

/* The reset line, as at power-on. */
TOSAIC_ETHOSU_API void tosaic_ethosu_device_reset(tosaic_ethosu_device* device);

/* Frees what open gave. NULL is accepted. */
TOSAIC_ETHOSU_API void tosaic_ethosu_device_close(tosaic_ethosu_device* device);

#ifdef __cplusplus
}
#endif

#endif /* TOSAIC_ETHOSU_DEVICE_H */
