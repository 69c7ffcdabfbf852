// SPDX-License-Identifier: Apache-2.0
#include "base/system/disk.h"

#include <sys/statvfs.h>

namespace tosaic {

std::optional<std::uint64_t> free_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
}

}  // namespace tosaic
