// SPDX-License-Identifier: Apache-2.0
#include "lower/rules.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "lower/computed.h"
#include "lower/control_flow.h"
#include "ops/builder_bounds.h"

namespace tosaic {
namespace {

using Operands = std::vector<std::optional<Val>>;

bool is_real(const TensorType& t) { return is_float(t.dtype) && !t.quantised(); }

// What the rules share: one node being lowered.
struct IntegerForm {
  Builder& b;
  const Node& node;
  const FoundOp found;
  const std::vector<TensorType>& declared;

  Vals plain(Operands operands) const { return plain(std::move(operands), node.attrs); }
  Vals plain(Operands operands, const Attrs& attrs) const {
    return lower_call(b, node.op, std::move(operands), attrs, declared);
  }

  // Results under the types that the graph declares for them.
  Vals declared_types(Vals results) const {
    for (std::size_t i = 0; i < results.size() && i < declared.size(); ++i)
      if (declared[i].quantised()) results[i] = b.rescale(results[i], declared[i].with(results[i].shape()));
    return results;
  }

  // The step between the values of a constant in a sum, in units of the sum, that leaves them as few bits as the
  // tensors have: NPUs then have the sum in one command. An odd number of quarters, because they tell a scale that is
  // no whole number from one that is. 1 where the step would show beside the tensors' own rounding.
  double coarsest_step(Val x, double unit, double scale, bool narrow) const {
    const double quarters = std::ceil(4 * largest_magnitude(x) / (unit * (narrow ? 127 : 32767)));
    const double step = std::max(quarters + (std::fmod(quarters, 2) == 0 ? 1 : 0), 5.0) / 4;
    return unit * step <= scale / 16 ? step : 1;
  }

  double largest_magnitude(Val x) const {
    double largest = 0;
    for (std::int64_t i = 0; x.is_constant() && i < x.shape().elements(); ++i) {
      const double value =
          std::fabs(element_as_double(x.dtype(), b.graph()[x.id()].constant.data(), static_cast<std::size_t>(i)));
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    return largest;
  }

  // Is one of two operands a constant no larger than 16-bit codes of this scale?
  bool beside_constant(const Operands& operands, double scale) const {
    return std::all_of(operands.begin(), operands.end(), [&](const auto& v) {
      return v && (v->type().quantised() || (v->is_constant() && largest_magnitude(*v) <= 32767 * scale));
    });
  }

  // A float constant as integers of the given scale; all of them multiples of `step`, then rounded.
  Val quantised_constant(Val x, DType dtype, double scale, std::int64_t zero, std::string_view why,
                         double step = 1) const {
    if (!x.is_constant())
      b.refuse("quantise.float-operand",
               fmt::format("operand {} of {} is float among quantised ones ({})", to_string(x.type()), node.op, why));
    const auto range = range_of(dtype);
    const auto n = static_cast<std::size_t>(x.shape().elements());
    std::vector<std::int64_t> codes(n);
    for (std::size_t i = 0; i < n; ++i) {
      double real = element_as_double(x.dtype(), b.graph()[x.id()].constant.data(), i);
      double code = std::floor(std::nearbyint(real / scale / step) * step + 0.5) + static_cast<double>(zero);
      if (std::isnan(code)) code = static_cast<double>(zero);
      codes[i] = static_cast<std::int64_t>(
          std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest)));
    }
    return b.constant({dtype, x.shape(), Scales{{scale}, {zero}}}, constant_bytes(dtype, codes));
  }

  Val in_codes_of(Val x, const TensorType& to, std::string_view why) const {
    return quantised_constant(x, to.dtype, to.scales->scale[0], to.scales->zero_point[0], why);
  }

