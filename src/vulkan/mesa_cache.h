// SPDX-License-Identifier: Apache-2.0
// Mesa's own cache of shaders, next to ours: files that it maps into the process.
#pragma once
#include <optional>
#include <string>

#include "vulkan/emulation_layer.h"

namespace tosaic::vulkan {

// While this lives, Mesa's drivers that are opened keep no cache where the disk has no room for one: the first byte
// that goes into a mapped page for which there is no block ends the process (SIGBUS). What somebody has said about that
// cache in the environment stays as it is.
class MesaCache {
 public:
  MesaCache();

 private:
  std::optional<Environment> off_;
};

// Where it lies, or will: the first folder above it that is there, too. Empty: it has none.
std::string mesa_cache_folder();
bool has_room(const std::string& folder, std::uint64_t bytes);

}  // namespace tosaic::vulkan
