// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <algorithm>
#include <utility>

namespace tosaic::plugin {

namespace {
thread_local std::string refusal;
}  // namespace

void refuse(const std::string& text) {
  say(executorch::runtime::LogLevel::Error, text);
  refusal = text;
}

std::string take_refusal() { return std::exchange(refusal, {}); }

void say(executorch::runtime::LogLevel level, std::string_view text) {
  constexpr std::size_t longest = 230;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > longest) {
      const std::size_t blank = line.rfind(' ', longest);
      line = line.substr(0, blank == line.npos || blank == 0 ? longest : blank);
    }
    if (!line.empty())
      executorch::runtime::internal::logf(level, executorch::runtime::internal::get_log_timestamp(), "tosaic", "", 0,
                                          "%.*s", static_cast<int>(line.size()), line.data());
    text.remove_prefix(line.size());
    if (!text.empty() && (text[0] == '\n' || text[0] == ' ')) text.remove_prefix(1);
  }
}

}  // namespace tosaic::plugin
