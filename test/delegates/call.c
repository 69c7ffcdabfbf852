/* SPDX-License-Identifier: Apache-2.0
 * call_NAME PAYLOAD INPUTS OUTPUTS: one delegate through its header alone. INPUTS and OUTPUTS are the bytes of the
 * tensors, one after the other. Prints how many checks passed; fails if any did not. */
#include "call.h"

#include <pthread.h>

int checks = 0, failures = 0;

/* ---- what all parts use */

block exactly(const void* data, size_t bytes) {
  block b = {malloc(bytes ? bytes : 1), bytes};
  if (bytes) memcpy(b.data, data, bytes);
  return b;
}

static block whole_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  block b = {malloc((size_t)size + 1), (size_t)size};
  if (fread(b.data, 1, b.bytes, file) != b.bytes) exit(2);
  fclose(file);
  return b;
}

tosaic_delegate_error no_error(void) {
  tosaic_delegate_error error = {0};
  error.struct_bytes = sizeof error;
  return error;
}

static void* counted_allocate(void* user, size_t bytes, size_t alignment) {
  counted* memory = user;
  if (++memory->calls == memory->fail_at) return NULL;
  ++memory->live;
  unsigned char* space = aligned_alloc(64, (bytes + 127) / 64 * 64);
  (void)alignment;
  return space + memory->misaligned;
}

static void counted_release(void* user, void* space, size_t bytes) {
  counted* memory = user;
  --memory->live;
  (void)bytes;
  free((unsigned char*)space - memory->misaligned);
}

tosaic_delegate_host counting_host(counted* memory) {
  tosaic_delegate_host host = {0};
  host.struct_bytes = sizeof host;
  host.allocate = counted_allocate;
  host.release = counted_release;
  host.allocate_user = memory;
  return host;
}

tosaic_delegate_info described(const sample* s, const tosaic_delegate* delegate) {
  tosaic_delegate_info info = {0};
  info.struct_bytes = sizeof info;
  CHECK(s->api->describe(delegate, &info, NULL) == TOSAIC_DELEGATE_OK);
  return info;
}

call make_call(const sample* s, const tosaic_delegate* delegate, size_t shift) {
  const tosaic_delegate_info info = described(s, delegate);
  call c = {NULL, info.input_count + info.output_count, info.input_count, NULL};
  c.tensors = calloc(c.count, sizeof *c.tensors);
  c.memory = calloc(c.count, sizeof *c.memory);
  size_t at = 0;
  for (size_t i = 0; i < c.count; ++i) {
    const tosaic_delegate_tensor_info* known = &info.tensors[i];
    tosaic_delegate_tensor* tensor = &c.tensors[i];
    tensor->bytes = known->element_bytes;
    for (uint32_t d = 0; d < known->rank; ++d) tensor->bytes *= (uint64_t)known->most[d];
    tensor->dtype = known->dtype;
    tensor->rank = known->rank;
    tensor->dims = known->most;
    c.memory[i] = malloc(tensor->bytes + shift + 1);
    tensor->data = c.memory[i] + shift;
    memset(tensor->data, 0x5a, tensor->bytes);
    if (i == c.inputs) at = 0;
    if (i < c.inputs) {
      CHECK(at + tensor->bytes <= s->inputs.bytes);
      memcpy(tensor->data, s->inputs.data + at, tensor->bytes);
    }
    at += tensor->bytes;
  }
  CHECK(at == s->outputs.bytes);
  return c;
}

int as_expected(const sample* s, const call* c) {
  size_t at = 0;
  for (size_t i = c->inputs; i < c->count; ++i) {
    if (memcmp(c->tensors[i].data, s->outputs.data + at, c->tensors[i].bytes) != 0) return 0;
    at += c->tensors[i].bytes;
  }
  return 1;
}

void free_call(call* c) {
  for (size_t i = 0; i < c->count; ++i) free(c->memory[i]);
  free(c->memory);
  free(c->tensors);
}

/* ---- what must work */

static void print(const tosaic_delegate_info* info) {
  printf("device %s, %llu bytes\n", info->device, (unsigned long long)info->memory_bytes);
  for (uint32_t i = 0; i < info->input_count + info->output_count; ++i) {
    const tosaic_delegate_tensor_info* t = &info->tensors[i];
    printf("%s '%s' dtype %u of %u bytes:", i < info->input_count ? "input" : "output", t->name, t->dtype,
           t->element_bytes);
    for (uint32_t d = 0; d < t->rank; ++d) printf(" %lld", (long long)t->most[d]);
    printf("\n");
  }
}

static void note(void* user, int level, const char* line) {
  CHECK(level == TOSAIC_DELEGATE_LOG_NOTE && strlen(line) > 0);
  ++*(int*)user;
}

