// SPDX-License-Identifier: Apache-2.0
// Any words as a compute shader of a payload, computed on the host as the driver's check does: what check_shader passes
// runs within its memory and its steps, or is not known to run_shader. The same run gives the same stores, and undoing
// them leaves no trace.
#include <cstring>

#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/compute/run_shader.h"

namespace {

using namespace tosaic::spirv;

constexpr std::size_t binding_bytes = 4096;
constexpr std::uint64_t most_steps = 20000;

struct Memory {
  explicit Memory(std::size_t count) : bytes(count, std::vector<std::byte>(binding_bytes)) {
    std::minstd_rand random(1);
    for (auto& binding : bytes)
      for (std::byte& b : binding) b = static_cast<std::byte>(random() % 7);  // small numbers are indices, too
  }
  std::vector<std::vector<std::byte>> bytes;
};

void run(const ShaderProgram& program, const ShaderInterface& interface, Word texel_bytes, bool noisy) {
  Memory memory(interface.bindings.size());
  const Memory before = memory;
  const std::vector<Word> pushes{3, 16, 1, 64, 2, 8, 5, 0, 7, 1, 4, 32};
  ShaderCall call;
  for (auto& binding : memory.bytes) call.bindings.emplace_back(binding);
  call.texel_bytes.assign(interface.bindings.size(), texel_bytes);
  call.pushes = pushes;
  std::vector<ShaderWrite> first;
  for (int again = 0; again < 2; ++again) {
    std::minstd_rand noise(3);
    std::uint64_t steps = 0;
    ShaderProgram::Run how;
    how.most_steps = most_steps;
    how.noise = noisy ? &noise : nullptr;
    const auto writes = program.run(call, how, &steps);
    // Products of matrices and what each invocation does last are counted behind.
    if (steps > most_steps + 64 * 1024) __builtin_trap();
    if (writes) {
      for (const ShaderWrite& w : *writes)
        if (w.binding >= memory.bytes.size() || w.index * w.element_bytes + w.element_bytes > binding_bytes)
          __builtin_trap();
      if (again && writes->size() != first.size()) __builtin_trap();
      for (std::size_t i = 0; again && i < first.size(); ++i)
        if ((*writes)[i].index != first[i].index || (*writes)[i].after != first[i].after) __builtin_trap();
      first = *writes;
      undo(call, *writes);
    }
    if (memory.bytes != before.bytes) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  std::vector<Word> words(size / sizeof(Word));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(Word));
  const auto interface = check_shader(words);
  if (!interface.ok()) return 0;
  const auto program = ShaderProgram::decode(words);
  if (!program) return 0;
  for (const Word texel_bytes : {1, 4, 16})
    for (const bool noisy : {false, true}) run(*program, *interface, texel_bytes, noisy);
  return 0;
}
