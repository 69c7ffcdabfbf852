// SPDX-License-Identifier: Apache-2.0
#include "vulkan/mesa_cache.h"

#include <filesystem>
#include <optional>

#include "base/system/disk.h"
#include "base/system/environment.h"

namespace tosaic::vulkan {
namespace {

namespace fs = std::filesystem;

constexpr const char* disabled = "MESA_SHADER_CACHE_DISABLE";
// An index of 1.3 MB, and shaders of programs that are opened now.
constexpr std::uint64_t enough = std::uint64_t{16} << 20;

}  // namespace

std::string mesa_cache_folder() {
  std::string folder = environment_variable("MESA_SHADER_CACHE_DIR");
  if (folder.empty()) folder = environment_variable("XDG_CACHE_HOME");
  if (folder.empty()) folder = environment_variable("HOME");
  if (folder.empty()) return "";
  std::error_code ignored;
  fs::path at = folder;
  while (!fs::exists(at, ignored) && at.has_parent_path() && at.parent_path() != at) at = at.parent_path();
  return at.string();
}

bool has_room(const std::string& folder, std::uint64_t bytes) {
  const std::optional<std::uint64_t> free = folder.empty() ? std::nullopt : free_bytes(folder);
  return !free || *free >= bytes;  // else nobody can say
}

MesaCache::MesaCache() {
  if (environment_variable(disabled).empty() && !has_room(mesa_cache_folder(), enough)) off_.emplace(disabled, "true");
}

}  // namespace tosaic::vulkan
