// SPDX-License-Identifier: Apache-2.0
// Linear in its inputs: everything on one int32 scale, the unit, fine enough that rounding the inputs does not show,
// and coarse enough that no quantised values of the operands and no constants can overflow it.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ops/builder_bounds.h"
#include "ops/computed.h"
#include "ops/lowering/mask.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

double number_of(const Attrs& attrs, std::string_view name, double otherwise) {
  const Attr* attr = attrs.find(name);
  if (!attr) return otherwise;
  if (const auto* i = std::get_if<std::int64_t>(attr)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(attr)) return *d;
  return otherwise;
}

// The step between the values of a constant in a sum, in units of the sum, that leaves them as few bits as the
// tensors have: NPUs then have the sum in one command. An odd number of quarters, because they tell a scale that is
// no whole number from one that is. 1 where the step would show above the tensors' own rounding.
double coarsest_step(double largest, double unit, double scale, bool narrow) {
  const double quarters = std::ceil(4 * largest / (unit * (narrow ? 127 : 32767)));
  const double step = std::max(quarters + (std::fmod(quarters, 2) == 0 ? 1 : 0), 5.0) / 4;
  return unit * step <= scale / 16 ? step : 1;
}

// Is one of two operands a constant no larger than 16-bit quantised values of this scale?
bool beside_constant(const QuantisedCall& call, double scale) {
  return std::all_of(call.operands.begin(), call.operands.end(), [&](const auto& v) {
    return is_quantised(v) || (v && v->is_constant() && call.largest_magnitude(*v) <= 32767 * scale);
  });
}

Val held_within(Builder& b, Val x, double limit, double outermost) {
  const auto n = static_cast<std::size_t>(x.shape().elements());
  std::vector<double> values(n);
  bool beyond = false;
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = element_as_double(x.dtype(), b.graph()[x.id()].constant.data(), i);
    beyond |= std::fabs(values[i]) > limit;
    const double most = std::isinf(values[i]) && outermost > 0 ? outermost : limit;
    values[i] = std::clamp(values[i], -most, most);
  }
  return beyond ? b.constant({DType::f32, x.shape(), {}}, constant_bytes(DType::f32, values)) : x;
}

// A constant so large that the result saturates whatever the tensors hold may as well be just that large: masks of
// -1e9 and -infinity do not make the unit of a sum coarse. Smaller ones count with all that they are.
struct Terms {
  double reach = 0;  // the largest magnitude of their sum
  Attrs attrs;
};
Terms bounded_terms(QuantisedCall& call) {
  Terms terms{0, call.node.attrs};
  const TensorType& to = call.declared.at(0);
  double tensors = 0;
  for (const auto& v : call.operands)
    if (is_quantised(v)) tensors += reach_of(v->type());
  const double weight = std::fabs(number_of(terms.attrs, "alpha", 1.0)), more = std::max(weight, 1.0);
  const double result = to.quantised() ? reach_of(to) : tensors;
  const double limit = 2 * (tensors * more + result) / (weight > 0 ? std::min(weight, 1.0) : 1.0);
  call.outermost = limit;
  double constants = 0;
  // Infinities are what saturated: 16-bit quantised values have one below all values that were scaled to them.
  double outermost = 0;
  for (const auto& v : call.operands)
    if (v && v->dtype() == DType::i16 && to.dtype == DType::boolean) outermost = reach_of(v->type());
  for (auto& v : call.operands)
    if (is_real(v) && v->is_constant()) {
      v = held_within(call.b, *v, limit, outermost);
      constants += call.largest_magnitude(*v);
    }
  if (terms.attrs.find("other")) {
    const double other = number_of(terms.attrs, "other", 0.0);
    if (std::fabs(other) > limit)
      terms.attrs.set("other", std::copysign(std::isinf(other) && outermost > 0 ? outermost : limit, other));
    constants += std::min(std::fabs(other), limit);
  }
  terms.reach = tensors + constants;
  return terms;
}

Vals lower_in(QuantisedCall call, double coarser) {
  double largest = 0;
  int tensors = 0;
  bool narrow = true;
  for (const auto& v : call.operands)
    if (is_quantised(v)) {
      largest = std::max(largest, v->type().scales->scale[0]);
      ++tensors;
      narrow &= v->dtype() == DType::i8;
    }
  const auto& arguments = call.found.schema->arguments;
  bool joins_constant = std::any_of(arguments.begin(), arguments.end(), [](const SchemaArgument& a) {
    return (a.type == "Scalar" || a.type == "Scalar?") && a.name != "alpha";
  });
  bool mixed = std::any_of(call.operands.begin(), call.operands.end(), is_real);
  if (tensors == 1 && !joins_constant && !mixed) {  // a reduction: plain quantised values leave the most room to add up
    for (auto& v : call.operands)
      if (is_quantised(v))
        v = coarser == 1
                ? call.b.as_i32(*v)
                : call.b.rescale(*v, {DType::i32, v->shape(), Scales{{v->type().scales->scale[0] * coarser}, {0}}});
    return call.as_declared();
  }
  Terms terms = bounded_terms(call);
  if (tensors == 0 || !std::isfinite(terms.reach))  // quantised values of no scale, or sums that no scale holds
    call.b.refuse("quantise.float-operand",
                  fmt::format("{} has a quantised result and no quantised operand", call.node.op));
  // Quantised values of at most 9 (17) bits move up by 19 (11): sums of a few terms stay below 2^31. For two terms the
  // NPUs have one command, if both factors are whole numbers below 2^15, or the larger is 2^19 (14 for 16 bits)
  // exactly.
  const Attr* alpha = call.node.attrs.find("alpha");
  const bool two = call.operands.size() == 2 && (!alpha || *alpha == Attr(std::int64_t{1}));
  const bool pair = two && (tensors == 2 || beside_constant(call, largest));
  const bool equal =
      two && tensors == 2 && call.operands[0]->type().scales->scale == call.operands[1]->type().scales->scale;
  const int up = narrow ? (equal ? 14 : 19) : (pair ? 14 : 11);
  double unit = largest / (1 << up) * coarser;
  while (terms.reach > unit * (1 << 30)) unit *= 2;
  const TensorType common{DType::i32, {}, Scales{{unit}, {0}}};
  for (auto& v : call.operands) {
    if (is_quantised(v))
      v = call.b.rescale(*v, common.with(v->shape()));
    else if (is_real(v))
      v = call.quantised_constant(*v, DType::i32, unit, 0,
                                  coarsest_step(call.largest_magnitude(*v), unit, largest, narrow));
  }
  return call.as_declared(terms.attrs);
}

Vals lower(QuantisedCall& call) {
  Graph& graph = call.b.graph();
  for (auto& v : call.operands)
    if (v && v->dtype() == DType::boolean && std::any_of(call.operands.begin(), call.operands.end(), is_quantised))
      v = reals_of_mask(*v, DType::i8);
  const auto nodes = graph.nodes.size(), values = graph.values.size();
  for (double coarser = 1;; coarser *= 2) {
    Vals results = lower_in(call, coarser);
    const auto overflow = possible_overflow(graph, nodes);
    if (!overflow || coarser > 0x1p40) return results;
    graph.nodes.resize(nodes);
    graph.values.resize(values);
  }
}

}  // namespace

constinit const QuantisationRule Rule::sum{.name = "sum", .lower = lower, .adds = true, .is_linear = true};

}  // namespace tosaic
