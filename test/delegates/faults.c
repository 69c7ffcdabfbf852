/* SPDX-License-Identifier: Apache-2.0
 * What a delegate must refuse, with a status and a code and nothing else: wrong calls, cut payloads, no memory. */
#include "call.h"

/* ---- calls that are not what describe says */

static void refused(const sample* s, tosaic_delegate* delegate, const tosaic_delegate_tensor* tensors, size_t count) {
  tosaic_delegate_error error = no_error();
  CHECK(s->api->execute(delegate, tensors, count, &error) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(strcmp(error.code, "delegate.arguments") == 0 && strlen(error.message) > 0);
  CHECK(s->api->execute(delegate, tensors, count, NULL) == TOSAIC_DELEGATE_ARGUMENT);
}

static void wrong_tensor(const sample* s, tosaic_delegate* delegate, const tosaic_delegate_info* info, call* c,
                         size_t i) {
  tosaic_delegate_tensor* tensor = &c->tensors[i];
  const tosaic_delegate_tensor right = *tensor;
  int64_t dims[16];
  memcpy(dims, right.dims, right.rank * sizeof *dims);
#define REFUSED(change)                         \
  do {                                          \
    change;                                     \
    refused(s, delegate, c->tensors, c->count); \
    *tensor = right;                            \
  } while (0)
  REFUSED(tensor->data = NULL);
  REFUSED(tensor->bytes -= 1);
  REFUSED(tensor->bytes += 1);
  REFUSED(tensor->bytes = 0);
  REFUSED(tensor->dims = NULL);
  REFUSED(tensor->rank += 1; tensor->dims = dims; dims[right.rank] = 2; tensor->bytes *= 2);
  REFUSED(tensor->dtype = 99);
  REFUSED(tensor->dtype = info->tensors[i].element_bytes == 8 ? TOSAIC_DTYPE_I8 : TOSAIC_DTYPE_F64);
  for (uint32_t d = 0; d < right.rank; ++d) {
    tensor->dims = dims;
    const int64_t size = dims[d];
    const int64_t others[] = {size + 1, size - 1, 0, -1, -size, INT64_MAX, INT64_MIN};
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k) {
      dims[d] = others[k];
      refused(s, delegate, c->tensors, c->count);
    }
    dims[d] = size;
    *tensor = right;
  }
#undef REFUSED
}

