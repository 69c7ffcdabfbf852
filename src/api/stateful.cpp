// SPDX-License-Identifier: Apache-2.0
#include "api/stateful.h"

namespace tosaic {
namespace {

struct Kept {
  Runnable inner;
  std::vector<std::pair<std::string, TensorType>> states;
  std::vector<Tensor> first, now;
};

Runnable around(std::shared_ptr<Kept> kept) {
  Runnable r = kept->inner;
  for (auto* of_inputs : {&r.inputs, &r.outputs}) of_inputs->resize(of_inputs->size() - kept->states.size());
  for (auto* names : {&r.input_names, &r.output_names})
    if (names->size() > kept->states.size()) names->resize(names->size() - kept->states.size());
  r.states = kept->states;
  r.run = [kept](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), kept->now.begin(), kept->now.end());
    TOSAIC_TRY(std::vector<Tensor> results, kept->inner.run(all));
    for (std::size_t i = kept->now.size(); i-- > 0; results.pop_back()) kept->now[i] = std::move(results.back());
    return results;
  };
  r.state = [kept](std::size_t i) { return kept->now[i]; };
  r.set_state = [kept](std::size_t i, const Tensor& content) -> Status {
    kept->now[i] = {content.type, Bytes::copy(content.data.data(), content.data.size())};
    return {};
  };
  r.reset = [kept]() -> Status {
    kept->now = kept->first;
    return {};
  };
  r.clone = {};
  if (kept->inner.clone)
    r.clone = [kept]() -> Result<Runnable> {
      auto made = std::make_shared<Kept>(Kept{{}, kept->states, kept->first, kept->first});
      TOSAIC_TRY(made->inner, kept->inner.clone());
      return around(std::move(made));
    };
  return r;
}

}  // namespace

Runnable stateful(Runnable inner, const StatesAsTensors& states) {
  const std::size_t count = states.states().size();
  if (count == 0) return inner;
  auto kept = std::make_shared<Kept>();
  for (std::size_t i = 0; i < count; ++i) {
    const State& state = states.states()[i];
    const TensorType type = inner.inputs[inner.inputs.size() - count + i];
    kept->states.emplace_back(state.name, type);
    kept->first.push_back(
        {type, state.initial.null() ? Bytes::of(std::vector<std::byte>(type.storage_bytes())) : state.initial});
  }
  kept->now = kept->first;
  kept->inner = std::move(inner);
  return around(std::move(kept));
}

}  // namespace tosaic
