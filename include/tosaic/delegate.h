/* SPDX-License-Identifier: Apache-2.0
 * A delegate runs one kind of payload inside a program: a TOSA flatbuffer, a VGF file, an Ethos-U command stream. This
 * is how a runtime calls it: tosaic's own, a plug-in of another one, a loop on a board.
 *
 *   open      a payload as the program holds it; no types are needed, the payload knows its own
 *   describe  its inputs and outputs: how many, dtype, rank, least and most sizes, name where one is known
 *   sizes     of the outputs, for inputs of these sizes: only where describe leaves a choice
 *   execute   once more, on the caller's tensors with their actual sizes
 *   fetch     an output of that execution which stayed with the payload
 *   profile   where the time of the last execution went
 *   reset     what the payload keeps from one execution to the next is again what it was when opened
 *   clone     the same payload once more, for another thread; what does not change is shared
 *   close
 *
 * Every function returns a tosaic_delegate_status and, where it is not OK, fills `error` (which may be null). Nothing
 * throws, prints or keeps global state; no function keeps the caller's memory beyond what is said here.
 *
 * Threads: one open payload executes one call at a time (a second one is refused with ARGUMENT, "delegate.busy");
 * different ones may run at the same time. The table may be used by any thread.
 *
 * Versions: the caller sets struct_bytes to sizeof; another size is refused with ARGUMENT, "delegate.version". Structs
 * without struct_bytes are elements of arrays and stay as they are as long as TOSAIC_DELEGATE_VERSION does.
 */
#ifndef TOSAIC_DELEGATE_H
#define TOSAIC_DELEGATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(TOSAIC_EXPORTS)
#define TOSAIC_DELEGATE_API __declspec(dllexport)
#elif defined(_WIN32)
#define TOSAIC_DELEGATE_API
#else
#define TOSAIC_DELEGATE_API __attribute__((visibility("default")))
#endif

#define TOSAIC_DELEGATE_VERSION 5

typedef struct tosaic_delegate tosaic_delegate; /* an open payload */

/* In brackets, the error of ExecuTorch's that says the same. */
enum tosaic_delegate_status {
  TOSAIC_DELEGATE_OK = 0,
  TOSAIC_DELEGATE_INVALID = 1,      /* the payload is damaged or breaks a rule of its format [InvalidProgram] */
  TOSAIC_DELEGATE_UNSUPPORTED = 2,  /* perhaps right, but not known or not implemented here [NotSupported] */
  TOSAIC_DELEGATE_ARGUMENT = 3,     /* the caller's: null, a count, a dtype, a size [InvalidArgument] */
  TOSAIC_DELEGATE_MEMORY = 4,       /* the allocator or the system has no more [MemoryAllocationFailed] */
  TOSAIC_DELEGATE_INCOMPATIBLE = 5, /* made for another device, or none is here [DelegateInvalidCompatibility] */
  TOSAIC_DELEGATE_FAILED = 6,       /* the device failed while it ran [Internal] */
  TOSAIC_DELEGATE_INTERNAL = 7      /* a defect of the delegate [Internal] */
};

/* All text that a delegate gives, here and below, is UTF-8 without control characters: what names in a payload have of
 * both is shown as \xff and \x1b. Always terminated, cut between characters where it is longer. */
typedef struct {
  uint32_t struct_bytes; /* sizeof(tosaic_delegate_error), set by the caller */
  uint32_t line;         /* in `file`; 0: none */
  char code[48];         /* stable: "delegate.arguments", "vela.truncated" */
  char message[512];     /* one sentence */
  char notes[1024];      /* facts, a line each */
  char help[256];        /* the hint */
  char file[256];        /* where: the name given to open, or a location in the user's source that the payload names */
} tosaic_delegate_error;

/* Elements in memory: BOOL and I4 take one byte each, I48 eight, everything little-endian. */
enum tosaic_dtype {
  TOSAIC_DTYPE_OPAQUE = 0, /* the payload knows only how many bytes an element has */
  TOSAIC_DTYPE_BOOL = 1,
  TOSAIC_DTYPE_I4 = 2,
  TOSAIC_DTYPE_I8 = 3,
  TOSAIC_DTYPE_U8 = 4,
  TOSAIC_DTYPE_I16 = 5,
  TOSAIC_DTYPE_I32 = 6,
  TOSAIC_DTYPE_I48 = 7,
  TOSAIC_DTYPE_I64 = 8,
  TOSAIC_DTYPE_F16 = 9,
  TOSAIC_DTYPE_BF16 = 10,
  TOSAIC_DTYPE_F32 = 11,
  TOSAIC_DTYPE_F64 = 12,
  TOSAIC_DTYPE_F8E4M3 = 13,
  TOSAIC_DTYPE_F8E5M2 = 14
};

/* ---- what open is given; the structs themselves are read during the call only */

typedef struct {
  const char* key;
  const void* value;
  size_t bytes;
} tosaic_delegate_spec;

