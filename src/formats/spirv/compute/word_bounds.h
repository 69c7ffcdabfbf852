// SPDX-License-Identifier: Apache-2.0
// How large 32-bit integers of a shader can become, as unsigned ones, told from the instructions that make them. An
// index into memory that a work group shares must be bounded by this: no driver checks it.
#pragma once
#include <span>
#include <unordered_map>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

class WordBounds {
 public:
  static constexpr Word none = 0xffffffff;
  // The highest value that the integer can have; of a vector, that any of its parts can have.
  Word highest(Id id) const;
  bool is_constant(Id id) const { return constants_.contains(id); }
  void constant(Id id, Word value);
  void bounded(Id id, Word highest) { highest_[id] = highest; }
  // The result of an instruction without branches; operands are those behind the result.
  void result(Opcode opcode, Id id, std::span<const Word> operands);

 private:
  std::unordered_map<Id, Word> highest_, constants_;
};

}  // namespace tosaic::spirv
