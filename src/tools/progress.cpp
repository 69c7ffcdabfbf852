// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <fmt/format.h>
#include <string>

#include "base/system/streams.h"

namespace tosaic::tools {

void show_progress(std::string_view doing, std::size_t done, std::size_t total) {
  if (total < 8) return;
  say(fmt::format("\r{} {:3}% [{:<30}]", doing, done * 100 / total, std::string(done * 30 / total, '#')));
  if (done == total) wipe_progress();
}

void wipe_progress() { say(fmt::format("\r{:50}\r", "")); }

}  // namespace tosaic::tools
