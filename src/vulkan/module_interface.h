// SPDX-License-Identifier: Apache-2.0
// What a SPIR-V module takes and gives, as far as binding it needs: graphs and compute shaders alike. The driver is
// given no module that disagrees with its segment: nothing checks behind us.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/spirv/spirv.h"
#include "formats/vgf/vgf.h"

namespace tosaic::vulkan {

inline constexpr std::uint32_t storage_uniform = 2, storage_buffer = 12;  // storage classes of buffers

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

// ---- two outputs that the emulation layer gets wrong

struct GraphOutputs {
  std::vector<spirv::Word> words;  // the module, where null constants that are outputs became graph constants
  struct Zero {
    std::uint32_t id = 0;  // GraphConstantID
    std::size_t output = 0;
  };
  std::vector<Zero> zeros;                                      // what must be passed for them: zeros
  std::vector<std::pair<std::size_t, std::size_t>> same_value;  // outputs that set one value: only one is written
};
// Of a module that spirv::read_graph has read.
GraphOutputs outputs_for_drivers(std::span<const spirv::Word> words);

}  // namespace tosaic::vulkan
