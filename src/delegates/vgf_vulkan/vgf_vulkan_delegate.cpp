// SPDX-License-Identifier: Apache-2.0
// "VgfBackend" on a Vulkan device: the payload is a VGF file.
#include "base/delegate_ids.h"
#include "contract/serve.h"
#include "vulkan/model.h"

namespace tosaic::delegates {
namespace {

class VgfPayload : public contract::Payload {
 public:
  explicit VgfPayload(vulkan::Model model) : model_(std::move(model)) {}

  // A VGF file keeps Vulkan's formats: of which kind the elements are, it does not always tell.
  contract::Description describe() const override {
    const auto infos = [](const std::vector<TensorType>& types) {
      std::vector<contract::TensorInfo> list;
      for (const TensorType& type : types) list.push_back(contract::TensorInfo::of(type, "", TOSAIC_TENSOR_ANY_DTYPE));
      return list;
    };
    return {infos(model_.inputs()), infos(model_.outputs()), "vulkan: " + model_.device()};
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int&) override {
    return model_.run(inputs, outputs);
  }

  double device_seconds() const override { return model_.device_seconds(); }

 private:
  vulkan::Model model_;
};

Result<std::unique_ptr<contract::Payload>> open(const contract::Opening& opening, const void*, int& status) {
  auto model = [&]() -> Result<vulkan::Model> {
    TOSAIC_TRY(vgf::File file, vgf::read(opening.payload));
    return vulkan::Model::load(std::move(file), {.device = opening.device});
  }();
  if (model.ok()) return std::unique_ptr<contract::Payload>(std::make_unique<VgfPayload>(*std::move(model)));
  // What the machine lacks says nothing of the payload.
  if (model.error().code.starts_with("vulkan.")) status = TOSAIC_DELEGATE_INCOMPATIBLE;
  return std::move(model.error()).at({opening.name, 0, ""});
}

constexpr contract::Server server{open};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_vgf_vulkan_delegate(void) {
  static const tosaic_delegate_api api = tosaic::contract::table(tosaic::delegate_ids::vgf, tosaic::delegates::server);
  return &api;
}
