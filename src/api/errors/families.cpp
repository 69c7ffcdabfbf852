// SPDX-License-Identifier: Apache-2.0
#include "api/errors/families.h"

#include <algorithm>

namespace tosaic {
namespace {

// '*' stands for characters of one word: any but a dot.
bool fits(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') return !text.empty() && pattern[0] == text[0] && fits(pattern.substr(1), text.substr(1));
  for (std::size_t n = 0; n <= text.size(); ++n) {
    if (fits(pattern.substr(1), text.substr(n))) return true;
    if (n < text.size() && text[n] == '.') break;
  }
  return false;
}

std::vector<ErrorFamily> all_families() {
  std::vector<ErrorFamily> all;
  for (auto* part : {errors_of_models, errors_of_operators, errors_of_precision, errors_of_outputs, errors_of_programs,
                     errors_of_boards, errors_of_graphs, errors_of_runs, errors_of_targets, errors_of_vulkan})
    for (ErrorFamily& family : part()) all.push_back(std::move(family));
  std::sort(all.begin(), all.end(), [](const ErrorFamily& a, const ErrorFamily& b) { return a.name < b.name; });
  return all;
}

}  // namespace

const std::vector<ErrorFamily>& error_families() {
  static const std::vector<ErrorFamily> all = all_families();
  return all;
}

ErrorMeaning meaning_of(std::string_view code) {
  const std::size_t dot = std::min(code.find('.'), code.size());
  const auto& all = error_families();
  const auto family =
      std::find_if(all.begin(), all.end(), [&](const ErrorFamily& f) { return f.name == code.substr(0, dot); });
  if (family == all.end()) return {};
  const std::string_view name = dot < code.size() ? code.substr(dot + 1) : std::string_view();
  // Patterns stand after names, general ones last.
  const auto row =
      std::find_if(family->codes.begin(), family->codes.end(), [&](const ErrorCode& c) { return fits(c.name, name); });
  return {&*family, row == family->codes.end() ? nullptr : &*row};
}

}  // namespace tosaic
