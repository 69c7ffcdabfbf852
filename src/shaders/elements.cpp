// SPDX-License-Identifier: Apache-2.0
#include "shaders/elements.h"

#include <algorithm>
#include <bit>

#include "ir/tosa_operators.h"
#include "ops/definitions/scaling.h"
#include "plan/views.h"
#include "shaders/functions.h"
#include "shaders/strides.h"

namespace tosaic::shaders {
namespace {

using Operands = std::vector<Value>;

struct Call {
  Kernel& s;
  const tosa::View& view;
  const Operands& in;
  const ElementIndex& element_index;
  Value a() const { return in[0]; }
  Value b() const { return in[1]; }
  DType from() const { return view.in(0).dtype; }
  DType to() const { return view.out().dtype; }
  bool ignores_nan() const { return view.text("nan_mode") == "ignore"; }
};

// An integer as the dtype keeps it: the low bits, sign extended.
Value narrowed(Value value, DType type) {
  const int unused = 32 - 8 * static_cast<int>(storage_size(type));
  if (unused <= 0) return value;
  const Value by = value.shader->integer(unused);
  return shift_right_signed(value << by, by);
}

std::int64_t number(const tosa::View& view, std::size_t operand) { return (*view.constant_integers(operand))[0]; }

// A zero point, unsigned where its tensor is.
std::int64_t zero_point(const tosa::View& view, std::size_t operand, DType type, bool is_unsigned) {
  const std::int64_t value = number(view, operand);
  return !is_unsigned ? value : type == DType::i8 ? value & 0xff : type == DType::i16 ? value & 0xffff : value;
}

// (value * multiplier + rounding) >> shift, of which the low word is the result.
Value scaled(Kernel& s, Value value, Value multiplier, Value shift, bool double_round) {
  const Value low = value.kind == Kind::wide ? value.low_word() : value;
  Value product = s.wide_product(low, multiplier, value.kind != Kind::wide);
  if (value.kind == Kind::wide) {
    const Value high = product.high_word() + value.high_word() * multiplier;
    product.high = high.id;
  }
  const Value before = shift - 1, zero = s.integer(0), one = s.integer(1);
  const Value bit = one << (before & 31), is_low = before < 32;
  Value sum = add_wide(product, {&s, s.select(is_low, bit, zero).id, Kind::wide, s.select(is_low, zero, bit).id});
  if (double_round) {
    const Value up = s.select(value < 0, s.wide(-(1ll << 30)), s.wide(1ll << 30));
    sum = s.select(shift > 31, add_wide(sum, up), sum);
  }
  return shift_right_wide(sum, shift).low_word();
}

std::vector<std::int32_t> narrow_list(const std::vector<std::int64_t>& list) { return {list.begin(), list.end()}; }

// What a 32-bit integer is scaled by, in the form that takes the fewest operations.
struct Scaling {
  enum class Form : std::uint8_t {
    general,    // (value * multiplier + 2^(shift - 1)) >> shift
    high_word,  // the same where the upper word of the product is all that counts, which is shifted by one more
    up,         // and where it is if the value is shifted up first, by so much that one more is left
    left,       // value << shift
    right,      // (value + 2^shift) >> (shift + 1)
  };
  Form form = Form::general;
  std::vector<std::int32_t> multipliers, shifts;  // one, or one for each channel
};

// How far the value can be shifted up: a difference of narrow ones, and a sum of products of those.
std::int64_t spare_bits(const plan::Uses& uses, const tosa::View& rescale) {
  constexpr std::uint64_t most_of_byte = 0xff, most_of_half = 0xffff;
  const auto left_of = [](std::uint64_t highest) { return 31 - static_cast<std::int64_t>(std::bit_width(highest)); };
  switch (rescale.in(0).dtype) {
    case DType::i8: return left_of(most_of_byte);
    case DType::i16: return left_of(most_of_half);
    case DType::i32: break;
    default: return 0;
  }
  const Graph& graph = uses.graph;
  const ValueId sum = plan::skip_views(graph, uses.producer, rescale.node().inputs[0]);
  const Node* product = plan::maker(graph, uses.producer, sum);
  if (!product || product->op != tosa::op::matmul || graph[product->inputs[0]].type.dtype != DType::i8) return 0;
  const auto depth = static_cast<std::uint64_t>(tosaic::most(graph[product->inputs[0]].type.shape[2]));
  return std::max<std::int64_t>(left_of(depth * most_of_byte * most_of_byte), 0);
}

Scaling scaling_of(const plan::Uses& uses, const tosa::View& view) {
  std::vector<std::int64_t> multipliers = *view.constant_integers(1), shifts = *view.constant_integers(2);
  using Form = Scaling::Form;
  if (view.text("rounding_mode") == "double_round" || view.in(0).dtype == DType::i48)
    return {Form::general, narrow_list(multipliers), narrow_list(shifts)};
  // 2^n times the multiplier with n more to shift is the same.
  for (std::size_t i = 0; i < shifts.size(); ++i)
    for (; shifts[i] < 62 && multipliers[i] < 1 << 30; ++shifts[i]) multipliers[i] *= 2;
  if (shifts.size() == 1 && multipliers[0] == 1 << 30) {
    const auto by = static_cast<std::int32_t>(shifts[0] - 30);
    if (by <= 0) return {Form::left, {}, {-by}};
    if (by > 1 || view.in(0).dtype != DType::i32) return {Form::right, {}, {std::min(by - 1, 31)}};
  }
  constexpr std::int64_t one_more = 33;
  const std::int64_t spare = spare_bits(uses, view);
  if (std::ranges::all_of(shifts, [&](std::int64_t s) { return s < one_more && s + spare >= one_more; })) {
    for (std::int64_t& shift : shifts) shift = one_more - shift;
    return {Form::up, narrow_list(multipliers), narrow_list(shifts)};
  }
  const bool high = std::ranges::all_of(shifts, [](std::int64_t shift) { return shift > 32; });
  if (high)
    for (std::int64_t& shift : shifts) shift -= 33;
  return {high ? Form::high_word : Form::general, narrow_list(multipliers), narrow_list(shifts)};
}

// By one more than `shift`, rounded half up.
Value shift_rounded(Value value, Value shift) {
  return shift_right_signed(shift_right_signed(value, shift) + 1, value.shader->integer(1));
}

Value rescale(const Call& c) {
  Kernel& s = c.s;
  const bool in_unsigned = c.view.flag("input_unsigned"), out_unsigned = c.view.flag("output_unsigned");
  Value value = c.a();
  if (in_unsigned) value = value & (c.from() == DType::i8 ? 0xff : 0xffff);
  const std::int64_t in_zp = zero_point(c.view, 3, c.from(), in_unsigned);
  if (c.from() == DType::i8 || in_unsigned) value = value - s.param(in_zp);
  const Scaling scaling = scaling_of(s.work().uses, c.view);
  const auto number_of = [&](const std::vector<std::int32_t>& list) {
    return list.size() > 1 ? c.element_index.of_channel(s, list) : s.param(list[0]);
  };
  const auto result_by = [&] {
    if (scaling.form == Scaling::Form::left) return value << number_of(scaling.shifts);
    if (scaling.form == Scaling::Form::right) return shift_rounded(value, number_of(scaling.shifts));
    const bool both = scaling.shifts.size() > 1 && scaling.multipliers.size() > 1;
    const std::vector<Value> numbers = both ? c.element_index.of_channels(s, {scaling.shifts, scaling.multipliers})
                                            : std::vector{number_of(scaling.shifts), number_of(scaling.multipliers)};
    const Value shift = numbers[0], multiplier = numbers[1];
    if (scaling.form == Scaling::Form::high_word)
      return shift_rounded(s.wide_product(value, multiplier, true).high_word(), shift);
    if (scaling.form == Scaling::Form::up)
      return shift_right_signed(s.wide_product(value << shift, multiplier, true).high_word() + 1, s.integer(1));
    return scaled(s, value, multiplier, shift, c.view.text("rounding_mode") == "double_round");
  };
  const Value result = result_by();
  const IntegerRange range = range_of(c.to());
  if (c.to() == DType::i32) return result;                    // whose zero point is 0
  const bool has_zero = c.to() == DType::i8 || out_unsigned;  // that of others is 0
  const Value moved = has_zero ? result + s.param(zero_point(c.view, 4, c.to(), out_unsigned)) : result;
  return out_unsigned ? narrowed(clamped(moved, 0, 2 * range.highest + 1), c.to())
                      : clamped(moved, range.lowest, range.highest);
}

Value multiply(const Call& c) {
  if (c.a().kind == Kind::real) return c.a() * c.b();
  const std::int64_t shift = number(c.view, 2);
  if (shift == 0) return c.a() * c.b();
  // ((a * b >> (shift - 1)) + 1) >> 1
  const Value wide = shift_right_wide(c.s.wide_product(c.a(), c.b(), true), c.s.param(shift - 1));
  return shift_right_wide(add_wide(wide, c.s.wide(1)), c.s.integer(1)).low_word();
}

Value negate(const Call& c) {
  if (c.a().kind == Kind::real) return c.s.real(0) - c.a();
  if (c.to() == DType::i32) return -c.a();
  const IntegerRange range = range_of(c.to());
  return clamped(c.s.param(number(c.view, 1) + number(c.view, 2)) - c.a(), range.lowest, range.highest);
}

Value absolute(const Call& c) {
  if (c.a().kind == Kind::real) return c.s.real_of(c.s.bits_of(c.a()) & 0x7fffffff);
  return largest(c.a(), -c.a());
}

Value clamp(const Call& c) {
  const auto bound = [&](const char* name) {
    const Attr& attr = *c.view.node().attrs.find(name);
    if (const auto* i = std::get_if<std::int64_t>(&attr))
      return c.a().kind == Kind::real ? c.s.real_param(static_cast<double>(*i)) : c.s.param(*i);
    // Bounds that the dtype cannot hold are held to it.
    return rounded(c.s.real_param(std::get<double>(attr)), c.to());
  };
  const bool ignore = c.a().kind == Kind::real && c.ignores_nan();
  return smaller(larger(c.a(), bound("min_val"), ignore), bound("max_val"), ignore);
}

// Of an integer that f32 does not hold the first 24 bits, the last one set where others are lost: what is rounded to a
// still narrower float then is rounded as if it had been whole.
Value rounded_to_odd(Value x) {
  Shader& s = *x.shader;
  const Value kept = x & ~0x1ffll;
  const Value odd = s.select((x & 0x1ff) == 0, kept, kept | s.integer(0x100));
  return s.select((x > -(1 << 24)) & (x < 1 << 24), x, odd);
}

Value cast(const Call& c) {
  Kernel& s = c.s;
  const Value x = c.a();
  const bool from_float = is_float(c.from()), to_float = is_float(c.to());
  if (x.kind == Kind::boolean)
    return to_float ? s.select(x, s.real(1), s.real(0)) : s.select(x, s.integer(1), s.integer(0));
  if (c.to() == DType::boolean) return from_float ? !(x == s.real(0)) : x != s.integer(0);
  if (!from_float && to_float) return s.signed_to_real(c.to() == DType::bf16 ? rounded_to_odd(x) : x);
  if (!from_float) return narrowed(x, c.to());
  if (to_float) return x;
  const IntegerRange range = range_of(c.to());
  const Value even = s.call(Function::round_even, {x});
  // The highest i32 is no float: what reaches 2^31 is held apart.
  const auto low = static_cast<double>(range.lowest), beyond = static_cast<double>(range.highest) + 1;
  const Value inside = (even >= s.real(low)) & (even < s.real(beyond));
  const Value edge = s.select(even < s.real(0), s.integer(range.lowest), s.integer(range.highest));
  return s.select(inside, s.real_to_signed(s.select(inside, even, s.real(0))), edge);
}

Value table(const Call& c) {
  Kernel& s = c.s;
  const auto [entries, first] = s.table(c.view.node().inputs[1]);
  if (c.from() == DType::i8) return s.load(entries, c.a() + (first + 128));
  const Value index = shift_right_signed(c.a(), s.integer(7)) + (first + 256);
  const Value base = s.load(entries, index), next = s.load(entries, index + 1);
  return (base << s.integer(7)) + (next - base) * (c.a() & 0x7f);
}

Value right_shift(const Call& c) {
  const Value shifted = shift_right_signed(c.a(), c.b());
  if (!c.view.flag("round")) return shifted;
  const Value last = shift_right_signed(c.a(), largest(c.b() - 1, c.s.integer(0))) & 1;
  return shifted + c.s.select(c.b() > 0, last, c.s.integer(0));
}

Value logical_right(const Call& c) {
  const int bits = 8 * static_cast<int>(storage_size(c.to()));
  const Value low = bits == 32 ? c.a() : c.a() & ((1ll << bits) - 1);
  return narrowed(shift_right_unsigned(low, c.b()), c.to());
}

Value leading_zeros(const Call& c) {
  // The highest bit of 0 is -1.
  return c.s.integer(31) - c.s.call(Function::highest_bit, {c.a()});
}

Value divide(const Call& c) {
  const Value zero = c.b() == 0;  // undefined in SPIR-V, unpredictable in TOSA
  return c.s.binary(Opcode::s_div, c.a(), c.s.select(zero, c.s.integer(1), c.b()), Kind::integer);
}

Value select_one(const Call& c) { return c.s.select(c.in[0], c.in[1], c.in[2]); }

struct Row {
  std::string_view name;
  Value (*make)(const Call&);
};

// By name.
constexpr Row rows[] = {
    {"abs", absolute},
    {"add", [](const Call& c) { return c.a() + c.b(); }},
    {"arithmetic_right_shift", right_shift},
    {"bitwise_and", [](const Call& c) { return c.a() & c.b(); }},
    {"bitwise_not", [](const Call& c) { return ~c.a(); }},
    {"bitwise_or", [](const Call& c) { return c.a() | c.b(); }},
    {"bitwise_xor", [](const Call& c) { return c.a() ^ c.b(); }},
    {"cast", cast},
    {"ceil", [](const Call& c) { return c.s.call(Function::ceil, {c.a()}); }},
    {"clamp", clamp},
    {"clz", leading_zeros},
    {"cos", [](const Call& c) { return cosine(c.a()); }},
    {"equal", [](const Call& c) { return c.a() == c.b(); }},
    {"erf", [](const Call& c) { return error_function(c.a()); }},
    {"exp", [](const Call& c) { return exponential(c.a()); }},
    {"floor", [](const Call& c) { return c.s.call(Function::floor, {c.a()}); }},
    {"greater", [](const Call& c) { return c.a() > c.b(); }},
    {"greater_equal", [](const Call& c) { return c.a() >= c.b(); }},
    {"intdiv", divide},
    {"log", [](const Call& c) { return logarithm(c.a()); }},
    {"logical_and", [](const Call& c) { return c.a() & c.b(); }},
    {"logical_left_shift", [](const Call& c) { return narrowed(c.a() << c.b(), c.to()); }},
    {"logical_not", [](const Call& c) { return !c.a(); }},
    {"logical_or", [](const Call& c) { return c.a() | c.b(); }},
    {"logical_right_shift", logical_right},
    {"logical_xor", [](const Call& c) { return c.a() ^ c.b(); }},
    {"maximum", [](const Call& c) { return larger(c.a(), c.b(), c.ignores_nan()); }},
    {"minimum", [](const Call& c) { return smaller(c.a(), c.b(), c.ignores_nan()); }},
    {"mul", multiply},
    {"negate", negate},
    {"pow", [](const Call& c) { return power(c.a(), c.b()); }},
    {"reciprocal",
     [](const Call& c) { return c.s.rounds_reciprocals ? rounded_reciprocal(c.a()) : reciprocal(c.a()); }},
    {"rescale", rescale},
    {"rsqrt", [](const Call& c) { return reciprocal_root(c.a()); }},
    {"select", select_one},
    {"sigmoid", [](const Call& c) { return sigmoid(c.a()); }},
    {"sin", [](const Call& c) { return sine(c.a()); }},
    {"sub", [](const Call& c) { return c.a() - c.b(); }},
    {"table", table},
    {"tanh", [](const Call& c) { return hyperbolic_tangent(c.a()); }},
};

const Row* row_of(const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  const auto found = std::ranges::find(rows, op ? op->name : "", &Row::name);
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

bool has_element_shader(const tosa::View& view) { return row_of(view.node()) != nullptr; }

Value element(Kernel& kernel, const tosa::View& view, const std::vector<Value>& operands,
              const ElementIndex& element_index) {
  const Value result = row_of(view.node())->make({kernel, view, operands, element_index});
  return kernel.work().in_half_precision ? result : rounded(result, view.out().dtype);
}

Value ElementIndex::of_channel(Kernel& kernel, const std::vector<std::int32_t>& list) const {
  return of_channels(kernel, {list})[0];
}
std::vector<Value> ElementIndex::of_channels(Kernel& kernel,
                                             const std::vector<std::vector<std::int32_t>>& lists) const {
  const bool whole = quads_ && is_multiple(last_, 4);
  std::vector<std::int32_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  const Buffer numbers = kernel.constant(DType::i32, Bytes::of(std::move(all)), whole);
  const Value last = kernel.param(last_), channel = (lane && !whole ? index_ + lane : index_) % last;
  std::vector<Value> found;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Value at = i == 0 ? channel : channel + last * static_cast<std::int64_t>(i);
    if (!whole) {
      found.push_back(kernel.load(numbers, at));
      continue;
    }
    const auto [quad, added] = loaded_.try_emplace({numbers.variable, i});
    if (added) quad->second = kernel.load_quad(numbers, shift_right_unsigned(at, kernel.integer(2)));
    found.push_back(quad->second[static_cast<std::size_t>(lane)]);
  }
  return found;
}

namespace {

// Of each input along the result's dims; 0 where it is repeated.
std::vector<std::vector<Dim>> strides_of(const Graph& graph, const plan::Expression& e) {
  std::vector<std::vector<Dim>> strides;
  for (const auto& input : e.inputs) {
    if (!input.strides.empty()) {
      strides.emplace_back(input.strides.begin(), input.strides.end());
      continue;
    }
    const Shape& shape = graph[input.value].type.shape;
    auto& of_input = strides.emplace_back(row_major_strides(shape));
    for (int d = 0; d < shape.rank(); ++d)
      if (shape[d] == Dim(1) && e.shape[d] != Dim(1)) of_input[static_cast<std::size_t>(d)] = 0;
  }
  return strides;
}

// The elements of one input, one or four.
class Inputs {
 public:
  Inputs(Kernel& kernel, const plan::Expression& e, Value index, std::size_t lanes)
      : kernel_(kernel),
        e_(e),
        positions_(kernel, Walk(e.shape.dims(), strides_of(kernel.graph(), e)), index),
        lanes_(lanes) {}

