// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/word_bounds.h"

#include <algorithm>

namespace tosaic::spirv {
namespace {

// A sum or a product that does not fit wraps around, to anything.
Word held(std::uint64_t value) { return value < WordBounds::none ? static_cast<Word>(value) : WordBounds::none; }

}  // namespace

Word WordBounds::highest(Id id) const {
  const auto found = highest_.find(id);
  return found == highest_.end() ? none : found->second;
}

void WordBounds::constant(Id id, Word value) {
  constants_[id] = value;
  highest_[id] = value;
}

void WordBounds::result(Opcode opcode, Id id, std::span<const Word> o) {
  const auto a = [&] { return highest(o[0]); };
  const auto b = [&] { return highest(o[1]); };
  const auto exact = [&]() -> Word {  // of the second operand; 0: not known
    const auto found = constants_.find(o[1]);
    return found == constants_.end() ? 0 : found->second;
  };
  Word bound = none;
  switch (opcode) {
    case Opcode::i_add: bound = held(std::uint64_t{a()} + b()); break;
    case Opcode::i_mul: bound = held(std::uint64_t{a()} * b()); break;
    case Opcode::u_div:
      if (exact()) bound = a() / exact();
      break;
    case Opcode::u_mod:
      if (exact()) bound = std::min(a(), exact() - 1);
      break;
    case Opcode::bitwise_and: bound = std::min(a(), b()); break;
    case Opcode::shift_right_logical:
      if (is_constant(o[1]) && b() < 32) bound = a() >> b();
      break;
    case Opcode::select: bound = std::max(highest(o[1]), highest(o[2])); break;
    case Opcode::composite_extract: bound = a(); break;
    case Opcode::ext_inst:
      if (o[1] == static_cast<Word>(Function::umin)) bound = std::min(highest(o[2]), highest(o[3]));
      break;
    default: break;
  }
  if (bound != none) highest_[id] = bound;
}

}  // namespace tosaic::spirv
