// SPDX-License-Identifier: Apache-2.0
// The bindings of a SPIR-V module, graph or compute shader, to be compared with what a segment says of it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/spirv/spirv.h"
#include "formats/vgf/vgf.h"

namespace tosaic::vulkan {

inline constexpr std::uint32_t storage_uniform = 2;  // SPIR-V's older storage class of buffers

struct ModuleBinding {
  std::uint32_t set = 0, binding = 0;
  std::uint32_t storage = 0;  // SPIR-V's storage class
};

struct ModuleInterface {
  std::vector<ModuleBinding> bindings;  // graph: inputs, then outputs, in order; shader: all, in no order
  bool has_push_constants = false;
};

// The words are framed as instructions and the module has this entry point. Errors: spirv.*.
Result<ModuleInterface> interface_of(std::span<const spirv::Word> words, const std::string& entry_point,
                                     vgf::Kind kind);

}  // namespace tosaic::vulkan
