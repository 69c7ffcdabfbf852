// SPDX-License-Identifier: Apache-2.0
#include "read/assumption.h"

#include <cctype>

namespace tosaic {

std::string_view computed_assumption(std::string_view assertion) {
  constexpr std::string_view before = "expression ", after = " on node";
  const auto begin = assertion.find(before), end = assertion.rfind(after);
  if (begin == assertion.npos || end == assertion.npos || end < begin + before.size()) return {};
  const std::string_view text = assertion.substr(begin + before.size(), end - begin - before.size());
  const auto is = [&](std::size_t i, auto what) {
    return i < text.size() && what(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && (is(i - 1, isalnum) || text[i - 1] == '_')) continue;
    for (const std::string_view symbol : {"u", "zuf"})
      if (text.substr(i).starts_with(symbol) && is(i + symbol.size(), isdigit)) return text;
  }
  return {};
}

}  // namespace tosaic
