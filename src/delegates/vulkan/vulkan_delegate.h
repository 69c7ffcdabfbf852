// SPDX-License-Identifier: Apache-2.0
// A program of compute shaders as an open payload: what the delegates that run one have in common.
#pragma once
#include "contract/serve.h"
#include "vulkan/compute_model.h"

namespace tosaic::delegates {

// Loads it on opening.device. `status` is what a refusal means; `flags` (tosaic_tensor_flags) are those of every
// tensor.
Result<std::unique_ptr<contract::Payload>> open_on_vulkan(const contract::Opening& opening,
                                                          Result<vulkan_program::Program> program, int& status,
                                                          std::uint32_t flags = 0);

}  // namespace tosaic::delegates
