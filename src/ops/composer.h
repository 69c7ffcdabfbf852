// SPDX-License-Identifier: Apache-2.0
// Composer: the one way in which stages write PyTorch's calls. A Builder of ATen graphs: the vocabulary of lowerings
// (ops/lowering/calls.h), whose calls stay nodes instead of being lowered. The types of their results are those that
// their lowerings give in a scratch graph (ops/trial.h); nobody states them a second time.
//
//   Composer c(graph);
//   c.set_loc(node.loc);
//   calls::where(c.value(mask), calls::mul(c.value(x), 2.0), c.value(x)).id()
#pragma once
#include <span>

#include "ops/builder.h"

namespace tosaic {

class Composer final : public Builder {
 public:
  // What results are called; by default after their operators.
  using Names = std::function<std::string(Operator)>;
  explicit Composer(Graph& graph, Names names = {}) : Builder(graph), names_(std::move(names)) {}

  // A value that the graph has.
  Val value(ValueId v) { return {this, v}; }
  // Operands of a call; no_value: None.
  std::vector<std::optional<Val>> values(std::span<const ValueId> operands);

  // A call whose results are constant is these constants, unless nothing is folded (Builder::fold). Throws Refusal.
  std::vector<Val> aten_all(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs = {}) override;
  // Of constants alone, which are evaluated.
  std::vector<Val> tosa_all(Operator op, std::vector<Val> operands, Attrs attrs = {},
                            std::optional<DType> result = std::nullopt) override;
  // The calls say nothing of how they are lowered.
  bool exact() const override { return false; }

 private:
  Names names_;
};

// What `compose` gives, a Status or a Result, or why a call cannot be made.
template <class Compose>
auto unless_refused(Compose compose) -> decltype(compose()) {
  try {
    return compose();
  } catch (Refusal& refusal) { return std::move(refusal.why); }
}

}  // namespace tosaic
