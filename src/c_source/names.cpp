// SPDX-License-Identifier: Apache-2.0
#include "c_source/names.h"

#include <algorithm>
#include <cctype>

namespace tosaic::c_source {

std::string name_in_c(std::string text, const char* first) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text.insert(0, first);
  return text;
}

std::string macro_name(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

}  // namespace tosaic::c_source