  // y = f(x): one table, f being this operator's float lowering run on the representable inputs.
  Vals pointwise(const Operands& operands) const {
    Val x = operands.at(0).value();
    Node call{node.op, {}, node.attrs, {}, node.loc, {}};
    for (const auto& v : operands) call.inputs.push_back(v ? v->id() : no_value);
    for (std::size_t i = 1; i < operands.size(); ++i)
      if (operands[i] && !operands[i]->is_constant())
        b.refuse("quantise.pointwise-operand", fmt::format("{} takes a computed tensor in addition to x", node.op));
    auto f = [&](const std::vector<double>& inputs) {
      const auto operand = [&](std::size_t i, TensorType& type, Bytes& elements) {
        const Value& given = b.graph()[call.inputs[i]];
        type = i == 0 ? TensorType{DType::f32, Shape{static_cast<std::int64_t>(inputs.size())}, {}} : given.type;
        elements = i == 0 ? Bytes() : given.constant;
      };
      auto trial = try_node(b.graph(), call, {.fold = true, .operand = operand});
      if (!trial.ok()) throw Refusal{std::move(trial.error())};
      auto values = computed_at(*trial, {inputs});
      if (!values.ok()) throw Refusal{std::move(values.error())};
      if (values->size() == 1) values->resize(inputs.size(), values->front());
      return std::move(*values);
    };
    Val y = b.table(x, declared.at(0).with(x.shape()), f);
    return {b.reshape(y, declared[0].shape)};
  }

  // Linear in its inputs: everything on one int32 scale, fine enough that rounding the inputs does not show, and coarse
  // enough that no codes of the operands and no constants can overflow it.
  Vals sum(Operands operands) const {
    const auto nodes = b.graph().nodes.size(), values = b.graph().values.size();
    for (double coarser = 1;; coarser *= 2) {
      Vals results = sum_in(operands, coarser);
      const auto overflow = possible_overflow(b.graph(), nodes);
      if (!overflow || coarser > 0x1p40) return results;
      b.graph().nodes.resize(nodes);
      b.graph().values.resize(values);
    }
  }

  Vals sum_in(Operands operands, double coarser) const {
    double largest = 0;
    int tensors = 0;
    bool narrow = true;
    for (auto& v : operands)
      if (v && v->type().quantised()) {
        largest = std::max(largest, v->type().scales->scale[0]);
        ++tensors;
        narrow &= v->dtype() == DType::i8;
      }
    bool joins_constant = std::any_of(
        found.schema->arguments.begin(), found.schema->arguments.end(),
        [](const SchemaArgument& a) { return (a.type == "Scalar" || a.type == "Scalar?") && a.name != "alpha"; });
    bool mixed = std::any_of(operands.begin(), operands.end(), [](const auto& v) { return v && is_real(v->type()); });
    if (tensors == 1 && !joins_constant && !mixed) {  // a reduction: plain codes leave the most room to add up
      for (auto& v : operands)
        if (v && v->type().quantised())
          v = coarser == 1
                  ? b.as_i32(*v)
                  : b.rescale(*v, {DType::i32, v->shape(), Scales{{v->type().scales->scale[0] * coarser}, {0}}});
      return declared_types(plain(std::move(operands)));
    }
    Terms terms = bounded_terms(operands);
    if (tensors == 0 || !std::isfinite(terms.reach))  // codes of no scale, or sums that no scale holds
      b.refuse("quantise.float-operand", fmt::format("{} has a quantised result and no quantised operand", node.op));
    // Codes of at most 9 (17) bits move up by 19 (11): sums of a few terms stay below 2^31. For two terms the NPUs
    // have one command, if both factors are whole numbers below 2^15, or the larger is 2^19 (14 for 16 bits) exactly.
    const Attr* alpha = node.attrs.find("alpha");
    const bool two = operands.size() == 2 && (!alpha || *alpha == Attr(std::int64_t{1}));
    const bool pair = two && (tensors == 2 || beside_constant(operands, largest));
    const bool equal = two && tensors == 2 && operands[0]->type().scales->scale == operands[1]->type().scales->scale;
    const int up = narrow ? (equal ? 14 : 19) : (pair ? 14 : 11);
    double unit = largest / (1 << up) * coarser;
    while (terms.reach > unit * (1 << 30)) unit *= 2;
    const TensorType common{DType::i32, {}, Scales{{unit}, {0}}};
    for (auto& v : operands) {
      if (!v) continue;
      if (v->type().quantised())
        v = b.rescale(*v, common.with(v->shape()));
      else if (is_real(v->type()))
        v = quantised_constant(*v, DType::i32, unit, 0, "sum", coarsest_step(*v, unit, largest, narrow));
    }
    return declared_types(plain(std::move(operands), terms.attrs));
  }