  Quad load(std::size_t i) {
    const ValueId v = e_.inputs[i].value;
    Value at = positions_.of(i);
    if (const std::int64_t offset = e_.inputs[i].offset; offset != 0) at = at + kernel_.param(offset);
    if (lanes_ == 1) return {kernel_.load(kernel_.input(v), at)};
    if (is_read_by_quads(i))
      return kernel_.load_quad(kernel_.input(v, true), shift_right_unsigned(at, kernel_.integer(2)));
    const Buffer buffer = kernel_.input(v);
    const Dim step = positions_.walk().step(i);
    Quad quad{kernel_.load(buffer, at)};
    if (step == Dim(0)) return {quad[0], quad[0], quad[0], quad[0]};
    const Value apart = kernel_.param(step);
    for (int lane = 1; lane < 4; ++lane) quad[static_cast<std::size_t>(lane)] = kernel_.load(buffer, at + apart * lane);
    return quad;
  }

 private:
  bool is_read_by_quads(std::size_t i) const {
    const DType type = kernel_.type(e_.inputs[i].value).dtype;
    const bool has = shaders::has_quads(type) || (shares_memory(kernel_.work().tier) && storage_size(type) == 2);
    return has && e_.inputs[i].offset % 4 == 0 && positions_.walk().is_quad(i);
  }

