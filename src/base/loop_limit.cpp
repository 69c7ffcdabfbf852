// SPDX-License-Identifier: Apache-2.0
#include "base/loop_limit.h"

#include <fmt/format.h>
#include <charconv>

#include "base/system/environment.h"

namespace tosaic {

Result<std::int64_t> most_turns() {
  constexpr std::int64_t usual = 1000000;
  const std::string text = environment_variable("TOSAIC_LOOP_LIMIT");
  if (text.empty()) return usual;
  std::int64_t wanted = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  if (problem == std::errc() && end == text.data() + text.size() && wanted > 0) return wanted;
  return error("run.loop-limit",
               fmt::format("TOSAIC_LOOP_LIMIT is '{}' in the environment, which is no number of iterations", text))
      .hint(
          fmt::format("give it a whole number from 1 on, or leave it out: a loop may then take {} iterations", usual));
}

Diagnostic too_many_turns(std::int64_t most) {
  return error("run.loop-limit", fmt::format("a loop of the program does not end within {} iterations", most))
      .hint("if it ends at all, allow it more: TOSAIC_LOOP_LIMIT=N in the environment");
}

}  // namespace tosaic
