// SPDX-License-Identifier: Apache-2.0
// A VGF file on a Vulkan device, ready to run again and again: pipelines made, constants uploaded, commands recorded,
// inputs and outputs mapped. What the delegate and `tosaic run` use.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/vgf/vgf.h"
#include "ir/type.h"

namespace tosaic::vulkan {

struct ModelOptions {
  std::string device;  // an index, a part of a name, or empty: the best one
  bool stage = false;  // copies inputs and outputs through staging memory, also where the device does not need it
};

class Model {
 public:
  // Everything that can fail for reasons of the file or the machine fails here. Errors: vulkan.no-loader,
  // vulkan.no-driver, vulkan.version, vulkan.no-extension, vulkan.feature, vulkan.device, vulkan.resource,
  // vulkan.segment, vulkan.memory, vulkan.failed; vgf.*, spirv.* and tosa.* where the file is at fault.
  static Result<Model> load(vgf::File file, const ModelOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::vector<TensorType>& inputs() const;
  const std::vector<TensorType>& outputs() const;
  std::string device() const;  // "llvmpipe (LLVM 15.0.6, 256 bits) (emulation layer)"

  // Dense row-major tensors, as many as inputs() and outputs() has. Several threads may call: one model runs one of
  // them at a time, models run at the same time. Errors: vulkan.lost, vulkan.memory, vulkan.failed.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);
  // How long the device took for the last run, by its own clock; 0: it has none.
  double device_seconds() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tosaic::vulkan
