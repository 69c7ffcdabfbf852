// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.h"

#include <algorithm>
#include <cstdlib>

namespace tosaic {
namespace {

#ifdef _WIN32
constexpr char between = ';';
constexpr const char* programs = "\\Scripts";
#else
constexpr char between = ':';
constexpr const char* programs = "/bin";
#endif

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<std::string> find_environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> parts_of_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(between, at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders = parts_of_path(environment_variable("PATH"));
  if (const std::string python = environment_variable("VIRTUAL_ENV"); !python.empty())
    folders.push_back(python + programs);
  return folders;
}

}  // namespace tosaic