  // The largest magnitude of reals that the type's codes stand for.
  static double reach_of(const TensorType& type) {
    const auto codes = codes_of(type);
    const auto zero = static_cast<double>(type.scales->zero_point[0]);
    return type.scales->scale[0] *
           std::max(static_cast<double>(codes.highest) - zero, zero - static_cast<double>(codes.lowest));
  }

  // A constant so large that the result saturates whatever the tensors hold may as well be just that large: masks of
  // -1e9 and -infinity do not make the unit of a sum coarse. Smaller ones count with all that they are.
  struct Terms {
    double reach = 0;  // the largest magnitude of their sum
    Attrs attrs;
  };
  Terms bounded_terms(Operands& operands) const {
    Terms terms{0, node.attrs};
    double tensors = 0;
    for (const auto& v : operands)
      if (v && v->type().quantised()) tensors += reach_of(v->type());
    const double weight = std::fabs(number_of("alpha", 1.0)), more = std::max(weight, 1.0);
    const double result = declared.at(0).quantised() ? reach_of(declared[0]) : tensors;
    const double limit = 2 * (tensors * more + result) / (weight > 0 ? std::min(weight, 1.0) : 1.0);
    double constants = 0;
    // Infinities are what saturated: 16-bit codes have one below all values that were scaled to them.
    double outermost = 0;
    for (const auto& v : operands)
      if (v && v->dtype() == DType::i16 && declared.at(0).dtype == DType::boolean) outermost = reach_of(v->type());
    for (auto& v : operands)
      if (v && is_real(v->type()) && v->is_constant()) {
        v = held_within(*v, limit, outermost);
        constants += largest_magnitude(*v);
      }
    if (terms.attrs.find("other")) {
      const double other = number_of("other", 0.0);
      if (std::fabs(other) > limit)
        terms.attrs.set("other", std::copysign(std::isinf(other) && outermost > 0 ? outermost : limit, other));
      constants += std::min(std::fabs(other), limit);
    }
    terms.reach = tensors + constants;
    return terms;
  }

  double number_of(std::string_view name, double otherwise) const {
    const Attr* attr = node.attrs.find(name);
    if (!attr) return otherwise;
    if (const auto* i = std::get_if<std::int64_t>(attr)) return static_cast<double>(*i);
    if (const auto* d = std::get_if<double>(attr)) return *d;
    return otherwise;
  }