  Kernel& kernel_;
  const plan::Expression& e_;
  Positions positions_;
  const std::size_t lanes_;
};

// Elements of inputs that are at hand already, by their number.
using KnownInputs = std::map<std::size_t, Quad>;
KnownInputs known_inputs(const plan::Expression& e, const std::map<ValueId, Quad>& known) {
  KnownInputs inputs;
  for (std::size_t i = 0; i < e.inputs.size(); ++i)
    if (const auto found = known.find(e.inputs[i].value); found != known.end()) inputs[i] = found->second;
  return inputs;
}

// The result, and after it those of `others`.
std::vector<Quad> evaluate_lanes(Kernel& kernel, const plan::Expression& e, Value index, std::size_t lanes,
                                 const KnownInputs& known, std::span<const ValueId> others = {}) {
  const Graph& graph = kernel.graph();
  std::vector<Quad> inputs, results;
  Inputs loads(kernel, e, index, lanes);
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const ValueId v = e.inputs[i].value;
    if (const auto found = known.find(i); found != known.end()) {
      inputs.push_back(found->second);
    } else if (graph[v].is_constant() && graph[v].type.shape.elements() == 1) {
      const Value one = kernel.scalar(v);
      inputs.push_back({one, one, one, one});
    } else {
      inputs.push_back(loads.load(i));
    }
  }
  const Dim last = e.shape.rank() == 0 ? Dim(1) : e.shape[e.shape.rank() - 1];
  std::vector<Quad> stored(1 + others.size());
  for (const auto& call : e.calls) {
    const ElementIndex element_index(index, last, lanes > 1);
    const ValueId value = graph.nodes[call.node].outputs[0];
    const auto other = std::ranges::find(others, value);
    Quad& made = results.emplace_back();
    kernel.repeat(static_cast<int>(lanes), [&](int lane) {
      std::vector<Value> operands;
      for (int o : call.operands)
        operands.push_back((o >= 0 ? inputs[static_cast<std::size_t>(o)]
                                   : results[static_cast<std::size_t>(~o)])[static_cast<std::size_t>(lane)]);
      element_index.lane = lane;
      Value& result = made[static_cast<std::size_t>(lane)];
      result = element(kernel, tosa::View(graph, graph.nodes[call.node]), operands, element_index);
      // Who reads it here has what others read from memory.
      if (other != others.end() && kernel.work().in_half_precision && result.kind == Kind::real)
        result = kernel.as_stored(result, graph[value].type.dtype);
    });
    if (other != others.end()) stored[static_cast<std::size_t>(other - others.begin()) + 1] = made;
  }
  stored[0] = results.back();
  return stored;
}

}  // namespace

Value evaluate(Kernel& kernel, const plan::Expression& e, Value index, const Known& known) {
  std::map<ValueId, Quad> quads;
  for (const auto& [v, element] : known) quads[v] = {element};
  return evaluate_lanes(kernel, e, index, 1, known_inputs(e, quads))[0][0];
}

std::vector<Value> evaluate(Kernel& kernel, const plan::Expression& e, Value index, std::span<const ValueId> others,
                            const std::map<std::size_t, Value>& known) {
  KnownInputs quads;
  for (const auto& [i, element] : known) quads[i] = {element};
  std::vector<Value> results;
  for (const Quad& one : evaluate_lanes(kernel, e, index, 1, quads, others)) results.push_back(one[0]);
  return results;
}

Quad evaluate_quad(Kernel& kernel, const plan::Expression& e, Value index, const std::map<ValueId, Quad>& known) {
  return evaluate_lanes(kernel, e, index, 4, known_inputs(e, known))[0];
}

std::vector<Quad> evaluate_quads(Kernel& kernel, const plan::Expression& e, Value index,
                                 std::span<const ValueId> others) {
  return evaluate_lanes(kernel, e, index, 4, {}, others);
}

bool depends_on_places(const Graph& graph, const plan::Expression& e) {
  const auto reads_one = [&](const plan::Expression::Input& input) {
    return graph[input.value].is_constant() && graph[input.value].type.shape.elements() == 1;
  };
  const auto has_channels = [&](const plan::Expression::Call& call) {
    return graph.nodes[call.node].attrs.get_or("per_channel", false);
  };
  // One that is no constant is what is treated.
  return e.inputs.size() > static_cast<std::size_t>(std::ranges::count_if(e.inputs, reads_one)) + 1 ||
         std::ranges::any_of(e.calls, has_channels);
}

bool walks_by_quads(const Graph& graph, const plan::Expression& e) {
  return Walk(e.shape.dims(), strides_of(graph, e)).has_quads();
}
bool has_quads(const Graph& graph, const plan::Expression& e) {
  return has_quads(graph[e.output].type.dtype) && walks_by_quads(graph, e);
}

}  // namespace tosaic::shaders
