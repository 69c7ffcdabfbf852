// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/system/environment.h"

namespace tosaic {

std::string program_file() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

}  // namespace tosaic
