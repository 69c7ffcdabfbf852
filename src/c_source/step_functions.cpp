// SPDX-License-Identifier: Apache-2.0
#include "c_source/step_functions.h"

#include <fmt/format.h>
#include <cctype>

#include "c_source/types.h"

namespace tosaic::c_source {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

// The text, with some of its identifiers under other names.
std::string renamed(std::string_view text, const Names& names) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string made;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && in_word(text[end])) ++end;
    const auto known = names.find(text.substr(0, end));
    made += known == names.end() ? text.substr(0, end) : std::string_view(known->second);
    for (; end < text.size() && !in_word(text[end]); ++end) made += text[end];
    text.remove_prefix(end);
  }
  return made;
}

}  // namespace

std::string StepFunctions::of(const Step& step, const std::string& operators) {
  std::string parameters;
  Names names;
  // `const int8_t *restrict in0` for what is read, `int8_t *restrict out0` for what is written.
  const auto add = [&](const std::vector<ValueId>& values, std::string_view qualifier, std::string_view stem) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string& name = names[name_of_value(values[i])] = fmt::format("{}{}", stem, i);
      parameters += fmt::format("{}{}{} *restrict {}", parameters.empty() ? "" : ", ", qualifier,
                                c_type(planning_.operand_type(values[i]).dtype), name);
    }
  };
  add(step.reads, "const ", "in");
  add(step.writes, "", "out");
  if (step.scratch_bytes > 0) parameters += ", void *restrict scratch";
  const std::string text = fmt::format("({}) {{\n{}}}\n\n", parameters, renamed(step.body, names));
  const auto [known, added] = names_.try_emplace(text, "");
  if (added) {
    known->second = fmt::format("{}_step{}", planning_.name, names_.size() - 1);
    code_ += fmt::format("/* {} */\nTOSAIC_STEP void {}{}", operators, known->second, text);
  }
  return known->second;
}

}  // namespace tosaic::c_source