/* Of these payloads there is one answer. */
static void says_sizes(const sample* s, tosaic_delegate* delegate, const call* c) {
  enum { most = 8 };
  int64_t sizes[most][most], *places[most];
  for (size_t i = 0; i < most; ++i) places[i] = sizes[i];
  CHECK(s->api->sizes(delegate, c->tensors, c->inputs, places, NULL) == TOSAIC_DELEGATE_OK);
  for (size_t i = c->inputs; i < c->count; ++i)
    for (uint32_t k = 0; k < c->tensors[i].rank; ++k) CHECK(c->tensors[i].dims[k] == sizes[i - c->inputs][k]);
  CHECK(s->api->sizes(NULL, c->tensors, c->inputs, places, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->sizes(delegate, NULL, c->inputs, places, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->sizes(delegate, c->tensors, c->inputs, NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->sizes(delegate, c->tensors, c->count, places, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate_tensor first = c->tensors[0];
  c->tensors[0].bytes += 4;
  CHECK(s->api->sizes(delegate, c->tensors, c->inputs, places, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  c->tensors[0] = first;
}

void wrong_calls(const sample* s) {
  tosaic_delegate* delegate = NULL;
  CHECK(s->api->open(s->api->user, &s->program, NULL, &s->options, &delegate, NULL) == TOSAIC_DELEGATE_OK);
  const tosaic_delegate_info info = described(s, delegate);
  call c = make_call(s, delegate, 0);
  for (size_t i = 0; i < c.count; ++i) wrong_tensor(s, delegate, &info, &c, i);
  refused(s, delegate, NULL, c.count);
  refused(s, delegate, c.tensors, c.count - 1);
  refused(s, delegate, c.tensors, c.count + 1);
  refused(s, delegate, c.tensors, 0);
  refused(s, NULL, c.tensors, c.count);
  tosaic_delegate_error old = {0};
  old.struct_bytes = 8;
  CHECK(s->api->execute(delegate, NULL, 0, &old) == TOSAIC_DELEGATE_ARGUMENT && old.code[0] == 0);

  tosaic_delegate_info nothing = {0};
  CHECK(s->api->describe(NULL, &nothing, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->describe(delegate, NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->describe(delegate, &nothing, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate_profile profile = {0};
  CHECK(s->api->profile(NULL, &profile, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->profile(delegate, NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->profile(delegate, &profile, NULL) == TOSAIC_DELEGATE_ARGUMENT);

  CHECK(s->api->measure(NULL, 1, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->reset(NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate* clone = delegate;
  CHECK(s->api->clone(NULL, NULL, &clone, NULL) == TOSAIC_DELEGATE_ARGUMENT && !clone);
  CHECK(s->api->clone(delegate, NULL, NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);
  const tosaic_delegate_host unknown = {0};
  CHECK(s->api->clone(delegate, &unknown, &clone, NULL) == TOSAIC_DELEGATE_ARGUMENT);

  says_sizes(s, delegate, &c);

  /* After all that it still runs; elements that the caller calls opaque are taken for what they are. */
  for (size_t i = 0; i < c.count; ++i) c.tensors[i].dtype = TOSAIC_DTYPE_OPAQUE;
  CHECK(s->api->execute(delegate, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
  free_call(&c);
  s->api->close(delegate);
  s->api->close(NULL);
}

/* ---- openings that are not right */

static int open_code(const sample* s, const tosaic_delegate_program* program, const tosaic_delegate_host* host,
                     const tosaic_delegate_options* options, const char* code) {
  tosaic_delegate_error error = no_error();
  tosaic_delegate* delegate = (tosaic_delegate*)&error;
  const int status = s->api->open(s->api->user, program, host, options, &delegate, &error);
  CHECK(status != TOSAIC_DELEGATE_OK && !delegate && strlen(error.message) > 0);
  CHECK(!code || strcmp(error.code, code) == 0);
  return status;
}

static int no_data(void* user, const char* key, const void** data, size_t* bytes) {
  (void)user, (void)key, (void)data, (void)bytes;
  return 1;
}

typedef struct {
  const sample* s;
  tosaic_delegate* delegate;
  const call* c;
  int lines;
} reentry;

static void call_again(void* user, int level, const char* line) {
  reentry* r = user;
  if (level != TOSAIC_DELEGATE_LOG_TRACE || !r->delegate) return;
  tosaic_delegate_error error = no_error();
  CHECK(strlen(line) > 0);
  CHECK(r->s->api->execute(r->delegate, r->c->tensors, r->c->count, &error) == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(strcmp(error.code, "delegate.busy") == 0);
  ++r->lines;
}

/* A run during a run. */
static void re_entered(const sample* s) {
  reentry r = {s, NULL, NULL, 0};
  tosaic_delegate_host host = {0};
  host.struct_bytes = sizeof host;
  host.log = call_again;
  host.log_user = &r;
  host.log_level = TOSAIC_DELEGATE_LOG_TRACE;
  tosaic_delegate* delegate = NULL;
  CHECK(s->api->open(s->api->user, &s->program, &host, &s->options, &delegate, NULL) == TOSAIC_DELEGATE_OK);
  call c = make_call(s, delegate, 0);
  r.delegate = delegate;
  r.c = &c;
  CHECK(s->api->execute(delegate, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
  printf("trace: %d lines\n", r.lines);
  free_call(&c);
  s->api->close(delegate);
}

void wrong_openings(const sample* s) {
  const tosaic_delegate_program right = s->program;
  tosaic_delegate_program program = right;
  CHECK(open_code(s, NULL, NULL, NULL, "delegate.arguments") == TOSAIC_DELEGATE_ARGUMENT);
  program.payload = NULL;
  CHECK(open_code(s, &program, NULL, NULL, "delegate.arguments") == TOSAIC_DELEGATE_ARGUMENT);
  program = right;
  program.spec_count = 1;
  CHECK(open_code(s, &program, NULL, NULL, "delegate.arguments") == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate_spec spec = {NULL, NULL, 0};
  program.specs = &spec;
  CHECK(open_code(s, &program, NULL, NULL, "delegate.arguments") == TOSAIC_DELEGATE_ARGUMENT);
  spec.key = "key";
  spec.bytes = 1;
  CHECK(open_code(s, &program, NULL, NULL, "delegate.arguments") == TOSAIC_DELEGATE_ARGUMENT);
  program = right;
  program.struct_bytes -= 8;
  CHECK(open_code(s, &program, NULL, NULL, "delegate.version") == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate_host host = {0};
  CHECK(open_code(s, &right, &host, NULL, "delegate.version") == TOSAIC_DELEGATE_ARGUMENT);
  tosaic_delegate_options options = {0};
  CHECK(open_code(s, &right, NULL, &options, "delegate.version") == TOSAIC_DELEGATE_ARGUMENT);
  CHECK(s->api->open(s->api->user, &right, NULL, NULL, NULL, NULL) == TOSAIC_DELEGATE_ARGUMENT);

  /* What is not needed is not asked for: no lookup, no name, no specs, no options, no host. */
  program = right;
  program.name = NULL;
  program.lookup = no_data;
  tosaic_delegate_spec unknown = {"a key of another delegate", "value", 5};
  program.specs = &unknown;
  program.spec_count = 1;
  tosaic_delegate* delegate = NULL;
  CHECK(s->api->open(s->api->user, &program, NULL, NULL, &delegate, NULL) == TOSAIC_DELEGATE_OK);
  s->api->close(delegate);

  options = s->options;
  options.device = "no such device";
  if (strstr(s->api->id, "EthosU")) {
    CHECK(open_code(s, &right, NULL, &options, "delegate.product") == TOSAIC_DELEGATE_INCOMPATIBLE);
    tosaic_delegate_spec target = {"target", "ethos-u99-1", 11};
    program = right;
    program.specs = &target;
    program.spec_count = 1;
    CHECK(open_code(s, &program, NULL, NULL, "delegate.product") == TOSAIC_DELEGATE_INCOMPATIBLE);
  } else if (s->api == DELEGATE() && strstr(STRING(DELEGATE), "vulkan_delegate")) {
    CHECK(open_code(s, &right, NULL, &options, "vulkan.device") == TOSAIC_DELEGATE_INCOMPATIBLE);
  }
  re_entered(s);
}

/* ---- payloads that end too early */

/* A payload that opens all the same has lost no more than padding: it computes what the whole one does. */
static void cut_at(const sample* s, size_t bytes) {
  const block cut = exactly(s->payload.data, bytes);
  tosaic_delegate_program program = s->program;
  program.payload = cut.data;
  program.payload_bytes = bytes;
  tosaic_delegate_error error = no_error();
  tosaic_delegate* delegate = NULL;
  const int status = s->api->open(s->api->user, &program, NULL, &s->options, &delegate, &error);
  if (status == TOSAIC_DELEGATE_OK) {
    call c = make_call(s, delegate, 0);
    CHECK(s->api->execute(delegate, c.tensors, c.count, &error) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
    free_call(&c);
  } else {
    CHECK(!delegate && status == TOSAIC_DELEGATE_INVALID && strlen(error.code) > 0 && strlen(error.message) > 0);
  }
  s->api->close(delegate);
  free(cut.data);
}

void cut_payloads(const sample* s) {
  const size_t all = s->payload.bytes, step = all / 61 + 1;
  for (size_t bytes = 0; bytes < all; bytes += step) cut_at(s, bytes);
  for (size_t bytes = 0; bytes < 33 && bytes < all; ++bytes) cut_at(s, bytes);
  for (size_t lost = 1; lost < 33 && lost < all; ++lost) cut_at(s, all - lost);
}

/* ---- no memory */

void failing_allocators(const sample* s) {
  int status = TOSAIC_DELEGATE_MEMORY;
  long n = 1;
  for (; status == TOSAIC_DELEGATE_MEMORY && n < 1000; ++n) {
    counted memory = {0};
    memory.fail_at = n;
    const tosaic_delegate_host host = counting_host(&memory);
    tosaic_delegate_error error = no_error();
    tosaic_delegate* delegate = NULL;
    status = s->api->open(s->api->user, &s->program, &host, &s->options, &delegate, &error);
    CHECK((status == TOSAIC_DELEGATE_OK) == (delegate != NULL));
    if (status == TOSAIC_DELEGATE_MEMORY) CHECK(memory.live == 0 && strlen(error.message) > 0);
    s->api->close(delegate);
    CHECK(memory.live == 0);
  }
  CHECK(status == TOSAIC_DELEGATE_OK);
  printf("allocator: %ld allocations\n", n - 2);
  if (n > 2) {
    counted memory = {0};
    memory.misaligned = 8;
    const tosaic_delegate_host host = counting_host(&memory);
    CHECK(open_code(s, &s->program, &host, &s->options, NULL) == TOSAIC_DELEGATE_MEMORY && memory.live == 0);
  }
}

/* Fails at each of the first allocations of a call, then at ever fewer; gives how many there are. */
typedef int (*attempt)(void* user, tosaic_delegate_error* error);

static long fail_each(attempt once, void* user) {
  tosaic_delegate_error error = no_error();
  for (long n = 1, step = 1; n < 1000000; n += step) {
    fail_new_at(n);
    const int status = once(user, &error);
    const int reached = news_since() >= n;
    fail_new_at(0);
    /* OK: some of the standard library's algorithms do with less memory. */
    CHECK(status == TOSAIC_DELEGATE_OK || (status == TOSAIC_DELEGATE_MEMORY && strlen(error.message) > 0));
    if (!reached) return n - 1;
    if (n > 300) step = n / 50;
  }
  return -1;
}

typedef struct {
  const sample* s;
  tosaic_delegate_options options;
  tosaic_delegate* delegate;
  const call* c;
} heap_user;

static int open_and_close(void* user, tosaic_delegate_error* error) {
  const heap_user* u = user;
  tosaic_delegate* delegate = NULL;
  const int status = u->s->api->open(u->s->api->user, &u->s->program, NULL, &u->options, &delegate, error);
  CHECK((status == TOSAIC_DELEGATE_OK) == (delegate != NULL));
  u->s->api->close(delegate);
  return status;
}

static int execute(void* user, tosaic_delegate_error* error) {
  const heap_user* u = user;
  return u->s->api->execute(u->delegate, u->c->tensors, u->c->count, error);
}

/* Drivers share the process's heap, and not all of them survive that it fails: only for delegates of our own. */
void failing_heap(const sample* s) {
  if (strstr(STRING(DELEGATE), "vulkan_delegate")) return;
  for (uint32_t threads = 1; threads <= 2; ++threads) {
    heap_user user = {s, s->options, NULL, NULL};
    user.options.threads = threads;
    const long opened = fail_each(open_and_close, &user);
    CHECK(s->api->open(s->api->user, &s->program, NULL, &user.options, &user.delegate, NULL) == TOSAIC_DELEGATE_OK);
    call c = make_call(s, user.delegate, 1);
    user.c = &c;
    const long ran = fail_each(execute, &user);
    CHECK(opened > 0 && ran >= 0);
    CHECK(s->api->execute(user.delegate, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
    free_call(&c);
    s->api->close(user.delegate);
    printf("heap, %u threads: %ld allocations to open, %ld to execute\n", threads, opened, ran);
  }
}
