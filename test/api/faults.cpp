// SPDX-License-Identifier: Apache-2.0
// Memory that runs out at any allocation: each call ends with an error, never with an exception or a crash, and the
// next one works.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "api/digits.h"

namespace {
std::atomic<long> left{-1};    // allocations until one fails; below zero: none does
std::atomic<bool> once{true};  // or all that follow
std::atomic<long> counted{0};

void* allocate_or_null(std::size_t bytes) noexcept {
  ++counted;
  if (left >= 0 && left.fetch_sub(1) <= 0) {
    if (!once) left = 0;
    return nullptr;
  }
  return std::malloc(bytes ? bytes : 1);
}

void* allocate(std::size_t bytes) {
  if (void* memory = allocate_or_null(bytes)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace tosaic::test {
namespace {

// Runs `call` with the n-th allocation failing, for the first few n and for a seeded choice of the others.
template <class F>
void with_faults(const char* what, F call) {
  left = -1;
  counted = 0;
  ASSERT_TRUE(call().ok()) << what;
  const long all = counted;
  std::mt19937 random(7);
  std::vector<long> numbers;
  for (long n = 0; n < std::min(all, 300l); ++n) numbers.push_back(n);
  for (int i = 0; i < 300; ++i) numbers.push_back(static_cast<long>(random() % static_cast<unsigned long>(all)));
  int refused = 0;
  for (const bool single : {true, false})
    for (long n : numbers) {
      once = single;
      left = n;
      const bool ok = call().ok();
      left = -1;
      refused += !ok;
    }
  EXPECT_GT(refused, 0) << what;
  ASSERT_TRUE(call().ok()) << what << ", once there is memory again";
}

TEST(OutOfMemory, ReadingAProgram) {
  const Bytes file = Bytes::of(content(digits_path()));
  with_faults("read", [&] { return Program::read(file, "digits.pt2"); });
}

TEST(OutOfMemory, Compiling) {
  const Program program = digits();
  for (const char* target : {"tosa-int", "tosa-fp", "vgf"})
    with_faults(target, [&] { return compile(program, target); });
}

TEST(OutOfMemory, Asking) {
  const Bytes file = Bytes::of(content(digits_path()));
  with_faults("supports", [&]() -> Result<std::vector<NodeVerdict>> {
    const auto program = Program::read(file, "d");  // anew: the answers are kept
    if (!program.ok()) return program.error();
    return supports(*program, "tosa-int");
  });
}

TEST(OutOfMemory, Planning) {
  const Program program = digits();
  const Options options = Options().set("override", {"stem: int16x8", "classifier: float"});
  with_faults("plan", [&] { return plan(program, "tosa-int", options); });
  with_faults("explain", [&] { return explain(program, "tosa-int", options); });
}

TEST(OutOfMemory, Inspecting) {
  const std::string path = digits_path();
  const InspectOptions options;
  with_faults("inspect", [&] { return inspect(path, options); });
}

TEST(OutOfMemory, Pieces) {
  const Artifact artifact = good(compile(digits(), "tosa-int"));
  for (const char* piece : {"header", "tosa"}) with_faults(piece, [&] { return artifact.piece(piece); });
  with_faults("manifest", [&] { return artifact.manifest(); });
}

TEST(OutOfMemory, Running) {
  const Artifact artifact = good(compile(digits(), "tosa-int"));
  const auto inputs = good(digits().sample_inputs());
  const auto views = lent(inputs);
  with_faults("load", [&] { return Session::load(artifact); });
  const Program program = digits();
  with_faults("load a program", [&] { return Session::load(program); });
  Session session = good(Session::load(artifact));
  with_faults("run", [&] { return session.run(views); });
  with_faults("clone", [&] { return session.clone(); });
  with_faults("measured", [&]() -> Status {
    for (const Status& status : {session.measure(true), session.reset()})
      if (!status.ok()) return status;
    if (const auto outputs = session.run(views); !outputs.ok()) return outputs.error();
    if (const auto times = session.profile(); !times.ok()) return times.error();
    return session.measure(false);
  });
}

TEST(OutOfMemory, OtherFormats) {
  const std::vector<std::byte> zeros(1024);
  for (const std::string piece : {"tosa", "vgf"}) {
    const Bytes file = good(good(compile(digits(), piece == "vgf" ? "vgf" : "tosa-int")).piece(piece));
    for (const char* executor : {"cpu", "interp"}) {
      SessionOptions options;
      options.executor = executor;
      with_faults("load another format", [&] { return Session::load(file, piece, options); });
      Session session = good(Session::load(file, piece, options));
      std::vector<InputTensor> inputs;
      for (const TensorInfo& input : session.inputs()) inputs.push_back({zeros.data(), input.dtype, input.sizes()});
      with_faults("run another format", [&] { return session.run(inputs); });
    }
  }
}

}  // namespace
}  // namespace tosaic::test
