// SPDX-License-Identifier: Apache-2.0
// sqrt(x^2 + y^2): squares are whole in i32, and their sum is. 16 bits of that sum leave a signal that is 40 dB quieter
// than the loudest a hundredth of its steps, so there are several tables, each of a smaller part next to 0 of what the
// one before has, in which the sum saturates. Lines between knots lie below a root, and so does where a table ends: the
// largest of what they give is the nearest.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

// Tables, and by how much smaller the part of each is. Lines between knots are too low by most where a part begins, and
// below the last one's first knot: by half a step of 8 bits, and of 16.
struct Parts {
  int count;
  double smaller;
};
constexpr Parts for_8_bits{2, 128}, for_16_bits{6, 16};

// Of both legs: the larger scale, in halves as often as 16 bits hold; 0: neither has one.
double unit_of(const std::vector<std::optional<Val>>& legs) {
  double unit = 0, reach = 0;
  for (const auto& leg : legs)
    if (is_quantised(leg)) {
      unit = std::max(unit, leg->type().scales->scale[0]);
      reach = std::max(reach, reach_of(leg->type()));
    }
  while (unit > 0 && reach <= unit / 2 * 32767) unit /= 2;
  return unit;
}

// Of squares below `first` none: where steps of the sum are large next to it, the root of one may be too large.
Builder::Function roots_from(double first) {
  return [first](const std::vector<double>& squares) {
    std::vector<double> roots;
    for (const double s : squares) roots.push_back(s < first ? 0 : std::sqrt(std::max(s, 0.0)));
    return roots;
  };
}

// Next to a number it is a function of one leg.
Vals beside_number(QuantisedCall& call, Val leg, double number) {
  const Builder::Function f = [number](const std::vector<double>& legs) {
    std::vector<double> lengths;
    for (const double x : legs) lengths.push_back(std::hypot(x, number));
    return lengths;
  };
  const TensorType to = call.declared.at(0);
  return {call.b.reshape(call.b.table(leg, to.with(leg.shape()), f), to.shape)};
}

Vals lower(QuantisedCall& call) {
  Builder& b = call.b;
  for (const std::size_t i : {0, 1}) {
    const auto &leg = call.operands.at(i), &other = call.operands.at(1 - i);
    if (is_quantised(leg) && is_real(other) && other->is_constant() && other->shape().elements() == 1)
      return beside_number(call, *leg, call.largest_magnitude(*other));
  }
  const double unit = unit_of(call.operands);
  if (unit == 0)
    b.refuse("quantise.float-operand", fmt::format("{} has a quantised result and no quantised operand", call.node.op));
  const bool narrow =
      std::ranges::all_of(call.operands, [](const auto& leg) { return leg && leg->dtype() == DType::i8; });
  const auto square = [&](const Val& leg) {
    const TensorType whole{DType::i32, leg.shape(), Scales{{unit}, {0}}};
    const Val x =
        is_quantised(leg) ? b.rescale(leg, whole) : b.as_i32(call.quantised_constant(leg, DType::i16, unit, 0));
    const Val squared = b.mul(x, x);
    // i32 is too small by 1 for the sum of two squares of -32768. Of 2^30 RESCALE takes no half, but a little less.
    return narrow ? squared : b.rescale(squared, {DType::i32, leg.shape(), Scales{{2.0001 * unit * unit}, {0}}});
  };
  const Val sum = b.add(square(call.operands.at(0).value()), square(call.operands.at(1).value()));
  const TensorType to = call.declared.at(0).with(sum.shape());
  const double largest = std::min(reach_of(to), std::sqrt(2.0) * 32767 * unit);
  const TensorType root{DType::i16, sum.shape(),
                        Scales{{to.dtype == DType::i16 ? to.scales->scale[0] : largest / 32767}, {0}}};
  const Parts& parts = to.dtype == DType::i16 ? for_16_bits : for_8_bits;
  std::optional<Val> longest;
  double part = largest * largest;
  for (int i = 1; i <= parts.count; ++i, part /= parts.smaller) {
    const Val held = b.rescale(sum, {DType::i16, sum.shape(), Scales{{part / 32767}, {0}}});
    const Val found = b.as_i32(b.table(held, root, roots_from(i < parts.count ? part / parts.smaller : 0)));
    longest = longest ? b.maximum(*longest, found) : found;
  }
  return {b.rescale(*longest, to)};
}

}  // namespace

constinit const QuantisationRule Rule::magnitude{.name = "magnitude", .lower = lower, .is_magnitude = true};

}  // namespace tosaic
