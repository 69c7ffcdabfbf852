// SPDX-License-Identifier: Apache-2.0
// "VulkanBackend": the payload is what ExecuTorch's own Vulkan flow wrote. Its operators are PyTorch's, so they are
// lowered when the payload is opened, and once more for inputs of other sizes.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/delegate_ids.h"
#include "delegates/graph/graph_delegate.h"
#include "delegates/vulkan/vulkan_delegate.h"
#include "delegates/vulkan_backend/buffers.h"
#include "delegates/vulkan_backend/chain.h"
#include "ops/definitions/tosa_op.h"
#include "shaders/compile.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::delegates {
namespace {

using Made = Result<std::unique_ptr<contract::Payload>>;

// The payload has 32 bits where the program may have 64.
constexpr std::uint32_t flags = TOSAIC_TENSOR_WIDER;

Made on_cpu(const contract::Opening& opening, Graph graph, int& status) {
  return open_lowered(opening, std::move(graph), flags, status);
}

Made on_device(const contract::Opening& opening, Graph graph, int& status) {
  status = TOSAIC_DELEGATE_UNSUPPORTED;
  TOSAIC_CHECK(tosa::verify_graph(graph, shaders::spec()));
  const auto compiled = [&]() -> Result<vulkan_program::Program> {
    TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(opening.device));
    return shaders::compile(graph, {&tier, 1});
  };
  return open_on_vulkan(opening, compiled(), status, flags);
}

using Run = Made (*)(const contract::Opening& opening, Graph graph, int& status);

// Empty `contents` become the graph's; others are those of a graph with the same buffers.
Made with_buffers(Run run, const contract::Opening& opening, Graph graph, std::shared_ptr<Buffers>& contents,
                  int& status) {
  if (graph.states.empty()) return run(opening, std::move(graph), status);
  const StatesAsTensors states(graph);
  if (!contents) contents = std::make_shared<Buffers>(states, graph);
  TOSAIC_TRY(auto inner, run(opening, std::move(graph), status));
  return keeping(std::move(inner), contents);
}

// A chain whose inputs may have smaller sizes than the payload states. It does not state which, nor by how much.
class Sizes : public contract::Payload {
 public:
  Sizes(contract::Opening opening, vulkan_backend::File file, Run run)
      : opening_(std::move(opening)), file_(std::move(file)), run_(run) {
    for (const vulkan_backend::Constant& constant : file_.constants)
      if (!constant.key.empty()) data_.emplace(constant.key, opening_.data(constant.key));
    opening_.data = nullptr;  // the caller's, while the payload opens
    opening_.specs.clear();
  }

  // For the most sizes, in the memory that the caller lends.
  Status open(int& status) {
    std::vector<Shape> most;
    for (std::uint32_t id : file_.inputs) {
      const auto* tensor = std::get_if<vulkan_backend::Tensor>(&file_.values[id]);
      most.push_back(tensor ? tensor->shape : Shape());
    }
    TOSAIC_TRY(auto outputs, resize(most, status));
    description_ = now_->describe();
    for (auto* tensors : {&description_.inputs, &description_.outputs})
      for (contract::TensorInfo& info : *tensors)
        for (std::int64_t& size : info.least) size = std::min<std::int64_t>(size, 1);
    for (std::size_t i = 0; i < file_.outputs.size(); ++i)
      description_.outputs[i].most = std::get<vulkan_backend::Tensor>(file_.values[file_.outputs[i]]).shape.sizes();
    opening_.memory = {};
    return {};
  }

  contract::Description describe() const override { return description_; }

