/* SPDX-License-Identifier: Apache-2.0
 * What the C programs that call a delegate share. */
#ifndef TEST_DELEGATES_CALL_H
#define TEST_DELEGATES_CALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tosaic/delegate.h"

extern int checks, failures;
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define CHECK(holds)                                                                                  \
  do {                                                                                                \
    ++checks;                                                                                         \
    if (!(holds)) {                                                                                   \
      if (++failures <= 20) fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds); \
    }                                                                                                 \
  } while (0)

/* A file's bytes at an address that is exactly as long as they are. */
typedef struct {
  unsigned char* data;
  size_t bytes;
} block;

/* One payload with a call that is known to be right. */
typedef struct {
  const tosaic_delegate_api* api;
  block payload, inputs, outputs; /* tensors one after the other */
  tosaic_delegate_program program;
  tosaic_delegate_options options;
} sample;

/* An allocator that counts, and fails at the n-th call. */
typedef struct {
  long calls, live, fail_at; /* 0: never */
  int misaligned;
} counted;

/* A call's tensors, in memory of their own. */
typedef struct {
  tosaic_delegate_tensor* tensors;
  size_t count, inputs;
  unsigned char** memory;
} call;

block exactly(const void* data, size_t bytes);
tosaic_delegate_error no_error(void);
tosaic_delegate_host counting_host(counted* memory);
tosaic_delegate_info described(const sample* s, const tosaic_delegate* delegate);
/* `shift`: bytes by which each tensor lies off its alignment. */
call make_call(const sample* s, const tosaic_delegate* delegate, size_t shift);
int as_expected(const sample* s, const call* c);
void free_call(call* c);

void wrong_calls(const sample* s);
void wrong_openings(const sample* s);
void cut_payloads(const sample* s);
void failing_allocators(const sample* s);
void failing_heap(const sample* s);

/* bad_memory.cpp: operator new fails at the n-th allocation from now on (0: never); how many there were since. */
void fail_new_at(long n);
long news_since(void);

#endif
