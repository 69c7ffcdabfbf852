// SPDX-License-Identifier: Apache-2.0
// "TosaicVulkan": the payload is a program of compute shaders.
#include "delegates/vulkan/vulkan_delegate.h"

#include <algorithm>

#include "base/delegate_ids.h"
#include "ir/extent.h"

namespace tosaic::delegates {
namespace {

class ComputePayload : public contract::Payload {
 public:
  ComputePayload(vulkan::ComputeModel model, std::uint32_t flags) : model_(std::move(model)), flags_(flags) {}

  contract::Description describe() const override {
    const auto infos = [&](const std::vector<vulkan_program::Tensor>& tensors) {
      std::vector<contract::TensorInfo> list;
      for (const auto& t : tensors) {
        list.push_back(contract::TensorInfo::of(largest(t.type), t.name, flags_));
        std::ranges::transform(t.type.shape.dims(), list.back().least.begin(), least);
      }
      return list;
    };
    contract::Description all{infos(model_.inputs()), infos(model_.outputs()), "vulkan: " + model_.device()};
    for (std::size_t i = 0; i < all.outputs.size(); ++i)
      if (model_.can_stay(i)) all.outputs[i].flags |= TOSAIC_TENSOR_STAYS;
    return all;
  }

  Result<std::vector<Shape>> resize(const std::vector<Shape>& inputs, int& status) override {
    auto made = model_.resize(inputs);
    status = !made.ok() && made.error().code == "model.size" ? TOSAIC_DELEGATE_ARGUMENT : TOSAIC_DELEGATE_FAILED;
    return made;
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int&) override {
    return run(inputs, outputs, {});
  }
  Status execute_staying(std::span<const void* const> inputs, std::span<void* const> outputs,
                         std::span<const std::uint32_t> origins, std::span<const char> stays, int&) override {
    return run(inputs, outputs, {{origins.begin(), origins.end()}, {stays.begin(), stays.end()}});
  }
  Status fetch(std::size_t output, std::span<std::byte> to, int&) override { return model_.fetch(output, to); }

  double device_seconds() const override { return model_.device_seconds(); }
  void measure(bool on) override { wants_times_ = on; }
  std::vector<contract::OperationTime> times() const override {
    std::vector<contract::OperationTime> times;
    for (vulkan::DispatchTime& t : model_.times())
      times.push_back({std::move(t.kernel), std::move(t.value), std::move(t.place), t.seconds});
    return times;
  }
  Result<std::unique_ptr<contract::Payload>> clone(const contract::Lent&) const override {
    TOSAIC_TRY(vulkan::ComputeModel made, model_.clone());
    return std::unique_ptr<contract::Payload>(std::make_unique<ComputePayload>(std::move(made), flags_));
  }

 private:
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, const vulkan::Staying& staying) {
    if (wants_times_) TOSAIC_CHECK(model_.measure(*wants_times_));
    wants_times_.reset();
    return model_.run(inputs, outputs, staying);
  }

  vulkan::ComputeModel model_;
  std::uint32_t flags_;
  std::optional<bool> wants_times_;  // since the last execution
};

Result<std::unique_ptr<contract::Payload>> open(const contract::Opening& opening, const void*, int& status) {
  auto program = vulkan_program::read(opening.payload, opening.data);
  // Where sizes vary nothing stands before the delegate that could make 32 bits of 64.
  const bool varies = program.ok() && !program->expressions.empty();
  return open_on_vulkan(opening, std::move(program), status, varies ? TOSAIC_TENSOR_WIDER : 0);
}

constexpr contract::Server server{open};

}  // namespace

Result<std::unique_ptr<contract::Payload>> open_on_vulkan(const contract::Opening& opening,
                                                          Result<vulkan_program::Program> program, int& status,
                                                          std::uint32_t flags) {
  auto made = [&]() -> Result<std::unique_ptr<contract::Payload>> {
    TOSAIC_TRY(vulkan_program::Program read, std::move(program));
    std::function<void(const std::string&)> told;
    if (opening.told)
      told = [&](const std::string& line) { opening.told((opening.name.empty() ? "" : opening.name + ": ") + line); };
    TOSAIC_TRY(vulkan::ComputeModel model, vulkan::ComputeModel::load(std::move(read), opening.device, told));
    auto payload = std::make_unique<ComputePayload>(std::move(model), flags);
    if (opening.profile) payload->measure(true);
    return std::unique_ptr<contract::Payload>(std::move(payload));
  }();
  if (made.ok()) return made;
  // What the machine lacks says nothing of the payload.
  if (made.error().code.starts_with("vulkan.")) status = TOSAIC_DELEGATE_INCOMPATIBLE;
  return std::move(made.error()).at({opening.name, 0, ""});
}

}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_vulkan_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::vulkan, tosaic::delegates::server);
  return &api;
}
