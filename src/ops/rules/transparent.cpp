// SPDX-License-Identifier: Apache-2.0
#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

// Scalars among the elements of x (pad, clamp) that the result's quantised values reach, and x's own do not.
bool puts_wider_scalars(const QuantisedCall& call) {
  if (!call.operands.at(0)) return false;
  const TensorType &x = call.operands[0]->type(), &to = call.declared.at(0);
  if (!x.quantised() || !to.quantised() || !x.scales->per_tensor() || !to.scales->per_tensor()) return false;
  const tosa::Bounds from = reals_of(x), wanted = reals_of(to);
  if (from.lowest <= wanted.lowest && from.highest >= wanted.highest) return false;
  return exceeds(call.b.graph(), call.undeclared(), from.lowest, from.highest);
}

// Quantised values in, the same quantised values out; a constant (the table of an embedding) takes the result's.
Vals lower(QuantisedCall& call) {
  Builder& b = call.b;
  const TensorType& to = call.declared.at(0);
  for (auto& v : call.operands)
    if (is_real(v) && to.quantised()) v = call.with_type_of(*v, to);
  auto& first = call.operands.at(0);
  // Integers that become reals: quantised values of scale 1.
  if (first && to.quantised() && !first->type().quantised()) {
    Val x = b.cast(*first, DType::i32);
    first = b.rescale(b.relabelled(x, {DType::i32, x.shape(), Scales{}}), to.with(x.shape()));
  }
  if (puts_wider_scalars(call)) first = b.rescale(*first, to.with(first->shape()));
  return call.as_declared();
}

}  // namespace

constinit const QuantisationRule Rule::transparent{.name = "transparent", .lower = lower, .passes_values = true};

}  // namespace tosaic
