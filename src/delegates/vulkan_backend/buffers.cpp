// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_backend/buffers.h"

namespace tosaic::delegates {
namespace {

class Keeping : public contract::Payload {
 public:
  Keeping(std::unique_ptr<contract::Payload> inner, std::shared_ptr<Buffers> buffers)
      : inner_(std::move(inner)), buffers_(std::move(buffers)) {}

  contract::Description describe() const override {
    contract::Description description = inner_->describe();
    for (auto* tensors : {&description.inputs, &description.outputs})
      tensors->erase(tensors->end() - static_cast<std::ptrdiff_t>(buffers_->count()), tensors->end());
    return description;
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int& status) override {
    return buffers_->execute(*inner_, inputs, outputs, status);
  }
  double device_seconds() const override { return inner_->device_seconds(); }
  std::vector<contract::OperationTime> times() const override { return inner_->times(); }
  void measure(bool on) override { inner_->measure(on); }
  void reset() override {
    inner_->reset();
    buffers_->reset();
  }
  Result<std::unique_ptr<contract::Payload>> clone(const contract::Lent& lent) const override {
    TOSAIC_TRY(auto inner, inner_->clone(lent));
    if (!inner) return std::unique_ptr<contract::Payload>();
    return keeping(std::move(inner), buffers_->fresh());
  }

 private:
  std::unique_ptr<contract::Payload> inner_;
  std::shared_ptr<Buffers> buffers_;
};

}  // namespace

Buffers::Buffers(const StatesAsTensors& states, const Graph& graph) {
  const std::size_t before = graph.inputs.size() - states.states().size();
  for (std::size_t i = 0; i < states.states().size(); ++i) {
    const Bytes& initial = states.states()[i].initial;
    first_.emplace_back(graph[graph.inputs[before + i]].type.storage_bytes());
    if (!initial.null()) first_.back().assign(initial.data(), initial.data() + initial.size());
  }
  reset();
}

void Buffers::reset() { now_ = next_ = first_; }

Status Buffers::execute(contract::Payload& inner, std::span<const void* const> inputs, std::span<void* const> outputs,
                        int& status) {
  std::vector<const void*> all_inputs(inputs.begin(), inputs.end());
  std::vector<void*> all_outputs(outputs.begin(), outputs.end());
  for (const auto& content : now_) all_inputs.push_back(content.data());
  for (auto& content : next_) all_outputs.push_back(content.data());
  TOSAIC_CHECK(inner.execute(all_inputs, all_outputs, status));
  now_.swap(next_);
  return {};
}

std::unique_ptr<contract::Payload> keeping(std::unique_ptr<contract::Payload> inner, std::shared_ptr<Buffers> buffers) {
  return std::make_unique<Keeping>(std::move(inner), std::move(buffers));
}

}  // namespace tosaic::delegates
