// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.h"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>

namespace tosaic {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<std::string> find_environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

void set_environment_variable(const char* name, const std::optional<std::string>& value) {
  if (value)
    ::setenv(name, value->c_str(), 1);
  else
    ::unsetenv(name);
}

int process_number() { return ::getpid(); }

std::string program_file() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

std::vector<std::string> parts_of_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders = parts_of_path(environment_variable("PATH"));
  if (const std::string python = environment_variable("VIRTUAL_ENV"); !python.empty())
    folders.push_back(python + "/bin");
  return folders;
}

}  // namespace tosaic
