// SPDX-License-Identifier: Apache-2.0
// plugin_check WHAT PROGRAM.pte...: what Python's bindings of ExecuTorch cannot ask of the plug-in. Exits 0 when all
// held; test_plugin.py calls it.
//   threads   PROGRAMS   each in threads of its own, loaded and run again and again, with one expected result each
//   growth    PROGRAMS   loaded, run and thrown away 200 times by turns: the process does not grow
//   memory    PROGRAM BACKEND    a method's allocator that is too small is an error, the option heap the hint
//   direct    PAYLOAD    of the digits model in floats: values that no program passes, two calls at once
//   options   PROGRAM BACKEND    set_option, get_option, runtime specs
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>
#include <tosaic/executorch.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace executorch::runtime;
using executorch::extension::FileDataLoader;
using executorch::extension::MallocMemoryAllocator;

namespace {

std::atomic<int> failures{0};

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                  \
    }                                                                              \
  } while (false)

// A program with its method "forward" and all that these need.
struct Loaded {
  std::unique_ptr<FileDataLoader> file;
  std::unique_ptr<Program> program;
  std::vector<std::vector<std::uint8_t>> arenas;
  std::vector<Span<std::uint8_t>> spans;
  std::unique_ptr<HierarchicalAllocator> planned;
  MallocMemoryAllocator heap, temporary;
  std::unique_ptr<MemoryManager> memory;
  std::unique_ptr<Method> method;
  Error error = Error::Ok;

  explicit Loaded(const char* path, MemoryAllocator* allocator = nullptr,
                  const LoadBackendOptionsMap* options = nullptr) {
    auto opened = FileDataLoader::from(path);
    if (!opened.ok()) {
      error = opened.error();
      return;
    }
    file = std::make_unique<FileDataLoader>(std::move(*opened));
    auto read = Program::load(file.get());
    if (!read.ok()) {
      error = read.error();
      return;
    }
    program = std::make_unique<Program>(std::move(*read));
    const auto meta = program->method_meta("forward");
    for (std::size_t i = 0; i < meta->num_memory_planned_buffers(); ++i)
      arenas.emplace_back(static_cast<std::size_t>(*meta->memory_planned_buffer_size(i)));
    for (auto& arena : arenas) spans.emplace_back(arena.data(), arena.size());
    planned = std::make_unique<HierarchicalAllocator>(Span<Span<std::uint8_t>>(spans.data(), spans.size()));
    memory = std::make_unique<MemoryManager>(allocator ? allocator : &heap, planned.get(), &temporary);
    auto made = program->load_method("forward", memory.get(), nullptr, nullptr, options);
    error = made.error();
    if (made.ok()) method = std::make_unique<Method>(std::move(*made));
  }

  // The bytes of the first output for an input of zeros with one element set.
  std::vector<std::uint8_t> run(int seed) {
    EValue input = method->get_input(0);
    executorch::aten::Tensor tensor = input.toTensor();
    auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data_ptr());
    std::memset(bytes, 0, tensor.nbytes());
    bytes[static_cast<std::size_t>(seed) * 7 % tensor.nbytes() / 4 * 4 + 2] = 0x80;  // as f32: 2^-126 to 1, as i8: -128
    bytes[static_cast<std::size_t>(seed) * 7 % tensor.nbytes() / 4 * 4 + 3] = 0x3f;
    EXPECT(method->execute() == Error::Ok);
    const executorch::aten::Tensor output = method->get_output(0).toTensor();
    const auto* from = static_cast<const std::uint8_t*>(output.const_data_ptr());
    return {from, from + output.nbytes()};
  }
};

void threads(const std::vector<char*>& programs) {
  std::vector<std::thread> all;
  for (int t = 0; t < 6; ++t)
    all.emplace_back([&, t] {
      const char* path = programs[static_cast<std::size_t>(t) % programs.size()];
      std::vector<std::vector<std::uint8_t>> first;
      for (int load = 0; load < 3; ++load) {
        Loaded loaded(path);
        EXPECT(loaded.error == Error::Ok);
        if (!loaded.method) return;
        for (int seed = 0; seed < 8; ++seed) {
          const auto found = loaded.run(seed);
          if (load == 0) first.push_back(found);
          EXPECT(found == first[static_cast<std::size_t>(seed)]);
        }
      }
      EXPECT(first[0] != first[5]);
    });
  for (std::thread& thread : all) thread.join();
}

