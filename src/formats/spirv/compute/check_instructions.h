// SPDX-License-Identifier: Apache-2.0
// The instructions of a shader that neither branch nor wait: their operands have the types that they need, and what
// they address is there.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "formats/spirv/compute/check_globals.h"

namespace tosaic::spirv {

class CheckedInstructions : protected CheckedGlobals {
 protected:
  using CheckedGlobals::CheckedGlobals;

  // Defines the result.
  void typed(const Instruction& i);

 private:
  enum class Operand : std::uint8_t { boolean_value, word, real };
  bool matches(Id t, Operand o) const;
  void arithmetic(const Instruction& i, std::initializer_list<Operand> operands, Operand result);
  void elementwise(const Instruction& i, Operand part);
  void load(const Instruction& i);
  void store(const Instruction& i);
  bool is_loaded_whole(Id t) const;
  void access_shared(const Instruction& i, const Type& array);
  void access(const Instruction& i);
  void scale(const Instruction& i);
  void extract(const Instruction& i);
  void construct(const Instruction& i);
  void fetch(const Instruction& i);
  void shuffle(const Instruction& i);
  void convert(const Instruction& i);
  void dot(const Instruction& i);
  void extended(const Instruction& i);
  void select(const Instruction& i);
  void glsl(const Instruction& i);
};

}  // namespace tosaic::spirv
