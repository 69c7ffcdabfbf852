// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <algorithm>
#include <utility>

#include "tosaic/printable.hpp"

namespace tosaic::plugin {

namespace {
thread_local std::string refusal;
}  // namespace

void refuse(const std::string& text) {
  say(executorch::runtime::LogLevel::Error, text);
  refusal = printable(text, true);
}

std::string take_refusal() { return std::exchange(refusal, {}); }

// Names of methods and devices among it are ExecuTorch's, as they stand in a file. A listener that takes UTF-8 (Python)
// throws at anything else, through frames that let nothing through.
void say(executorch::runtime::LogLevel level, std::string_view given) {
  constexpr std::size_t longest = 230;
  const std::string shown = printable(given, true);
  std::string_view text = shown;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > longest) {
      std::size_t end = line.rfind(' ', longest);
      if (end == line.npos || end == 0)  // between characters
        for (end = longest; (static_cast<unsigned char>(line[end]) & 0xc0u) == 0x80;) --end;
      line = line.substr(0, end);
    }
    if (!line.empty())
      executorch::runtime::internal::logf(level, executorch::runtime::internal::get_log_timestamp(), "tosaic", "", 0,
                                          "%.*s", static_cast<int>(line.size()), line.data());
    text.remove_prefix(line.size());
    if (!text.empty() && (text[0] == '\n' || text[0] == ' ')) text.remove_prefix(1);
  }
}

}  // namespace tosaic::plugin
