// SPDX-License-Identifier: Apache-2.0
// A quantisation rule: what stages ask of the rule that an operator has chosen. docs/numerics.md tells the arithmetic.
#pragma once
#include <string_view>

#include "ops/op.h"

namespace tosaic {

struct QuantisedCall;

struct QuantisationRule {
  std::string_view name;  // in plans, and in the list of operators

  // The integers of a call: what is wrapped around the operator's one lowering. Rules never look at operator names.
  // Throws Refusal.
  Vals (*lower)(QuantisedCall& call);

  // Has the call one? A composite has none of its own: it is decomposed, and its parts follow rules of theirs.
  bool has_integer_form = true;
  bool is_composite = false;
  // What it computes has no scale: integers, booleans, indices (argmax), or what is known without operands (zeros).
  bool is_unscaled = false;
  constexpr bool quantises() const { return has_integer_form && !is_unscaled; }

  // Who shares a scale. The results are quantised values of the first operand, and have its width as well...
  bool passes_values = false;
  // ...or elements of several operands, which are requantised to the result's scale. Two of unlike range suffer.
  bool joins_operands = false;
  // Either: results are made of the operands' elements, and of scalars that the call may put among them (pad, clamp).
  constexpr bool shares_scale() const { return passes_values || joins_operands; }

  // The result is a function of each element of one tensor, as a lookup table.
  bool tabulates = false;
  // The operand's quantised values are used as they are, in no other width or scale than the operand's, and the result
  // can be nothing but quantised: there is no integer between the two.
  constexpr bool maps_values() const { return tabulates || passes_values; }

  // Sums, differences, reductions, comparisons: the operands are requantised to one unit.
  bool adds = false;
  // The result is linear in each operand: sums and products.
  bool is_linear = false;
  // The result is the length of what has the operands as legs: k times as large where all of them are.
  bool is_magnitude = false;
  // The first two operands are multiplied and products summed, in a form that wants 8 bits of at least the second:
  // the weight, where the operator has one.
  bool accumulates = false;

  // Can a call be its operand (dropout, detach), or depend on nothing but its shape (ones_like)?
  constexpr bool may_be_identity() const { return passes_values || is_unscaled; }
};

}  // namespace tosaic
