// SPDX-License-Identifier: Apache-2.0
// "VgfBackend" on a Vulkan device: the payload is a VGF file.
#include <fmt/format.h>

#include "runtime/delegate.h"
#include "vulkan/model.h"

namespace tosaic::runtime {
namespace {

class VgfVulkanDelegate : public Delegate {
 public:
  Status init(const Bytes& payload, std::span<const pte::CompileSpec>, std::span<const TensorType> arguments,
              const DelegateContext& context) override {
    auto made = load(payload, context);
    if (!made.ok()) return std::move(made.error()).at({context.name, 0, ""});
    model_ = *std::move(made);
    const std::size_t inputs = model_->inputs().size(), outputs = model_->outputs().size();
    if (inputs + outputs != arguments.size())
      return error("delegate.arguments",
                   fmt::format("the VGF file takes {} inputs and gives {} outputs, the program passes {} tensors",
                               inputs, outputs, arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const TensorType& wanted = i < inputs ? model_->inputs()[i] : model_->outputs()[i - inputs];
      if (storage_size(arguments[i].dtype) != storage_size(wanted.dtype) ||
          arguments[i].shape.dims() != wanted.shape.dims())
        return error("delegate.arguments", fmt::format("tensor {} is {} in the program and {} in the VGF file", i,
                                                       to_string(arguments[i]), to_string(wanted)));
    }
    return {};
  }

  std::size_t inputs() const override { return model_->inputs().size(); }
  std::string device() const override { return "vulkan: " + model_->device(); }
  double device_seconds() const override { return model_->device_seconds(); }

  Status execute(std::span<void* const> arguments) override {
    const std::vector<const void*> inputs(arguments.begin(),
                                          arguments.begin() + static_cast<std::ptrdiff_t>(model_->inputs().size()));
    return model_->run(inputs, arguments.subspan(inputs.size()));
  }

 private:
  static Result<vulkan::Model> load(const Bytes& payload, const DelegateContext& context) {
    TOSAIC_TRY(vgf::File file, vgf::read(payload));
    return vulkan::Model::load(std::move(file), {.device = context.vulkan_device});
  }
  std::optional<vulkan::Model> model_;
};

}  // namespace

std::unique_ptr<Delegate> vgf_vulkan_delegate() { return std::make_unique<VgfVulkanDelegate>(); }

}  // namespace tosaic::runtime
