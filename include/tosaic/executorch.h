/* SPDX-License-Identifier: Apache-2.0
 * The ExecuTorch plug-in, libtosaic_executorch.so: loading it registers tosaic's delegates as backends with the
 * ExecuTorch of the process. Programs of either project then run in ExecuTorch's own runtime; nothing need be called.
 * docs/executorch.md is the manual.
 */
#ifndef TOSAIC_EXECUTORCH_H
#define TOSAIC_EXECUTORCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TOSAIC_EXECUTORCH_API
#else
#define TOSAIC_EXECUTORCH_API __attribute__((visibility("default")))
#endif

/* The version of ExecuTorch that it was built for: "1.5". */
TOSAIC_EXECUTORCH_API const char* tosaic_executorch_version(void);

/* The backends that loading it registered, separated by blanks: "TOSABackend VgfBackend TosaicVulkan
 * VulkanBackend EthosUBackend". */
TOSAIC_EXECUTORCH_API const char* tosaic_executorch_backends(void);

/* Why some or all could not be registered: another version of ExecuTorch, a backend of that name that was there before.
 * Sentences, a line each; "": nothing went wrong. The same is in ExecuTorch's log. */
TOSAIC_EXECUTORCH_API const char* tosaic_executorch_problem(void);

/* The backends that a program (.pte) needs and the process does not have, separated by blanks; "": it has all, or
 * what is there is no program. Valid until the thread calls it again. */
TOSAIC_EXECUTORCH_API const char* tosaic_executorch_missing(const void* program, size_t bytes);

/* Why a backend refused a payload or a call, in this thread and since it was asked for last: the lines that are in
 * ExecuTorch's log as well. "": none did. Valid until the thread calls it again. */
TOSAIC_EXECUTORCH_API const char* tosaic_executorch_error(void);

/* An option of programs that are loaded from now on, as text; `backend` null: of all backends. The same options can be
 * given as ExecuTorch's backend options, for one load or for the process:
 *
 *   threads    a number; 0: as many as the machine has (the default); 1: only the caller's
 *   reference  0 or 1: the slow loops that read like the standard
 *   device     the device that must be there: "ethos-u55-128"
 *   heap       0 or 1: tensors' memory from the heap and not from the allocator of ExecuTorch's method
 *   log        0: nothing; 1: a line when a payload is opened; 2: a line per operation
 *
 * Returns 0, or 1 for what is not known (said in ExecuTorch's log). */
TOSAIC_EXECUTORCH_API int tosaic_executorch_set(const char* backend, const char* key, const char* value);

#ifdef __cplusplus
}
#endif
#endif
