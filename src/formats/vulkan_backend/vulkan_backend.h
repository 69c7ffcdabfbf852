// SPDX-License-Identifier: Apache-2.0
// The payload that ExecuTorch's own Vulkan flow writes for its VulkanBackend: a chain of PyTorch operators on numbered
// values, and constants, which lie after the graph or in the program's named data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/type.h"

namespace tosaic::vulkan_backend {

struct Tensor {
  DType dtype = DType::f32;    // while the graph computes
  DType staging = DType::f32;  // where the caller reads and writes it
  Shape shape;                 // of a size that the caller chooses: the most
  std::optional<std::uint32_t> constant;
  // How ExecuTorch's runtime lays it out in the GPU's memory; values do not depend on it.
  std::uint8_t storage = 255, layout = 255;
};
struct ValueList {
  std::vector<std::uint32_t> items;
};
struct SymbolicInt {};  // computed while the program runs

// monostate is Python's None, and what stands for a dtype, a layout or a device.
using Value = std::variant<std::monostate, std::int64_t, double, bool, Tensor, std::vector<std::int64_t>,
                           std::vector<double>, std::vector<bool>, ValueList, std::string, SymbolicInt>;

struct Call {
  std::uint32_t node = 0;           // its number among the nodes of the program that was lowered
  std::string op;                   // "aten.linear.default"
  std::vector<std::uint32_t> args;  // in schema order, defaults too, then the result
};

struct Constant {
  std::string key;  // in the named data, or
  Bytes data;       // here
};

struct File {
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<Constant> constants;
};

bool is_payload(const Bytes& bytes);
// Every number of a value is that of one, every constant lies inside. Errors: vulkan-backend.format, .version.
Result<File> read(const Bytes& payload, const std::string& name);

// "texture 3d, channels packed"; empty: what the runtime chooses.
std::string layout_text(const Tensor& tensor);

}  // namespace tosaic::vulkan_backend