static void runs(const sample* s) {
  counted memory = {0};
  int notes = 0;
  tosaic_delegate_host host = counting_host(&memory);
  host.log = note;
  host.log_user = &notes;
  host.log_level = TOSAIC_DELEGATE_LOG_NOTE;
  tosaic_delegate_error error = no_error();
  tosaic_delegate_options options = s->options;
  options.profile = 1;
  tosaic_delegate* delegate = NULL;
  CHECK(s->api->open(s->api->user, &s->program, &host, &options, &delegate, &error) == TOSAIC_DELEGATE_OK);
  if (!delegate) {
    fprintf(stderr, "%s: %s\n", error.code, error.message);
    exit(1);
  }
  CHECK(notes == 1);
  const tosaic_delegate_info info = described(s, delegate);
  print(&info);
  const long taken = memory.calls;
  tosaic_delegate_profile profile = {0};
  profile.struct_bytes = sizeof profile;
  CHECK(s->api->profile(delegate, &profile, &error) == TOSAIC_DELEGATE_OK && profile.seconds == 0);
  for (int again = 0; again < 3; ++again)
    for (size_t shift = 0; shift < 2; ++shift) {
      call c = make_call(s, delegate, shift);
      CHECK(s->api->execute(delegate, c.tensors, c.count, &error) == TOSAIC_DELEGATE_OK);
      CHECK(as_expected(s, &c));
      free_call(&c);
    }
  CHECK(memory.calls == taken); /* all memory is taken during open */
  CHECK(s->api->profile(delegate, &profile, &error) == TOSAIC_DELEGATE_OK && profile.seconds > 0);
  double sum = 0;
  for (size_t i = 0; i < profile.count; ++i) {
    CHECK(strlen(profile.times[i].name) > 0 && strlen(profile.times[i].value) > 0 && profile.times[i].seconds >= 0);
    sum += profile.times[i].seconds;
  }
  CHECK(sum <= profile.seconds);
  printf("profile: %zu operations\n", profile.count);
  s->api->close(delegate);
  CHECK(memory.live == 0);
}

/* A clone next to its origin, with memory of its own, and after it. */
static void is_cloned(const sample* s) {
  counted memory = {0};
  const tosaic_delegate_host host = counting_host(&memory);
  tosaic_delegate_error error = no_error();
  tosaic_delegate *first = NULL, *second = NULL;
  CHECK(s->api->open(s->api->user, &s->program, NULL, &s->options, &first, NULL) == TOSAIC_DELEGATE_OK);
  call c = make_call(s, first, 0);
  CHECK(s->api->measure(first, 1, &error) == TOSAIC_DELEGATE_OK);
  CHECK(s->api->execute(first, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
  CHECK(s->api->reset(first, &error) == TOSAIC_DELEGATE_OK);
  CHECK(s->api->execute(first, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &c));
  const int said = s->api->clone(first, &host, &second, &error);
  printf("clone: %s\n", said ? error.code : "made");
  s->api->close(first);
  if (said) {
    CHECK(said == TOSAIC_DELEGATE_UNSUPPORTED && !second && strcmp(error.code, "delegate.clone") == 0);
  } else {
    CHECK(memory.live > 0 || strstr(STRING(DELEGATE), "vulkan")); /* whose tensors the driver holds */
    call again = make_call(s, second, 1);
    CHECK(s->api->execute(second, again.tensors, again.count, NULL) == TOSAIC_DELEGATE_OK && as_expected(s, &again));
    free_call(&again);
    s->api->close(second);
  }
  CHECK(memory.live == 0);
  free_call(&c);
}

/* Outputs may lie over inputs. */
static void runs_in_place(const sample* s) {
  tosaic_delegate* delegate = NULL;
  CHECK(s->api->open(s->api->user, &s->program, NULL, &s->options, &delegate, NULL) == TOSAIC_DELEGATE_OK);
  call c = make_call(s, delegate, 0);
  if (c.count == 2 && c.tensors[0].bytes >= c.tensors[1].bytes) {
    c.tensors[1].data = c.tensors[0].data;
    CHECK(s->api->execute(delegate, c.tensors, c.count, NULL) == TOSAIC_DELEGATE_OK);
    CHECK(as_expected(s, &c));
  }
  free_call(&c);
  s->api->close(delegate);
}

static void* runs_in_thread(void* user) {
  const sample* s = user;
  tosaic_delegate* delegate = NULL;
  if (s->api->open(s->api->user, &s->program, NULL, &s->options, &delegate, NULL)) return user;
  call c = make_call(s, delegate, 0);
  void* wrong = NULL;
  for (int again = 0; again < 5; ++again)
    if (s->api->execute(delegate, c.tensors, c.count, NULL) || !as_expected(s, &c)) wrong = user;
  free_call(&c);
  s->api->close(delegate);
  return wrong;
}

/* Different payloads run at the same time. */
static void runs_in_two_threads(const sample* s) {
  sample other = *s;
  other.payload = exactly(s->payload.data, s->payload.bytes);
  other.program.payload = other.payload.data;
  pthread_t thread;
  pthread_create(&thread, NULL, runs_in_thread, &other);
  const void* here = runs_in_thread((void*)s);
  void* there = NULL;
  pthread_join(thread, &there);
  CHECK(!here && !there);
  free(other.payload.data);
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  sample s = {0};
  s.api = DELEGATE();
  CHECK(s.api == DELEGATE() && s.api->struct_bytes == sizeof *s.api && s.api->version == TOSAIC_DELEGATE_VERSION);
  block file = whole_file(arguments[1]);
  s.payload = exactly(file.data, file.bytes);
  free(file.data);
  s.inputs = whole_file(arguments[2]);
  s.outputs = whole_file(arguments[3]);
  s.program.struct_bytes = sizeof s.program;
  s.program.name = "sample";
  s.program.payload = s.payload.data;
  s.program.payload_bytes = s.payload.bytes;
  s.options.struct_bytes = sizeof s.options;
  s.options.threads = 1;
  printf("%s\n", s.api->id);
  runs(&s);
  is_cloned(&s);
  runs_in_place(&s);
  runs_in_two_threads(&s);
  wrong_calls(&s);
  wrong_openings(&s);
  cut_payloads(&s);
  failing_allocators(&s);
  failing_heap(&s);
  free(s.payload.data);
  free(s.inputs.data);
  free(s.outputs.data);
  printf("%d checks passed, %d failed\n", checks - failures, failures);
  return failures != 0;
}
