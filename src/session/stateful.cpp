// SPDX-License-Identifier: Apache-2.0
#include "session/stateful.h"

#include "session/forwarding.h"

namespace tosaic {
namespace {

class Stateful : public Forwarding {
 public:
  Stateful(Interface outside, RunnablePtr inner, std::vector<Tensor> first)
      : Forwarding(std::move(outside), std::move(inner)), first_(std::move(first)), now_(first_) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), now_.begin(), now_.end());
    TOSAIC_TRY(std::vector<Tensor> results, Forwarding::run(all));
    for (std::size_t i = now_.size(); i-- > 0; results.pop_back()) now_[i] = std::move(results.back());
    return results;
  }
  Result<Tensor> state(std::size_t i) const override { return now_[i]; }
  Status set_state(std::size_t i, const Tensor& content) override {
    now_[i] = {content.type, Bytes::copy(content.data.data(), content.data.size())};
    return {};
  }
  Status reset() override {
    now_ = first_;
    return {};
  }

 private:
  RunnablePtr around(RunnablePtr inner) const override {
    return std::make_unique<Stateful>(interface(), std::move(inner), first_);
  }

  std::vector<Tensor> first_, now_;
};

}  // namespace

RunnablePtr stateful(RunnablePtr inner, const StatesAsTensors& states) {
  const std::size_t count = states.states().size();
  if (count == 0) return inner;
  Interface outside = inner->interface();
  std::vector<Tensor> first;
  for (std::size_t i = 0; i < count; ++i) {
    const State& state = states.states()[i];
    const TensorType& type = outside.inputs[outside.inputs.size() - count + i];
    outside.states.emplace_back(state.name, type);
    first.push_back(
        {type, state.initial.null() ? Bytes::of(std::vector<std::byte>(type.storage_bytes())) : state.initial});
  }
  for (auto* tensors : {&outside.inputs, &outside.outputs}) tensors->resize(tensors->size() - count);
  for (auto* names : {&outside.input_names, &outside.output_names})
    if (names->size() > count) names->resize(names->size() - count);
  return std::make_unique<Stateful>(std::move(outside), std::move(inner), std::move(first));
}

}  // namespace tosaic
