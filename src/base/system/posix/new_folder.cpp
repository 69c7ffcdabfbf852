// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/system/hosted/files.h"

namespace tosaic {

std::string new_folder(const std::string& parent, std::string& problem) {
  std::string pattern = (parent.empty() ? "/tmp" : parent) + "/tosaic-XXXXXX";
  if (::mkdtemp(pattern.data())) return pattern;
  problem = fmt::format("{}: {}", pattern, std::strerror(errno));
  return "";
}

}  // namespace tosaic
