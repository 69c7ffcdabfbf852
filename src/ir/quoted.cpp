// SPDX-License-Identifier: Apache-2.0
#include "ir/quoted.h"

#include <fmt/format.h>

namespace tosaic::text {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (code < 0x20 || code == 0x7f)
      out += fmt::format("\\x{:02x}", code);
    else
      out += c;
  }
  return out + '"';
}

}  // namespace tosaic::text
