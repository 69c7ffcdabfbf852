// SPDX-License-Identifier: Apache-2.0
// The chain of PyTorch operators in a payload of ExecuTorch's VulkanBackend as a graph that tosaic lowers.
#pragma once
#include <functional>
#include <string>

#include "formats/vulkan_backend/vulkan_backend.h"
#include "ir/graph.h"

namespace tosaic::vulkan_backend {

using Lookup = std::function<Bytes(const std::string& key)>;  // null Bytes: no such key

// As ATen: inputs and outputs are what the caller passes, sizes that it chooses are the most, buffers that the payload
// keeps from run to run are states. Errors:
// vulkan-backend.operator (unknown to tosaic), .arguments, .data (a constant is not here), .state (an operator
// that writes to an argument), .symbolic.
// With `inputs`, for inputs of these sizes, from which all others follow.
Result<Graph> aten_graph(const File& file, const Lookup& data, const std::string& name,
                         const std::vector<Shape>* inputs = nullptr);
// The same, lowered.
Result<Graph> tosa_graph(const File& file, const Lookup& data, const std::string& name,
                         const std::vector<Shape>* inputs = nullptr);

}  // namespace tosaic::vulkan_backend
