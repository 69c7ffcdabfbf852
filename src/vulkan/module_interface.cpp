// SPDX-License-Identifier: Apache-2.0
#include "vulkan/module_interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace tosaic::vulkan {
namespace {

using spirv::Id;
using spirv::Opcode;
using spirv::Word;
using Words = std::span<const Word>;

constexpr std::size_t header_words = 5;

struct Instruction {
  Opcode opcode;
  Words operands;
};

template <class Visit>
Status each_instruction(Words words, Visit&& visit) {
  if (words.size() < header_words || words[0] != spirv::magic)
    return error("spirv.not-spirv", "the module does not begin with SPIR-V's magic number");
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return error("spirv.corrupt",
                   fmt::format("word {}: an instruction of {} words where {} are left", at, length, words.size() - at));
    visit(Instruction{static_cast<Opcode>(words[at] & 0xffff), words.subspan(at + 1, length - 1)});
    at += length;
  }
  return {};
}

// Of a variable that descriptors stand behind.
bool is_bound(Word storage) {
  return storage == spirv::storage_uniform_constant || storage == storage_uniform || storage == spirv::storage_buffer;
}

// A literal string at the front of `operands`, which is shortened by it.
std::string take_text(Words& operands) {
  std::string text;
  while (!operands.empty()) {
    char bytes[sizeof(Word)];
    std::memcpy(bytes, operands.data(), sizeof(Word));
    operands = operands.subspan(1);
    const std::size_t length = ::strnlen(bytes, sizeof(Word));
    text.append(bytes, length);
    if (length < sizeof(Word)) break;
  }
  return text;
}

}  // namespace

Result<ModuleInterface> interface_of(Words words, const std::string& entry_point, vgf::Kind kind) {
  std::map<Id, ModuleBinding> bound;
  std::optional<std::vector<Id>> interface;
  ModuleInterface found;
  TOSAIC_CHECK(each_instruction(words, [&](const Instruction& i) {
    Words operands = i.operands;
    if (i.opcode == Opcode::decorate && operands.size() >= 3) {
      if (operands[1] == spirv::decoration_binding) bound[operands[0]].binding = operands[2];
      if (operands[1] == spirv::decoration_descriptor_set) bound[operands[0]].set = operands[2];
    } else if (i.opcode == Opcode::variable && operands.size() >= 3) {
      bound[operands[1]].storage = operands[2];
    } else if (kind == vgf::Kind::graph && i.opcode == Opcode::graph_entry_point && operands.size() >= 2) {
      operands = operands.subspan(1);
      if (take_text(operands) == entry_point) interface.emplace(operands.begin(), operands.end());
    } else if (kind == vgf::Kind::compute && i.opcode == Opcode::entry_point && operands.size() >= 3 &&
               operands[0] == spirv::model_compute) {
      operands = operands.subspan(2);
      if (take_text(operands) == entry_point) interface.emplace();
    }
  }));
  if (!interface)
    return error(
        "spirv.no-entry-point",
        fmt::format("the module has no {} '{}'", kind == vgf::Kind::graph ? "graph" : "compute shader", entry_point));
  if (kind == vgf::Kind::compute) {
    for (const auto& [variable, binding] : bound) {
      found.has_push_constants |= binding.storage == spirv::storage_push;
      if (is_bound(binding.storage)) found.bindings.push_back(binding);
    }
    return found;
  }
  for (Id variable : *interface) {
    const auto binding = bound.find(variable);
    if (binding == bound.end())
      return error("spirv.corrupt", fmt::format("variable {} of graph '{}' has no binding", variable, entry_point));
    found.bindings.push_back(binding->second);
  }
  return found;
}

}  // namespace tosaic::vulkan
