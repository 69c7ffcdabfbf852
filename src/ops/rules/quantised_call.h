// SPDX-License-Identifier: Apache-2.0
// A call of quantised tensors that is being lowered, and what the rules share.
#pragma once
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace tosaic {

struct QuantisedCall {
  Builder& b;
  const Node& node;
  const FoundOp found;
  const std::vector<TensorType>& declared;   // the results' types, with scales
  std::vector<std::optional<Val>> operands;  // which rules requantise

  double outermost = std::numeric_limits<double>::infinity();  // of constants: larger ones may as well be that large

  // The operator's one lowering, on the operands as they are now.
  Vals plain() { return plain(node.attrs); }
  Vals plain(const Attrs& attrs);
  // The same, its results under the types that the graph declares for them.
  Vals as_declared() { return as_declared(node.attrs); }
  Vals as_declared(const Attrs& attrs);
  // The call as it stands in the builder's graph, without results.
  Node undeclared() const;

  // Of a constant that grows with the sizes, at any of them.
  double largest_magnitude(Val constant) const;
  // A float constant as integers of the given scale; all of them multiples of `step`, then rounded.
  Val quantised_constant(Val x, DType dtype, double scale, std::int64_t zero, double step = 1) const;
  Val with_type_of(Val x, const TensorType& to) const;
};

// Float, and not quantised.
bool is_real(const std::optional<Val>& operand);
bool is_quantised(const std::optional<Val>& operand);

}  // namespace tosaic
