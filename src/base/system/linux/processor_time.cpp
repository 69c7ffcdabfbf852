// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <cstdio>
#include <fstream>

#include "base/system/hosted/child_process.h"

namespace tosaic {

std::optional<std::uint64_t> processor_time(int id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const auto name = text.rfind(')');
  char state = 0;
  unsigned long user = 0, system = 0;
  if (name == std::string::npos ||
      std::sscanf(text.c_str() + name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user,
                  &system) != 3)
    return std::nullopt;
  return state == 'T' || state == 't' ? std::nullopt : std::optional<std::uint64_t>(user + system);
}

}  // namespace tosaic