  Val held_within(Val x, double limit, double outermost) const {
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

  Vals product(Operands operands) const {
    for (auto& v : operands) {
      if (!v) continue;
      if (v->type().quantised()) {
        v = b.as_i32(*v);
      } else if (is_real(v->type())) {
        const double largest = largest_magnitude(*v);
        Val codes = quantised_constant(*v, DType::i16, largest > 0 ? largest / 32767 : 1.0, 0, "product");
        v = b.as_i32(codes);
      }
    }
    return declared_types(plain(std::move(operands)));
  }

  Vals accumulate(Operands operands) const {
    for (std::size_t i = 0; i < operands.size() && i < 2; ++i)
      if (operands[i] && is_real(operands[i]->type()))
        b.refuse("quantise.float-operand",
                 fmt::format("operand {} of {} is float, the other is quantised", i, node.op));
    b.set_wanted(declared.at(0).quantised() ? std::optional(declared[0]) : std::nullopt);
    Vals results;
    try {
      results = plain(std::move(operands));
    } catch (...) {
      b.set_wanted(std::nullopt);
      throw;
    }
    b.set_wanted(std::nullopt);
    return declared_types(std::move(results));
  }

  // Codes in, the same codes out; a constant (the table of an embedding) takes the result's.
  Vals transparent(Operands operands) const {
    for (auto& v : operands)
      if (v && is_real(v->type()) && declared.at(0).quantised()) v = in_codes_of(*v, declared[0], "transparent");
    // Integers that become reals: codes of scale 1.
    if (operands.at(0) && declared.at(0).quantised() && !operands[0]->type().quantised()) {
      Val x = b.cast(*operands[0], DType::i32);
      operands[0] = b.rescale(b.relabelled(x, {DType::i32, x.shape(), Scales{}}), declared[0].with(x.shape()));
    }
    if (puts_wider_numbers(operands)) operands[0] = b.rescale(*operands[0], declared[0].with(operands[0]->shape()));
    return declared_types(plain(std::move(operands)));
  }

  // Numbers among the elements of x (pad, clamp) that the result's codes reach, and x's own do not.
  bool puts_wider_numbers(const Operands& operands) const {
    if (!operands.at(0)) return false;
    const Val x = *operands[0];
    const TensorType& to = declared.at(0);
    if (!x.type().quantised() || !to.quantised() || !x.type().scales->per_tensor() || !to.scales->per_tensor())
      return false;
    const tosa::Bounds from = reals_of(x.type()), wanted = reals_of(to);
    if (from.lowest <= wanted.lowest && from.highest >= wanted.highest) return false;
    Node call{node.op, {}, node.attrs, {}, node.loc, {}};
    for (const auto& v : operands) call.inputs.push_back(v ? v->id() : no_value);
    return exceeds(b.graph(), call, from.lowest, from.highest);
  }

  Vals joined(Operands operands) const {
    const TensorType& to = declared.at(0);
    for (auto& v : operands) {
      if (!v) continue;
      if (v->type().quantised())
        v = b.rescale(*v, to.with(v->shape()));
      else if (is_real(v->type()))
        v = in_codes_of(*v, to, "joined");
    }
    return declared_types(plain(std::move(operands)));
  }
  Vals by_rule(Operands operands) const {
    switch (found.rule) {
      case Rule::pointwise: return pointwise(operands);
      case Rule::transparent: return transparent(std::move(operands));
      case Rule::sum: return sum(std::move(operands));
      case Rule::product: return product(std::move(operands));
      case Rule::accumulate: return accumulate(std::move(operands));
      case Rule::joined: return joined(std::move(operands));
      case Rule::index: return plain(std::move(operands));
      case Rule::inside:
        b.refuse("quantise.composite", fmt::format("{} is a composite whose inner tensors have no scales", node.op));
      case Rule::float_only: b.refuse("quantise.float-only", fmt::format("{} has no integer form", node.op));
    }
    return {};
  }
};

}  // namespace

Vals lower_node(Builder& b, const Node& node, std::vector<std::optional<Val>> operands,
                const std::vector<TensorType>& declared) {
  if (!node.regions.empty()) return lower_control_flow(b, node, operands, declared);
  FoundOp found = find_aten(node.op);
  if (!found.op) return lower_call(b, node.op, std::move(operands), node.attrs, declared);  // which refuses it
  IntegerForm form{b, node, found, declared};
  bool in = std::any_of(operands.begin(), operands.end(), [](const auto& v) { return v && v->type().quantised(); });
  bool out = std::any_of(declared.begin(), declared.end(), [](const TensorType& t) { return t.quantised(); });
  if (node.op.is_conversion()) {  // real conversions: their operand's codes are plain integers
    for (auto& v : operands)
      if (v && v->type().quantised() && !v->is_constant()) {
        TensorType type = v->type().with(std::optional<Scales>{});
        v = b.relabelled(*v, type);
      }
    return form.plain(std::move(operands));
  }
  if (!in && !out) return form.plain(std::move(operands));
  const std::size_t first_node = b.graph().nodes.size();
  Vals results = form.by_rule(std::move(operands));
  if (auto overflow = possible_overflow(b.graph(), first_node))
    b.refuse("quantise.overflow", fmt::format("in the integer form of {}, {}", node.op, overflow->what));
  return results;
}

}  // namespace tosaic