typedef struct {
  uint32_t struct_bytes;
  const char* name; /* for messages: "model.pte (delegate 0)"; may be null */
  /* The bytes behind the delegate's id, at any alignment. They stay valid and unchanged until close. */
  const void* payload;
  size_t payload_bytes;
  /* The compile specs of the program, read during open only. What a delegate does not know it ignores. */
  const tosaic_delegate_spec* specs;
  size_t spec_count;
  /* Data that the program keeps outside the payload, by key. Called during open only; returns 0 and the bytes, which
   * stay valid until close, or another number when there is no such key. May be null: there are no data. */
  int (*lookup)(void* user, const char* key, const void** data, size_t* bytes);
  void* lookup_user;
} tosaic_delegate_program;

enum tosaic_delegate_log_level {
  TOSAIC_DELEGATE_LOG_NONE = 0,
  TOSAIC_DELEGATE_LOG_NOTE = 1, /* a line when opened: the device, its memory */
  TOSAIC_DELEGATE_LOG_TRACE = 2 /* a line per operation where the delegate has operations; slow */
};

typedef struct {
  uint32_t struct_bytes;
  uint32_t log_level; /* lines of this level and of those below it are wanted */
  /* The memory that tensors need while the payload is open: arenas, scratch. All of it is taken during open; alignment
   * is a power of two up to 64; null means that there is none. `release` may be null: the memory then goes with its
   * owner. With `allocate` null, the process's heap. Bookkeeping and repacked weights are on the heap in any case, and
   * what a GPU holds is the driver's. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* memory, size_t bytes);
  void* allocate_user;
  /* Called by the thread that calls open or execute; may be null. The text has no line feed and is valid during the
   * call. It must not throw. */
  void (*log)(void* user, int level, const char* line);
  void* log_user;
} tosaic_delegate_host;

typedef struct {
  uint32_t struct_bytes;
  uint32_t threads;   /* 0: as many as the machine has; 1: only the caller's */
  uint32_t reference; /* 1: the slow loops that read like the standard, instead of the fast ones */
  uint32_t profile;   /* 1: keep the time per operation, for profile; `measure` changes it */
  /* The device that must be there. EthosUBackend: "ethos-u55-128"; VGF on Vulkan: an index or a part of the name.
   * VulkanBackend: "cpu", "vulkan", "vulkan:" and one of these.
   * Null or empty: any. */
  const char* device;
} tosaic_delegate_options;

/* ---- what describe gives; the memory is the delegate's and stays valid until close */

enum tosaic_tensor_flags {
  TOSAIC_TENSOR_ANY_DTYPE = 1, /* any dtype with elements of element_bytes is taken: the payload keeps no more */
  TOSAIC_TENSOR_ANY_SHAPE = 2, /* any sizes with as many elements are taken: the payload pads dims with ones */
  TOSAIC_TENSOR_WIDER = 4,     /* I64 is taken for I32 and F64 for F32; integers beyond 32 bits saturate */
  TOSAIC_TENSOR_STAYS = 8      /* of an output: it may stay with the payload, see tosaic_delegate_tensor */
};

typedef struct {
  const char* name; /* "" where the payload keeps none */
  uint32_t
      dtype; /* tosaic_dtype; a tensor of I8 may be passed as U8: TOSA has no unsigned quantised values of its own */
  uint32_t element_bytes;
  uint32_t rank;
  uint32_t flags; /* tosaic_tensor_flags */
  /* `rank` sizes each, outermost first; null for rank 0. Where they differ, a call chooses a size between the two. */
  const int64_t* least;
  const int64_t* most;
} tosaic_delegate_tensor_info;

typedef struct {
  uint32_t struct_bytes; /* set by the caller */
  uint32_t input_count, output_count;
  const tosaic_delegate_tensor_info* tensors; /* inputs, then outputs: the order of execute */
  const char* device;                         /* for people: "cpu", "ethos-u55-128 (simulated)" */
  uint64_t memory_bytes;                      /* taken through `allocate` */
} tosaic_delegate_info;

/* ---- what execute is given */

typedef struct {
  void* data;     /* dense, row-major, at any alignment; null only when bytes is 0. Inputs are not written. */
  uint64_t bytes; /* the product of dims and the element's bytes: what is there, checked */
  uint32_t dtype; /* tosaic_dtype; OPAQUE where the caller does not know either: then only bytes are compared */
  uint32_t rank;
  const int64_t* dims; /* actual sizes, outermost first; null for rank 0 */
  /* What one execution gives and the next one takes need not leave the device. Of an output with TOSAIC_TENSOR_STAYS,
   * 1: it stays with the payload, nothing is written to `data`. Of an input: 0, or 1 + the number of an output of as
   * many bytes that stayed in the last execution: that is the input, and `data` is not read. */
  uint32_t stays;
} tosaic_delegate_tensor;

/* ---- what profile gives, valid until the next execute or close */

