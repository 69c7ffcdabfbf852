// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/check_preamble.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "formats/spirv/module.h"

namespace tosaic::spirv {
namespace {

constexpr Word most_ids = 1 << 20, most_group_size = 1024;

bool says(std::span<const Word> operands, std::string_view text) { return std::ranges::equal(operands, literal(text)); }

}  // namespace

void CheckedPreamble::header() {
  need(words_.size() > 5 && words_[0] == magic, "this is no SPIR-V");
  need(words_[1] == version_1_3 && words_[4] == 0, "the module is not of version 1.3");
  bound_ = words_[3];
  need(bound_ > 0 && bound_ <= most_ids, "too many ids");
  at_ = 5;
}

void CheckedPreamble::preamble() {
  bool shader = false, packs_dots = false;
  while (comes(Opcode::capability)) {
    const Word c = take(Opcode::capability, 1).operands[0];
    shader |= c == static_cast<Word>(Capability::shader);
    may_store_8_ |= c == static_cast<Word>(Capability::storage_buffer_8);
    may_store_16_ |= c == static_cast<Word>(Capability::storage_buffer_16);
    may_view_ |= c == static_cast<Word>(Capability::sampled_buffer);
    result_.shuffles |= c == static_cast<Word>(Capability::group_non_uniform_shuffle);
    result_.matrices |= c == static_cast<Word>(Capability::cooperative_matrix);
    result_.int8_matrices |= c == static_cast<Word>(Capability::int8);
    result_.dots |= c == static_cast<Word>(Capability::dot_product);
    packs_dots |= c == static_cast<Word>(Capability::dot_product_packed);
    constexpr Capability known[] = {Capability::shader,
                                    Capability::storage_buffer_8,
                                    Capability::storage_buffer_16,
                                    Capability::sampled_buffer,
                                    Capability::group_non_uniform,
                                    Capability::group_non_uniform_shuffle,
                                    Capability::float16,
                                    Capability::cooperative_matrix,
                                    Capability::dot_product_packed,
                                    Capability::dot_product,
                                    Capability::int8};
    need(std::ranges::find(known, static_cast<Capability>(c)) != std::end(known),
         "a capability that our shaders do not need");
  }
  need(shader, "the module is no shader");
  bool stores_8 = false, has_matrices = false, has_dots = false;
  while (comes(Opcode::extension)) {
    const auto name = next().operands;
    bool* known = says(name, "SPV_KHR_cooperative_matrix")    ? &has_matrices
                  : says(name, "SPV_KHR_integer_dot_product") ? &has_dots
                  : says(name, "SPV_KHR_8bit_storage")        ? &stores_8
                                                              : nullptr;
    need(known, "an extension that our shaders do not need");
    *known = true;
  }
  need(stores_8 || !may_store_8_, "8-bit storage without its extension");
  need(has_matrices || !result_.matrices, "matrices without their extension");
  need(result_.matrices || !result_.int8_matrices, "8-bit integers without matrices of them");
  need((has_dots || !result_.dots) && packs_dots == result_.dots, "dot products without what they need");
  if (comes(Opcode::ext_inst_import)) {
    const Instruction i = next();
    need(!i.operands.empty() && says(i.operands.subspan(1), "GLSL.std.450"), "another set of instructions");
    glsl_ = i.operands[0];
    define(glsl_, 0);
  }
  const Instruction memory = take(Opcode::memory_model, 2);
  need(memory.operands[0] == 0 && memory.operands[1] == memory_glsl450, "another memory model");
  const Instruction entry = next();
  need(entry.opcode == Opcode::entry_point && entry.operands.size() >= 4 && entry.operands[0] == model_compute &&
           says(entry.operands.subspan(2, 2), "main"),
       "no compute entry point 'main'");
  function_ = entry.operands[1];
  interface_ids_.assign(entry.operands.begin() + 4, entry.operands.end());
  const Instruction mode = take(Opcode::execution_mode, 5);
  need(mode.operands[0] == function_ && mode.operands[1] == mode_local_size, "no local size");
  need(mode.operands[2] >= 1 && mode.operands[2] <= most_group_size && mode.operands[3] == 1 && mode.operands[4] == 1,
       "a local size that not every device has");
  result_.group_size = mode.operands[2];
}

void CheckedPreamble::decorations() {
  while (comes(Opcode::decorate) || comes(Opcode::member_decorate)) {
    const Instruction i = next();
    if (i.opcode == Opcode::member_decorate) {
      need(i.operands.size() == 4 && i.operands[1] == 0 && i.operands[2] == decoration_offset && i.operands[3] == 0,
           "a member that does not lie at 0");
      need(laid_.insert(i.operands[0]).second, "a member is decorated twice");
      continue;
    }
    need(i.operands.size() == 2 || i.operands.size() == 3, "a decoration of another length");
    const Word value = i.operands.size() == 3 ? i.operands[2] : 0;
    need(decorated_.try_emplace({i.operands[0], i.operands[1]}, value).second, "a decoration is repeated");
    const bool has_value = i.operands.size() == 3;
    switch (i.operands[1]) {
      case decoration_block:
      case decoration_non_writable: need(!has_value, "a decoration with a value"); break;
      case decoration_no_contraction:
        need(!has_value, "a decoration with a value");
        exact_.insert(i.operands[0]);
        break;
      case decoration_array_stride:
      case decoration_built_in:
      case decoration_binding:
      case decoration_descriptor_set: need(has_value, "a decoration without its value"); break;
      default: wrong("a decoration that our shaders do not have");
    }
  }
}
std::optional<Word> CheckedPreamble::decoration(Id id, Word which) const {
  const auto found = decorated_.find({id, which});
  return found == decorated_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tosaic::spirv
