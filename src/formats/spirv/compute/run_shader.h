// SPDX-License-Identifier: Apache-2.0
// A compute shader of ours, computed here as SPIR-V says: what a driver's compiler is held to. Slow, for some
// invocations of a dispatch. A module must have passed check_shader.
#pragma once
#include <array>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

// What a dispatch is given. Stores change the memory that is bound.
struct ShaderCall {
  std::vector<std::span<std::byte>> bindings;
  std::vector<Word> texel_bytes;  // of each binding that is seen by texels: 1, 2, 4 or 16
  std::span<const Word> pushes;   // those beyond are 0
  std::array<Word, 3> groups{1, 1, 1};
};

// An element that was stored to: of a binding, in units of its elements. Vectors are several.
struct ShaderWrite {
  Word binding = 0, element_bytes = 4;
  std::uint64_t index = 0;
  Word before = 0, after = 0;  // the element's bits
};

class ShaderProgram {
 public:
  // nullopt: it has an instruction that is not computed here.
  static std::optional<ShaderProgram> decode(std::span<const Word> words);

  Word group_size() const { return group_size_; }
  // How many neighbours of a group run() computes with one of them: a divisor of the group's size, or that is refused.
  Word together() const;
  struct Binding {
    Word element_bytes = 4;
    bool real = false;  // of f32 numbers
    Word lanes = 1;     // elements of a vector
  };
  const std::vector<Binding>& bindings() const { return bindings_; }
  // Its result depends on the rounding of floats.
  bool has_float_arithmetic() const { return rounds_; }

  struct Run {
    std::array<Word, 3> group{};
    Word local = 0;                // of the group's invocations
    std::uint64_t most_steps = 0;  // instructions, of all invocations that run with it
    // Each rounded result is moved by up to the error that Vulkan allows its operation: what then differs from run to
    // run is what a device may give as well. Null: as IEEE 754 rounds.
    std::minstd_rand* noise = nullptr;
  };
  // The stores of one invocation, in their order; where invocations of a subgroup shuffle, of all of its subgroup,
  // which has 8 of them (32 where they have matrices together); where those of a group wait for each other, of the
  // whole group. nullopt: it did something whose result SPIR-V does not define, or there are too many steps; stores are
  // then undone. `steps`: the instructions that it took are added.
  std::optional<std::vector<ShaderWrite>> run(const ShaderCall& call, const Run& run,
                                              std::uint64_t* steps = nullptr) const;

 private:
  struct Step {
    Opcode op{};
    Word function = 0;  // of GLSL.std.450, or a storage class
    Word to = 0, a = 0, b = 0, c = 0;
  };
  // Of a load or store of a matrix: how it lies in shared memory.
  struct SharedMatrix {
    bool by_columns = false;
    Word stride = 0;              // words from row to row, or from column to column
    Word bits = 32, columns = 0;  // of an element; of the matrix
    Word shares = 0;              // elements of an invocation
  };
  friend class ShaderDecoder;
  friend class ShaderInvocation;

  std::vector<Step> steps_;
  std::vector<SharedMatrix> shared_matrices_;
  std::vector<Word> first_;  // registers at first: constants have their values
  bool shuffles_ = false, waits_ = false, multiplies_ = false;
  Word group_size_ = 1, shared_words_ = 0;
  Word pushes_at_ = 0, invocation_at_ = 0, local_at_ = 0, group_at_ = 0, subgroup_at_ = 0;
  std::vector<Binding> bindings_;
  bool rounds_ = false;
};

// Puts back what was there before the stores.
void undo(const ShaderCall& call, std::span<const ShaderWrite> writes);

}  // namespace tosaic::spirv