enum tosaic_delegate_clock {
  TOSAIC_DELEGATE_CLOCK_HOST = 0,  /* this computer's time, also where it simulates a device */
  TOSAIC_DELEGATE_CLOCK_DEVICE = 1 /* the device's own clock */
};

typedef struct {
  const char* name;  /* "conv2d_i8: tosa.conv2d" */
  const char* value; /* what it computes (of several operations run as one, the last), as the payload names it, or "" */
  const char*
      place; /* where the user's program asks for it: "features.3.conv, model.py:6"; "": the payload does not say */
  double seconds;
} tosaic_delegate_time;

typedef struct {
  uint32_t struct_bytes; /* set by the caller */
  uint32_t clock;        /* tosaic_delegate_clock */
  double seconds;        /* of the last execution as a whole; 0 before the first */
  /* The operations in the order in which they ran. Empty unless options.profile was set and the delegate can tell them
   * apart: the CPU can, and a GPU its dispatches where it has a clock; a command stream runs as one. */
  const tosaic_delegate_time* times;
  size_t count;
} tosaic_delegate_profile;

/* ---- the table */

typedef struct tosaic_delegate_api {
  uint32_t struct_bytes; /* sizeof(tosaic_delegate_api) of the delegate's header: a caller compares it with its own */
  uint32_t version;      /* TOSAIC_DELEGATE_VERSION, the same */
  const char* id;        /* what programs call it: "TOSABackend" */
  void* user;            /* the first argument of open */

  /* `host` and `options` may be null. On an error *delegate is null and nothing is held. All that can fail for reasons
   * of the payload, the machine or its memory fails here. */
  int (*open)(void* user, const tosaic_delegate_program* program, const tosaic_delegate_host* host,
              const tosaic_delegate_options* options, tosaic_delegate** delegate, tosaic_delegate_error* error);
  int (*describe)(const tosaic_delegate* delegate, tosaic_delegate_info* info, tosaic_delegate_error* error);
  /* Where the least and the most sizes of an input differ: `dims[i]` receives the sizes of output i, as many as its
   * rank, for a call with these `count` inputs (data is not looked at). May take the time of opening when sizes are
   * new. */
  int (*sizes)(tosaic_delegate* delegate, const tosaic_delegate_tensor* inputs, size_t count, int64_t* const* dims,
               tosaic_delegate_error* error);
  /* `count` is input_count + output_count. An output may lie over an input, outputs not over each other. On an error
   * the outputs may be partly written, and the payload may be executed again. */
  int (*execute)(tosaic_delegate* delegate, const tosaic_delegate_tensor* tensors, size_t count,
                 tosaic_delegate_error* error);
  /* Writes the output of that number, which stayed with the payload in the last execution and has `bytes` bytes. It
   * still is there then. An execution that was refused with ARGUMENT leaves what stayed in the one before. */
  int (*fetch)(tosaic_delegate* delegate, uint32_t output, void* data, uint64_t bytes, tosaic_delegate_error* error);
  int (*profile)(const tosaic_delegate* delegate, tosaic_delegate_profile* profile, tosaic_delegate_error* error);
  /* on: 1 or 0, as options.profile; from the next execution on. */
  int (*measure)(tosaic_delegate* delegate, uint32_t on, tosaic_delegate_error* error);
  /* Payloads with state (TOSA's VARIABLEs, memory of an NPU that the commands do not write before they read it) keep it
   * from one execution to the next. */
  int (*reset)(tosaic_delegate* delegate, tosaic_delegate_error* error);
  /* Another open payload in the state that the first one had when it was opened, with the same options. Packed weights
   * are shared, tensors' memory comes from `host`, which may be null; the caller's payload bytes stay until both are
   * closed. The first one may be executing meanwhile. UNSUPPORTED ("delegate.clone") where nothing could be shared:
   * then open does the same. */
  int (*clone)(const tosaic_delegate* delegate, const tosaic_delegate_host* host, tosaic_delegate** made,
               tosaic_delegate_error* error);
  void (*close)(tosaic_delegate* delegate); /* null is nothing */
} tosaic_delegate_api;

/* tosaic's own. Each is in a library of its own; the tables are constant and always there. */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_tosa_delegate(void);         /* "TOSABackend", on the CPU */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vgf_delegate(void);          /* "VgfBackend", on the CPU */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vgf_vulkan_delegate(void);   /* "VgfBackend", by ML extensions */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vulkan_delegate(void);       /* "TosaicVulkan", compute shaders */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_tosa_compute_delegate(void); /* "TOSABackend", by such shaders */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vgf_compute_delegate(void);  /* "VgfBackend", by such shaders */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_ethos_u_delegate(void);      /* "EthosUBackend", simulated */
/* What ExecuTorch's own Vulkan flow writes; these two link PyTorch's operators. */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vulkan_backend_delegate(void); /* "VulkanBackend", on the CPU */
TOSAIC_DELEGATE_API const tosaic_delegate_api* tosaic_vulkan_backend_compute_delegate(void); /* and by shaders */

#ifdef __cplusplus
}
#endif
#endif
