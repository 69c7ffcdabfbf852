// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// A bound that is absent, or a number that wins over no element.
double bound(const Call& call, std::string_view name, double otherwise) {
  if (!call.has(name)) return otherwise;
  const double value = call.number(name);
  if (std::isnan(value)) call.builder().refuse("aten.nan-bound", "clamp to NaN makes every element NaN");
  return value;
}

Vals lower(Builder& b, const Call& call) {
  using promotion::Operand;
  std::vector<Operand> operands{Operand::of(call, "self")};
  if (call.overload() == "default") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double highest = bound(call, "max", infinity), lowest = std::min(bound(call, "min", -infinity), highest);
    for (auto name : {"min", "max"})
      if (call.has(name)) operands.push_back(Operand::of(call, name));
    auto p = promotion::promote(b, operands, promotion::Compute::as_is);
    return b.clamp(p.values[0], lowest, highest);
  }
  auto low = call.optional_tensor("min"), high = call.optional_tensor("max");
  if (low) operands.push_back({low});
  if (high) operands.push_back({high});
  auto p = promotion::promote(b, operands);
  Val y = p.values[0];
  if (low) y = b.maximum(y, p.values[1]);
  if (high) y = b.minimum(y, p.values.back());
  return p.finished(y);
}
}  // namespace

AtenOp aten_clamp() {
  return {
      .schemas = {"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                  "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                  "clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
                  "clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
                  "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                  "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                  "clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
                  "clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)"},
      .summary = "x raised to at least min, then lowered to at most max",
      .rule = Rule::transparent,
      .overload_rules = {{"Tensor", Rule::joined}},
      .lower = {lower},
      .domain = {"x(2,3,4), -0.5, 0.5", "x(2,3,4), min=0.25", "x(2,3,4), max=0.25", "x(2,3,4), 1.0, -1.0",
                 "e(28), -2.0, 2.0", "i(-9,9,12), -3, 4", "i(-9,9,12), -2.5", "Tensor: x(2,3,4), x(4), x(3,4)",
                 "Tensor: x(2,3,4), None, x(3,4)", "Tensor: i(-9,9,12), i(-5,0,12)", "u8(0,256,24), 10, 200",
                 "u8(0,256,24), max=100", "clip.default: x(2,3,4), -0.5, 0.5", "clip.Tensor: x(2,3,4), x(4), x(3,4)"}};
}
}  // namespace tosaic
