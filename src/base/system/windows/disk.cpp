// SPDX-License-Identifier: Apache-2.0
#include "base/system/disk.h"

#include <filesystem>

namespace tosaic {

std::optional<std::uint64_t> free_bytes(const std::string& folder) {
  std::error_code failure;
  const std::filesystem::space_info disk = std::filesystem::space(folder, failure);
  if (failure) return std::nullopt;
  return disk.available;
}

}  // namespace tosaic