  Result<std::vector<Shape>> resize(const std::vector<Shape>& inputs, int& status) override {
    const auto known = std::find_if(made_.begin(), made_.end(), [&](const One& one) { return one.inputs == inputs; });
    if (known == made_.end()) {
      const auto lookup = [&](const std::string& key) { return data_.at(key); };
      TOSAIC_TRY(Graph graph, vulkan_backend::tosa_graph(file_, lookup, opening_.name, &inputs));
      One one{inputs, {}, {}};
      for (ValueId v : graph.outputs) one.outputs.push_back(graph[v].type.shape);
      TOSAIC_TRY(one.payload, with_buffers(run_, opening_, std::move(graph), buffers_, status));
      if (made_.size() == most_kept) made_.pop_back();
      made_.push_front(std::move(one));
    } else {
      std::rotate(made_.begin(), known, known + 1);
    }
    now_ = made_.front().payload.get();
    if (wants_times_) now_->measure(*wants_times_);
    return made_.front().outputs;
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int& status) override {
    return now_->execute(inputs, outputs, status);
  }
  double device_seconds() const override { return now_->device_seconds(); }
  std::vector<contract::OperationTime> times() const override { return now_->times(); }
  void measure(bool on) override { wants_times_ = on; }
  void reset() override {
    if (buffers_) buffers_->reset();
  }

 private:
  static constexpr std::size_t most_kept = 4;  // what was made for other sizes goes, the oldest first
  struct One {
    std::vector<Shape> inputs, outputs;
    std::unique_ptr<contract::Payload> payload;
  };
  contract::Opening opening_;
  vulkan_backend::File file_;
  Run run_;
  std::map<std::string, Bytes> data_;
  contract::Description description_;
  std::shared_ptr<Buffers> buffers_;  // the same at all sizes
  std::deque<One> made_;              // the one in use in front
  contract::Payload* now_ = nullptr;
  std::optional<bool> wants_times_;
};

// The compile spec that the partitioner passes on.
bool sizes_vary(const contract::Opening& opening) {
  return std::any_of(opening.specs.begin(), opening.specs.end(), [](const contract::Spec& spec) {
    return spec.key == "require_dynamic_shapes" && !spec.value.empty() && spec.value[0] != 0;
  });
}

template <Run run>
Made open(const contract::Opening& opening, const void*, int& status) {
  TOSAIC_TRY(vulkan_backend::File file, vulkan_backend::read(opening.payload, opening.name));
  const auto reason = [&](const Diagnostic& why) {
    if (why.code != "vulkan-backend.arguments") status = TOSAIC_DELEGATE_UNSUPPORTED;
  };
  if (sizes_vary(opening)) {
    auto payload = std::make_unique<Sizes>(opening, std::move(file), run);
    if (Status opened = payload->open(status); !opened.ok()) {
      if (status == TOSAIC_DELEGATE_INVALID) reason(opened.error());
      return std::move(opened.error());
    }
    return std::unique_ptr<contract::Payload>(std::move(payload));
  }
  auto graph = vulkan_backend::tosa_graph(file, opening.data, opening.name);
  if (!graph.ok()) {
    reason(graph.error());
    return std::move(graph.error());
  }
  std::shared_ptr<Buffers> buffers;
  return with_buffers(run, opening, *std::move(graph), buffers, status);
}

// On the CPU, unless the caller asks for a device.
Made open_anywhere(const contract::Opening& opening, const void* user, int& status) {
  if (opening.device.empty() || opening.device == "cpu") return open<on_cpu>(opening, user, status);
  constexpr std::string_view vulkan = "vulkan";
  const std::string_view rest = std::string_view(opening.device).substr(std::min(vulkan.size(), opening.device.size()));
  if (!opening.device.starts_with(vulkan) || (!rest.empty() && rest[0] != ':')) {
    status = TOSAIC_DELEGATE_INCOMPATIBLE;
    return error("vulkan-backend.device", fmt::format("'{}' is no device", opening.device))
        .hint("cpu, vulkan (the best one), or vulkan: and an index or a part of a name");
  }
  contract::Opening there = opening;
  there.device = rest.substr(rest.empty() ? 0 : 1);
  return open<on_device>(there, user, status);
}

constexpr contract::Server cpu_server{open_anywhere}, device_server{open<on_device>};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_vulkan_backend_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::vulkan_backend, tosaic::delegates::cpu_server);
  return &api;
}
const tosaic_delegate_api* tosaic_vulkan_backend_compute_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::vulkan_backend, tosaic::delegates::device_server);
  return &api;
}
