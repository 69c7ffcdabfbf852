// SPDX-License-Identifier: Apache-2.0
// How the integer form of an operator follows from its float form: the rules among which operators choose
// (`.rule = Rule::pointwise`), each defined in the file of its name. Rules are not compared: stages ask
// (quantisation_rule.h).
#pragma once

namespace tosaic {

struct QuantisationRule;

// One of them.
class Rule {
 public:
  static const QuantisationRule
      pointwise,    // y = f(x), one tensor in, one out: a table of f at the representable inputs
      transparent,  // output quantised values are input quantised values, same scale: views, max pooling, clamp
      sum,          // linear in its inputs: rescaled to one common int32 scale, then the same lowering
      product,      // inputs taken as int32 without zero point, then the same lowering; scales multiply
      accumulate,   // conv, linear, matmul: the builder's int8 x int8 -> int32 forms, rescaled per channel
      magnitude,    // the root of a sum of squares of two tensors, whole in i32: hypot
      joined,       // all tensor inputs are brought to the output's scale: cat, where, maximum
      inside,       // composite: lowered to other ATen operators first, which are then quantised one by one
      index,        // integer or boolean tensors, or no tensor arithmetic at all: nothing to quantise
      float_only;   // stays float

  constexpr Rule(const QuantisationRule& rule) : rule_(&rule) {}
  constexpr const QuantisationRule* operator->() const { return rule_; }

 private:
  const QuantisationRule* rule_;
};

}  // namespace tosaic
