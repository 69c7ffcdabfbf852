// SPDX-License-Identifier: Apache-2.0
#include "base/html_text.h"

namespace tosaic {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  return safe;
}

}  // namespace tosaic