long resident_kib() {
  long total = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> total >> pages;
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

void growth(const std::vector<char*>& programs) {
  const auto turn = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Loaded loaded(programs[static_cast<std::size_t>(i) % programs.size()]);
      EXPECT(loaded.error == Error::Ok);
      if (loaded.method) loaded.run(i);
    }
  };
  turn(40);  // the heap finds its size, threads start
  const long before = resident_kib();
  turn(200);
  const long grown = resident_kib() - before;
  std::printf("%ld KiB resident, grown by %ld\n", before, grown);
  EXPECT(grown < 1024);
}

LoadBackendOptionsMap specs_of(const char* backend, BackendOptions<1>& options) {
  LoadBackendOptionsMap map;
  EXPECT(map.set_options(backend, options.view()) == Error::Ok);
  return map;
}

// Of the method's own structures and nothing else.
void memory(const char* path, const char* backend) {
  std::vector<std::uint8_t> pool(16 << 10);
  {
    MemoryAllocator small(static_cast<std::uint32_t>(pool.size()), pool.data());
    Loaded loaded(path, &small);
    EXPECT(loaded.error == Error::MemoryAllocationFailed);
  }
  MemoryAllocator small(static_cast<std::uint32_t>(pool.size()), pool.data());
  BackendOptions<1> options;
  EXPECT(options.set_option("heap", true) == Error::Ok);
  const LoadBackendOptionsMap map = specs_of(backend, options);
  Loaded loaded(path, &small, &map);
  EXPECT(loaded.error == Error::Ok);
  if (loaded.method) EXPECT(loaded.run(1) == Loaded(path).run(1));
}

template <class T>
Error load_with(const char* path, const char* backend, T set) {
  BackendOptions<1> options;
  set(options);
  const LoadBackendOptionsMap map = specs_of(backend, options);
  return Loaded(path, nullptr, &map).error;
}

void options(const char* path, const char* backend) {
  BackendOptions<2> wanted;
  EXPECT(wanted.set_option("threads", 1) == Error::Ok && wanted.set_option("reference", true) == Error::Ok);
  EXPECT(set_option(backend, wanted.view()) == Error::Ok);
  BackendOptions<2> asked;
  EXPECT(asked.set_option("threads", 0) == Error::Ok && asked.set_option("device", "") == Error::Ok);
  Span<BackendOption> view = asked.view();
  EXPECT(get_option(backend, view) == Error::Ok);
  int threads = 0;
  const char* device = nullptr;
  EXPECT(asked.get_option("threads", threads) == Error::Ok && threads == 1);
  EXPECT(asked.get_option("device", device) == Error::Ok && !*device);
  const auto slow = Loaded(path).run(3);
  EXPECT(tosaic_executorch_set(nullptr, "reference", "0") == 0 && tosaic_executorch_set(backend, "threads", "2") == 0);
  EXPECT(Loaded(path).run(3) == slow);
  EXPECT(tosaic_executorch_set(backend, "treads", "2") == 1 && tosaic_executorch_set(backend, "threads", "many") == 1);
  EXPECT(tosaic_executorch_set("NoBackend", "threads", "2") == 1);
  EXPECT(load_with(path, backend, [](auto& o) { EXPECT(o.set_option("no such key", 1) == Error::Ok); }) ==
         Error::InvalidArgument);
  EXPECT(load_with(path, backend, [](auto& o) { EXPECT(o.set_option("threads", -1) == Error::Ok); }) ==
         Error::InvalidArgument);
  EXPECT(load_with(path, backend, [](auto& o) { EXPECT(o.set_option("log", 1) == Error::Ok); }) == Error::Ok);
  if (!std::strcmp(backend, "EthosUBackend"))
    EXPECT(load_with(path, backend, [](auto& o) { EXPECT(o.set_option("device", "ethos-u65-256") == Error::Ok); }) ==
           Error::DelegateInvalidCompatibility);
}

