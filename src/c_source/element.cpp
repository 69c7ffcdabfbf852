// SPDX-License-Identifier: Apache-2.0
// What elementwise operators say of one element. Integers are computed as the interpreter does, and wrap where it finds
// the result unpredictable.
#include <algorithm>

#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/row.h"

namespace tosaic::c_source {
namespace {

using Operands = std::vector<std::string>;

struct Asked {
  const tosa::View& view;
  const Operands& x;
  const std::string& channel;
  bool lanes;
  DType in() const { return view.in(0).dtype; }
  DType out() const { return view.out().dtype; }
  bool floats() const { return is_float(in()); }
  // A function on one integer, or on lanes of them.
  std::string on(std::string_view function) const {
    return fmt::format("tosaic_{}{}", lanes ? "lanes_" : "", function);
  }
  std::string_view wide() const { return is_wide(in()) ? "64" : ""; }
  bool ignores_nan() const { return tosa::ignores_nan(view); }
};

template <class... Args>
std::string say(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

// By the width of the operands: an operator of C for floats, a function that wraps for integers.
std::string arithmetic(const Asked& a, char sign, std::string_view function) {
  if (a.floats()) return say("{} {} {}", a.x[0], sign, a.x[1]);
  return say("{}{}({}, {})", a.on(function), is_wide(a.in()) ? "64" : "", a.x[0], a.x[1]);
}
std::string add(const Asked& a) { return arithmetic(a, '+', "add"); }
std::string sub(const Asked& a) { return arithmetic(a, '-', "sub"); }
std::string intdiv(const Asked& a) { return arithmetic(a, '/', "divide"); }

std::string mul(const Asked& a) {
  if (a.floats() || is_wide(a.out())) return arithmetic(a, '*', "mul");
  const std::int64_t shift = a.view.constant_integers(2)->front();
  return shift == 0 ? say("{}({}, {})", a.on("mul"), a.x[0], a.x[1])
                    : say("tosaic_mul_shift({}, {}, {})", a.x[0], a.x[1], shift);
}

std::string maximum(const Asked& a) {
  if (a.floats()) return say("tosaic_maxf({}, {}, {})", a.x[0], a.x[1], int{a.ignores_nan()});
  if (!is_wide(a.in())) return say("{}({}, {})", a.on("larger"), a.x[0], a.x[1]);
  return say("{0} >= {1} ? {0} : {1}", a.x[0], a.x[1]);
}
std::string minimum(const Asked& a) {
  if (a.floats()) return say("tosaic_minf({}, {}, {})", a.x[0], a.x[1], int{a.ignores_nan()});
  if (!is_wide(a.in())) return say("{}({}, {})", a.on("smaller"), a.x[0], a.x[1]);
  return say("{0} < {1} ? {0} : {1}", a.x[0], a.x[1]);
}
std::string clamp(const Asked& a) {
  const Attrs& attrs = a.view.node().attrs;
  if (a.floats())
    return say("tosaic_minf(tosaic_maxf({0}, {1}, {3}), {2}, {3})", a.x[0], c_number(attrs.get<double>("min_val")),
               c_number(attrs.get<double>("max_val")), int{a.ignores_nan()});
  return say("{}{}({}, {}, {})", a.on("clamp"), a.wide(), a.x[0], c_number(attrs.get<std::int64_t>("min_val")),
             c_number(attrs.get<std::int64_t>("max_val")));
}

std::string negate(const Asked& a) {
  if (a.floats()) return say("0 - {}", a.x[0]);
  if (is_wide(a.in())) return say("tosaic_sub64(0, {})", a.x[0]);
  if (a.in() == DType::i32) return say("tosaic_sub(0, {})", a.x[0]);
  const auto [lowest, highest] = range_of(a.in());
  const std::int64_t zeros = a.view.constant_integers(1)->front() + a.view.constant_integers(2)->front();
  return say("tosaic_clamp({} - {}, {}, {})", zeros, a.x[0], lowest, highest);
}
std::string absolute(const Asked& a) {
  if (a.floats()) return say("tosaic_absf({})", a.x[0]);
  if (is_wide(a.in())) return say("{0} < 0 ? tosaic_sub64(0, {0}) : {0}", a.x[0]);
  return say("{}({})", a.on("abs"), a.x[0]);
}

std::string select(const Asked& a) { return say("{} ? {} : {}", a.x[0], a.x[1], a.x[2]); }

std::string shift_right(const Asked& a) {
  return say("tosaic_shift_right{}({}, {}, {})", a.wide(), a.x[0], a.x[1], int{a.view.flag("round")});
}
std::string_view without_sign(DType type) {
  return type == DType::i8 ? "uint8_t" : type == DType::i16 ? "uint16_t" : "uint32_t";
}
std::string logical_right(const Asked& a) {
  if (is_wide(a.in())) return say("(int64_t)((uint64_t){} >> ({} & 63))", a.x[0], a.x[1]);
  return say("(int32_t)((uint32_t)({}){} >> ({} & 31))", without_sign(a.in()), a.x[0], a.x[1]);
}
std::string logical_left(const Asked& a) {
  if (is_wide(a.in())) return say("(int64_t)((uint64_t){} << ({} & 63))", a.x[0], a.x[1]);
  return say("(int32_t)((uint32_t){} << ({} & 31))", a.x[0], a.x[1]);
}
std::string clz(const Asked& a) { return say("tosaic_clz{}({})", a.wide(), a.x[0]); }

// Operators of C that say it: of two operands, and of one.
template <const char* sign>
std::string between(const Asked& a) {
  return say("{} {} {}", a.x[0], sign, a.x[1]);
}
template <const char* sign>
std::string before(const Asked& a) {
  return say("{}{}", sign, a.x[0]);
}
constexpr char bit_and[] = "&", bit_or[] = "|", bit_xor[] = "^", bit_not[] = "~", both[] = "&&", either[] = "||",
               differ[] = "!=", no[] = "!", greater[] = ">", at_least[] = ">=", same[] = "==";

// Functions of C's library.
template <const char* name>
std::string called(const Asked& a) {
  return say("{}({})", name, a.x[0]);
}
constexpr char ceilf_[] = "ceilf", floorf_[] = "floorf", expf_[] = "expf", logf_[] = "logf", sinf_[] = "sinf",
               cosf_[] = "cosf", tanhf_[] = "tanhf", erff_[] = "erff", sigmoid[] = "tosaic_sigmoid";
std::string power(const Asked& a) { return say("powf({}, {})", a.x[0], a.x[1]); }
std::string reciprocal(const Asked& a) { return say("1.0f / {}", a.x[0]); }
std::string rsqrt(const Asked& a) { return say("1.0f / sqrtf({})", a.x[0]); }

std::string cast(const Asked& a) {
  const DType to = a.out();
  if (to == DType::boolean) return say("{} != 0", a.x[0]);
  if (!is_float(a.in()) || is_float(to)) return a.x[0];  // C's own conversion
  if (is_wide(to)) return say("tosaic_to_integer64({})", a.x[0]);
  const auto [lowest, highest] = range_of(to);
  return say("tosaic_to_integer({}, {}, {})", a.x[0], c_number(lowest), c_number(highest));
}

std::string table(const Asked& a) {
  const std::string list = name_of_value(a.view.node().inputs[1]);
  return say("{}({}, {})", a.on(a.in() == DType::i8 ? "table8" : "table16"), list, a.x[0]);
}

std::string rescale(const Asked& a) {
  const bool in_unsigned = a.view.flag("input_unsigned"), out_unsigned = a.view.flag("output_unsigned");
  const auto zero = [&](std::size_t i, bool is_unsigned) {
    const std::int64_t z = a.view.constant_integers(i)->front();
    return !is_unsigned                       ? z
           : a.view.in(i).dtype == DType::i8  ? z & 0xff
           : a.view.in(i).dtype == DType::i16 ? z & 0xffff
                                              : z;
  };
  std::string value = a.x[0];
  if (in_unsigned && a.in() != DType::i32) value = say("({}){}", without_sign(a.in()), value);
  if (const std::int64_t z = zero(3, in_unsigned); z != 0)
    value = is_wide(a.in()) ? say("({} - {})", value, z) : say("{}({}, {})", a.on("plus"), value, -z);
  const auto number = [&](std::size_t i) {
    return a.view.flag("per_channel") ? say("{}[{}]", name_of_value(a.view.node().inputs[i]), a.channel)
                                      : c_number(a.view.constant_integers(i)->front());
  };
  const std::string_view function = !a.view.flag("scale32")                          ? "scale48"
                                    : a.view.text("rounding_mode") == "double_round" ? "scale_twice"
                                                                                     : "scale";
  std::string scaled = say("{}({}, {}, {})", a.on(function), value, number(1), number(2));
  if (const std::int64_t z = zero(4, out_unsigned); z != 0) scaled = say("{}({}, {})", a.on("plus"), scaled, z);
  if (a.out() == DType::i32) return scaled;
  const auto [lowest, highest] = range_of(a.out());
  return say("{}({}, {}, {})", a.on("clamp"), scaled, out_unsigned ? 0 : lowest,
             out_unsigned ? 2 * highest + 1 : highest);
}

struct Form {
  Operator op;
  std::string (*print)(const Asked&);
};
constexpr Form forms[] = {
    {tosa::op::abs, absolute},
    {tosa::op::add, add},
    {tosa::op::arithmetic_right_shift, shift_right},
    {tosa::op::bitwise_and, between<bit_and>},
    {tosa::op::bitwise_not, before<bit_not>},
    {tosa::op::bitwise_or, between<bit_or>},
    {tosa::op::bitwise_xor, between<bit_xor>},
    {tosa::op::cast, cast},
    {tosa::op::ceil, called<ceilf_>},
    {tosa::op::clamp, clamp},
    {tosa::op::clz, clz},
    {tosa::op::cos, called<cosf_>},
    {tosa::op::equal, between<same>},
    {tosa::op::erf, called<erff_>},
    {tosa::op::exp, called<expf_>},
    {tosa::op::floor, called<floorf_>},
    {tosa::op::greater, between<greater>},
    {tosa::op::greater_equal, between<at_least>},
    {tosa::op::intdiv, intdiv},
    {tosa::op::log, called<logf_>},
    {tosa::op::logical_and, between<both>},
    {tosa::op::logical_left_shift, logical_left},
    {tosa::op::logical_not, before<no>},
    {tosa::op::logical_or, between<either>},
    {tosa::op::logical_right_shift, logical_right},
    {tosa::op::logical_xor, between<differ>},
    {tosa::op::maximum, maximum},
    {tosa::op::minimum, minimum},
    {tosa::op::mul, mul},
    {tosa::op::negate, negate},
    {tosa::op::pow, power},
    {tosa::op::reciprocal, reciprocal},
    {tosa::op::rescale, rescale},
    {tosa::op::rsqrt, rsqrt},
    {tosa::op::select, select},
    {tosa::op::sigmoid, called<sigmoid>},
    {tosa::op::sin, called<sinf_>},
    {tosa::op::sub, sub},
    {tosa::op::table, table},
    {tosa::op::tanh, called<tanhf_>},
};

const Form* form_of(Operator op) {
  const auto found = std::ranges::find(forms, op, &Form::op);
  return found == std::end(forms) ? nullptr : found;
}

}  // namespace

std::vector<ValueId> lists_of(const tosa::View& view) {
  const Node& node = view.node();
  if (node.op == tosa::op::table) return {node.inputs[1]};
  if (node.op == tosa::op::rescale && view.flag("per_channel")) return {node.inputs[1], node.inputs[2]};
  return {};
}

bool has_element(const tosa::View& view) {
  const Node& node = view.node();
  const tosa::Op* op = tosa::find(node.op);
  if (!op || !op->elementwise || !form_of(node.op) || node.outputs.size() != 1) return false;
  if (c_type(view.out().dtype).empty() || !view.out().shape.is_static()) return false;
  const std::size_t walked = plan::walked_operands(*op);
  for (std::size_t i = 0; i < view.inputs(); ++i) {
    if (c_type(view.in(i).dtype).empty()) return false;
    if (i >= walked && !view.graph()[node.inputs[i]].is_constant()) return false;
  }
  return true;
}

bool has_lanes(const tosa::View& view) {
  const Node& node = view.node();
  if (!has_element(view) || lanes_type(view.out().dtype).empty()) return false;
  for (std::size_t i = 0; i < plan::walked_operands(*tosa::find(node.op)); ++i)
    if (lanes_type(view.in(i).dtype).empty()) return false;
  if (node.op == tosa::op::rescale)
    return view.flag("scale32") && !view.flag("per_channel") && !view.flag("input_unsigned") &&
           !view.flag("output_unsigned");
  if (node.op == tosa::op::mul) return view.constant_integers(2)->front() == 0;
  if (node.op == tosa::op::cast) return storage_size(view.out().dtype) >= storage_size(view.in(0).dtype);
  return node.op == tosa::op::add || node.op == tosa::op::sub || node.op == tosa::op::maximum ||
         node.op == tosa::op::minimum || node.op == tosa::op::clamp || node.op == tosa::op::abs ||
         node.op == tosa::op::table;
}

std::optional<std::string> element(const tosa::View& view, const Operands& operands, const std::string& channel,
                                   bool lanes) {
  if (!has_element(view) || (lanes && !has_lanes(view))) return std::nullopt;
  const std::string made = form_of(view.node().op)->print({view, operands, channel, lanes});
  return lanes ? made : fmt::format("({})({})", c_type(view.out().dtype), made);
}

}  // namespace tosaic::c_source
