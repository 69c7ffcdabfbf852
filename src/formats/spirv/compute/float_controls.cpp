// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/float_controls.h"

#include "formats/spirv/module.h"

namespace tosaic::spirv {
namespace {

constexpr Word header_words = 5, bits = 32;
constexpr Word cap_denormals = 4464, cap_special = 4466, mode_denormals = 4459, mode_special = 4461;

Word opcode_at(std::span<const Word> module, std::size_t at) { return module[at] & 0xffff; }

void append(std::vector<Word>& to, Opcode opcode, std::vector<Word> operands) {
  to.push_back(static_cast<Word>(operands.size() + 1) << 16 | static_cast<Word>(opcode));
  to.insert(to.end(), operands.begin(), operands.end());
}

}  // namespace

std::vector<Word> with_float_controls(std::span<const Word> module, const FloatControls& controls) {
  std::vector<Word> made(module.begin(), module.begin() + header_words);
  if (!controls.special && !controls.denormals) return {module.begin(), module.end()};
  if (controls.special) append(made, Opcode::capability, {cap_special});
  if (controls.denormals) append(made, Opcode::capability, {cap_denormals});
  bool has_extension = false;
  Word function = 0;
  for (std::size_t at = header_words; at < module.size(); at += module[at] >> 16) {
    const auto opcode = static_cast<Opcode>(opcode_at(module, at));
    if (!has_extension && opcode != Opcode::capability) {
      append(made, Opcode::extension, literal("SPV_KHR_float_controls"));
      has_extension = true;
    }
    if (opcode == Opcode::entry_point) function = module[at + 2];
    if (opcode == Opcode::execution_mode) {
      if (controls.special) append(made, Opcode::execution_mode, {function, mode_special, bits});
      if (controls.denormals) append(made, Opcode::execution_mode, {function, mode_denormals, bits});
      made.insert(made.end(), module.begin() + static_cast<std::ptrdiff_t>(at), module.end());
      break;
    }
    made.insert(made.end(), module.begin() + static_cast<std::ptrdiff_t>(at),
                module.begin() + static_cast<std::ptrdiff_t>(at + (module[at] >> 16)));
  }
  return made;
}

}  // namespace tosaic::spirv