// One call's tensors: an image, ten scores.
struct Call {
  std::vector<float> image = std::vector<float>(64, 0.5f), scores = std::vector<float>(10);
  executorch::extension::TensorPtr input = executorch::extension::from_blob(image.data(), {1, 1, 8, 8});
  executorch::extension::TensorPtr output = executorch::extension::from_blob(scores.data(), {1, 10});
  EValue first{*input}, second{*output};
  EValue* values[3] = {&first, &second, &second};
  Span<EValue*> pass(std::size_t count = 2) { return {values, count}; }
};

void direct(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  BackendInterface* backend = get_backend_class("TOSABackend");
  MallocMemoryAllocator allocator;
  BackendInitContext init(&allocator, nullptr, "direct");
  FreeableBuffer payload(bytes.data(), bytes.size(), nullptr);
  const Result<DelegateHandle*> opened = backend->init(init, &payload, {});
  EXPECT(opened.ok());
  if (!opened.ok()) return;
  BackendExecutionContext context;
  Call good;
  EXPECT(backend->execute(context, *opened, good.pass()) == Error::Ok && good.scores[0] != 0);
  EXPECT(backend->execute(context, *opened, good.pass(1)) == Error::InvalidArgument);
  EXPECT(backend->execute(context, *opened, good.pass(3)) == Error::InvalidArgument);
  Call number;
  number.first = EValue(static_cast<std::int64_t>(3));
  EXPECT(backend->execute(context, *opened, number.pass()) == Error::InvalidArgument);
  Call wide;
  wide.input = executorch::extension::from_blob(wide.image.data(), {1, 1, 4, 16});
  wide.first = EValue(*wide.input);
  EXPECT(backend->execute(context, *opened, wide.pass()) == Error::InvalidArgument);
  Call integers;
  integers.input =
      executorch::extension::from_blob(integers.image.data(), {1, 1, 8, 8}, executorch::aten::ScalarType::Int);
  integers.first = EValue(*integers.input);
  EXPECT(backend->execute(context, *opened, integers.pass()) == Error::InvalidArgument);
  integers.input =
      executorch::extension::from_blob(integers.image.data(), {1, 1, 8, 8}, executorch::aten::ScalarType::UInt32);
  integers.first = EValue(*integers.input);
  EXPECT(backend->execute(context, *opened, integers.pass()) == Error::InvalidArgument);
  // An output of other sizes gets the payload's, where it has room for them.
  Call growing;
  growing.output = executorch::extension::from_blob(growing.scores.data(), {2, 5});
  growing.second = EValue(*growing.output);
  EXPECT(backend->execute(context, *opened, growing.pass()) == Error::Ok && growing.output->size(1) == 10);
  EXPECT(growing.scores == good.scores);
  growing.output = executorch::extension::from_blob(growing.scores.data(), {1, 9});
  growing.second = EValue(*growing.output);
  EXPECT(backend->execute(context, *opened, growing.pass()) == Error::InvalidArgument);
  std::atomic<int> ran{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 2; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Call call;
        const Error error = backend->execute(context, *opened, call.pass());
        EXPECT(error == Error::InvalidState || (error == Error::Ok && call.scores == good.scores));
        if (error == Error::Ok) ++ran;
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT(ran > 0);
  backend->destroy(*opened);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  runtime_init();
  if (*tosaic_executorch_problem()) std::printf("problem: %s\n", tosaic_executorch_problem());
  const std::string what = arguments[1];
  const std::vector<char*> programs(arguments + 2, arguments + count);
  if (what == "threads") threads(programs);
  if (what == "growth") growth(programs);
  if (what == "memory") memory(programs[0], programs[1]);
  if (what == "direct") direct(programs[0]);
  if (what == "options") options(programs[0], programs[1]);
  return failures ? 1 : 0;
}
