/* SPDX-License-Identifier: Apache-2.0
 * Runs Ethos-U command streams on this computer: U55, U65 and U85, as Vela compiles them.
 *
 * A functional simulation, checked against TOSA and not against silicon; it knows no cycles. What cannot be decided
 * from public facts is refused with a reason, never guessed. No function throws, prints or keeps the caller's memory
 * beyond what is said here; one stream must not be run by two threads at once, different streams may.
 *
 *   open      a command stream (COP1 or COP2) and the constants that it reads (weights, scales, tables)
 *   describe  product, memory that the commands reach, and a listing
 *   run       the commands, on memory that the caller lends
 *   close
 */
#ifndef TOSAIC_ETHOSU_H
#define TOSAIC_ETHOSU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TOSAIC_ETHOSU_API
#if defined(_WIN32) && defined(TOSAIC_EXPORTS)
#define TOSAIC_ETHOSU_API __declspec(dllexport)
#elif defined(_WIN32)
#define TOSAIC_ETHOSU_API
#else
#define TOSAIC_ETHOSU_API __attribute__((visibility("default")))
#endif
#endif

#define TOSAIC_ETHOSU_REGIONS 8

typedef struct tosaic_ethosu_stream tosaic_ethosu_stream;

enum tosaic_ethosu_status {
  TOSAIC_ETHOSU_OK = 0,
  TOSAIC_ETHOSU_INVALID = 1,     /* the stream breaks a rule: not a container, garbage, an address outside its region */
  TOSAIC_ETHOSU_UNSUPPORTED = 2, /* legal perhaps, but what the hardware would do is not known or not implemented */
  TOSAIC_ETHOSU_ARGUMENT = 3,    /* the caller's arguments: null, too many regions */
  TOSAIC_ETHOSU_MEMORY = 4       /* the process has no more memory */
};

typedef struct {
  char code[48];     /* "ethosu.out-of-region" */
  char message[464]; /* "command stream, byte 0x1a4: OP_CONV: ..." */
} tosaic_ethosu_error;

typedef struct {
  uint32_t struct_bytes; /* sizeof(tosaic_ethosu_options) */
  uint32_t threads;      /* 0: as many as the machine has, at most 8 */
  uint32_t plain_loops;  /* 1: the slow reference loops */
  double most_work;      /* multiplications that one run may take; 0: 1e13 */
} tosaic_ethosu_options;

typedef struct {
  uint32_t product; /* 55, 65 or 85 */
  uint32_t macs;
  uint32_t container_version;    /* 1: COP1, 2: COP2 */
  uint32_t config_word, id_word; /* as the stream states them: a driver compares them with its device */
  uint32_t commands, operations;
  uint64_t region_bytes[TOSAIC_ETHOSU_REGIONS]; /* what the commands reach; 0: not used */
  uint8_t region_written[TOSAIC_ETHOSU_REGIONS];
} tosaic_ethosu_info;

typedef struct {
  void* base;
  uint64_t bytes;
} tosaic_ethosu_region;

typedef void (*tosaic_ethosu_line)(void* user, const char* line);

/* Copies both memories. `options` and `error` may be null. */
TOSAIC_ETHOSU_API int tosaic_ethosu_open(const void* commands, size_t command_bytes, const void* constants,
                                         size_t constant_bytes, const tosaic_ethosu_options* options,
                                         tosaic_ethosu_stream** stream, tosaic_ethosu_error* error);

/* Fills `info`. With `line`, a listing besides: one line per operation; with `registers`, one per command as well. */
TOSAIC_ETHOSU_API int tosaic_ethosu_describe(const tosaic_ethosu_stream* stream, tosaic_ethosu_info* info,
                                             int registers, tosaic_ethosu_line line, void* user);

/* regions[i] is region i, for i < count. A null base of region 0 means the constants given to open (which saves
 * checking that the weights are still the same); other null bases are regions of no bytes. With `trace`, a line per
 * operation: offset, name, operands, checksum of its result. On an error the memory may be partly written. */
TOSAIC_ETHOSU_API int tosaic_ethosu_run(tosaic_ethosu_stream* stream, const tosaic_ethosu_region* regions, size_t count,
                                        tosaic_ethosu_line trace, void* user, tosaic_ethosu_error* error);

/* Frees what open gave. NULL is accepted. */
TOSAIC_ETHOSU_API void tosaic_ethosu_close(tosaic_ethosu_stream* stream);

#ifdef __cplusplus
}
#endif
#endif
