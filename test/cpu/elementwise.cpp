// SPDX-License-Identifier: Apache-2.0
// Every elementwise operator of the table in every dtype, with every kind of broadcast, against its own row.
#include <fmt/format.h>

#include <array>

#include "cpu/net.h"

#include "ir/tosa_operators.h"

namespace tosaic::test {
namespace {

// Numbers that an operator is defined for.
std::pair<double, double> domain(std::string_view op, std::size_t operand, DType type) {
  if (type == DType::boolean) return {0, 1};
  if (op.ends_with("_shift") && operand == 1) return {0, storage_size(type) * 8.0 - 1};
  if (op == "intdiv" && operand == 1) return {1, 40};
  if (op == "pow") return operand == 0 ? std::pair{0.1, 4.0} : std::pair{-3.0, 3.0};
  if (op == "log" || op == "rsqrt") return {0.001, 90};
  if (op == "reciprocal") return {0.01, 50};
  if (op == "table" && type == DType::i16 && operand == 1) return {-16000, 16000};  // slopes fit 16 bits
  if (is_float(type)) return {-8, 8};
  if (type == DType::i32) return {-20000, 20000};
  return {static_cast<double>(range_of(type).lowest), static_cast<double>(range_of(type).highest)};
}

Tolerance tolerance(DType type) {
  switch (type) {
    case DType::f32: return {6e-7, 3e-7};
    case DType::f16: return {1e-3, 1e-4};
    case DType::bf16: return {8e-3, 1e-3};
    default: return {};
  }
}

bool narrow_enough(const tosa::TypeRow& row) {
  for (const auto& [name, type] : row.types)
    if (type == DType::f8e4m3 || type == DType::f8e5m2) return false;
  return true;
}

// The node of `op` in one type row, or no_value where the operator needs a test of its own.
ValueId build(Net& net, const tosa::Op& op, const tosa::TypeRow& row, const std::vector<Shape>& shapes,
              bool ignore_nan) {
  auto dtype = [&](std::string_view variable) {
    for (const auto& [name, type] : row.types)
      if (name == variable) return type;
    return dtype_named(variable).value_or(DType::f32);
  };
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const DType type = dtype(op.inputs[i].type);
    const auto [lowest, highest] = domain(op.name, i, type);
    if (op.name == "table" && i == 1)
      operands.push_back(net.constant(type, Shape{type == DType::i8 ? 256 : 513}, lowest, highest));
    else if (op.name == "mul" && i == 2)
      operands.push_back(net.numbers(DType::i8, {dtype("in") == DType::i32 ? net.integer(0, 20) : 0}));
    else if (op.name == "negate" && i > 0)
      operands.push_back(net.numbers(type, {type == DType::i8 ? net.integer(-128, 127) : 0}));
    else if (i == 1 && net.integer(0, 2) == 0)
      operands.push_back(net.constant(type, shapes[i], lowest, highest));
    else
      operands.push_back(net.input(type, shapes[i], lowest, highest));
  }
  Attrs attrs;
  for (const tosa::AttrDef& attr : op.attrs) {
    if (attr.kind == tosa::AttrKind::nan_mode)
      attrs.set(std::string(attr.name), std::string(ignore_nan ? "ignore" : "propagate"));
    else if (attr.kind == tosa::AttrKind::boolean)
      attrs.set(std::string(attr.name), ignore_nan);
    else if (is_float(dtype("in_out")))
      attrs.set(std::string(attr.name), attr.name == "min_val" ? -1.5 : 2.25);
    else
      attrs.set(std::string(attr.name), std::int64_t{attr.name == "min_val" ? -30 : 100});
  }
  return net.node(std::string(op.name), operands, attrs, dtype(op.outputs[0].type));
}

const std::vector<std::vector<Shape>>& shape_sets() {
  static const std::vector<std::vector<Shape>> sets = {
      {{3, 1, 7, 5}, {3, 1, 7, 5}, {3, 1, 7, 5}},  // equal
      {{2, 40, 33}, {1, 1, 33}, {2, 40, 33}},      // the last dim repeated
      {{1, 1, 1}, {4, 25, 31}, {4, 1, 31}},        // a scalar; a dim in the middle
      {{2, 60, 1}, {2, 1, 77}, {1, 60, 77}},       // both sides
      {{}, {}, {}},                                // rank 0
      {{5000}, {1}, {5000}},
      {{1, 3, 3000}, {1, 1, 3000}, {1, 3, 1}},  // a period longer than a block
  };
  return sets;
}

// An i32 would be rounded twice on its way to bf16 through f32: the one cast that is left to the operator's row.
std::string kernel_for(const Net& net) {
  const Node& node = net.graph.nodes[0];
  if (node.op == tosa::op::identity) return "view";
  const bool twice =
      net.graph[node.inputs[0]].type.dtype == DType::i32 && net.graph[node.outputs[0]].type.dtype == DType::bf16;
  if (tosa::needs_1_1(tosa::View(net.graph, node)))
    return "";  // what moves elements may have a kernel, others have none
  return twice ? "reference" : "chain";
}

TEST(Elementwise, EveryOperatorEveryTypeEveryBroadcast) {
  std::uint32_t seed = 0;
  for (const tosa::Op& op : tosa::all()) {
    if (!op.elementwise || op.name == "rescale") continue;
    for (const tosa::TypeRow& row : op.types) {
      if (!narrow_enough(row)) continue;
      for (const auto& shapes : shape_sets()) {
        // Operators with one operand walk over one shape only.
        std::vector<Shape> used = shapes;
        Net net(++seed);
        const ValueId out = build(net, op, row, used, seed % 2 == 0);
        net.output(out);
        expect_as_interpreted(
            net, tolerance(net.graph[out].type.dtype),
            fmt::format("{} {} ({})", op.name, name_of(net.graph[net.graph.nodes[0].inputs[0]].type.dtype),
                        to_string(net.graph[out].type)),
            kernel_for(net));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Elementwise, FloatsThatAreSpecial) {
  const float nan = NAN, infinity = INFINITY;
  const std::vector<float> special{nan,   infinity, -infinity, 0.0f,   -0.0f,   1e-40f, -1e-40f, 3e38f,   -3e38f,
                                   88.8f, -88.8f,   -104.5f,   200.0f, -200.0f, 0.9f,   1.0f,    50000.0f};
  for (const char* op :
       {"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "abs", "floor", "ceil", "negate", "rsqrt"}) {
    Net net;
    const ValueId x = net.input(DType::f32, {static_cast<std::int64_t>(special.size())}, 0, 0);
    net.inputs[0].data = Bytes::of(special);
    std::vector<ValueId> operands{x};
    if (std::string(op) == "negate") operands = {x, net.zero(DType::f32), net.zero(DType::f32)};
    net.output(net.node(op, operands));
    expect_as_interpreted(net, {2e-6, 1e-7}, op);
  }
  for (const char* op : {"maximum", "minimum", "greater", "greater_equal", "equal", "clamp"})
    for (const char* mode : {"propagate", "ignore"}) {
      Net net;
      const auto n = static_cast<std::int64_t>(special.size());
      const ValueId x = net.input(DType::f32, {n, 1}, 0, 0), y = net.input(DType::f32, {1, n}, 0, 0);
      net.inputs[0].data = net.inputs[1].data = Bytes::of(special);
      const std::string name = op;
      if (name == "clamp")
        net.output(net.node(op, {x}, {{"min_val", -1.0}, {"max_val", 2.0}, {"nan_mode", std::string(mode)}}));
      else if (name.ends_with("imum"))
        net.output(net.node(op, {x, y}, {{"nan_mode", std::string(mode)}}));
      else
        net.output(net.node(op, {x, y}));
      expect_as_interpreted(net, {}, name + " " + mode);
    }
}

TEST(Elementwise, RescaleOfEveryKind) {
  std::uint32_t seed = 100;
  struct Kind {
    DType from, to;
    double range;
    int lowest, highest;
  };
  for (const Kind& kind : {Kind{DType::i8, DType::i8, 128, 30, 33}, Kind{DType::i8, DType::i16, 128, 20, 32},
                           Kind{DType::i8, DType::i32, 128, 10, 31}, Kind{DType::i16, DType::i8, 32768, 34, 40},
                           Kind{DType::i16, DType::i16, 32768, 29, 32}, Kind{DType::i16, DType::i32, 32768, 20, 31},
                           Kind{DType::i32, DType::i8, 1e6, 30, 46}, Kind{DType::i32, DType::i16, 1e6, 30, 40},
                           Kind{DType::i32, DType::i32, 1e6, 24, 40}, Kind{DType::i48, DType::i8, 1e9, 35, 42},
                           Kind{DType::i48, DType::i16, 1e9, 25, 35}, Kind{DType::i48, DType::i32, 1e9, 16, 30},
                           Kind{DType::i48, DType::i16, 1.4e14, 44, 62}, Kind{DType::i48, DType::i32, 1.4e14, 33, 40}})
    for (bool per_channel : {false, true})
      for (const char* rounding : {"single_round", "double_round"}) {
        if (kind.from == DType::i48 && std::string(rounding) == "double_round") continue;
        for (std::int64_t channels : {1, 5, 16, 70, 1500}) {
          Net net(++seed);
          const ValueId x = net.input(kind.from, {3, 9, channels}, -kind.range, kind.range - 1);
          const std::int64_t in_zp = kind.from == DType::i8 ? net.integer(-128, 127) : 0;
          const std::int64_t out_zp = kind.to == DType::i8 ? net.integer(-128, 127) : 0;
          net.output(net.rescale(x, kind.to, kind.lowest, kind.highest, per_channel, in_zp, out_zp, rounding));
          expect_as_interpreted(net, {},
                                fmt::format("rescale {} to {} {} per channel {} channels {}", name_of(kind.from),
                                            name_of(kind.to), rounding, per_channel, channels),
                                "chain");
          if (::testing::Test::HasFailure()) return;
        }
      }
}

TEST(Elementwise, RescaleOfUnsignedCodes) {
  for (bool input : {false, true})
    for (DType narrow : {DType::i8, DType::i16})
      for (DType other : {DType::i8, DType::i16}) {
        Net net;
        const IntegerRange range = range_of(narrow);
        const ValueId x =
            net.input(narrow, {1000}, static_cast<double>(range.lowest), static_cast<double>(range.highest));
        const std::int64_t in_zp = narrow == DType::i8 ? -56 : input ? -32768 : 0;
        const std::int64_t out_zp = other == DType::i8 ? -6 : !input ? -32768 : 0;
        net.output(net.node("rescale",
                            {x, net.numbers(DType::i32, {1500000000}), net.numbers(DType::i8, {30}),
                             net.numbers(narrow, {in_zp}), net.numbers(other, {out_zp})},
                            {{"scale32", true},
                             {"rounding_mode", std::string("single_round")},
                             {"per_channel", false},
                             {"input_unsigned", input},
                             {"output_unsigned", !input}}));
        expect_as_interpreted(net, {}, fmt::format("unsigned {} {} to {}", input, name_of(narrow), name_of(other)));
      }
}

ValueId rescale_by(Net& net, ValueId x, DType to, std::int64_t multiplier, std::int64_t shift,
                   std::int64_t input_zp = 0, std::int64_t output_zp = 0) {
  const DType from = net.graph[x].type.dtype;
  return net.node("rescale",
                  {x, net.numbers(DType::i32, {multiplier}), net.numbers(DType::i8, {shift}),
                   net.numbers(from, {input_zp}), net.numbers(to, {output_zp})},
                  {{"scale32", true},
                   {"rounding_mode", std::string("single_round")},
                   {"per_channel", false},
                   {"input_unsigned", false},
                   {"output_unsigned", false}});
}

// Each shift has its way to scale, up to the largest values that TOSA takes with it.
TEST(Elementwise, RescaleByEveryShift) {
  for (DType from : {DType::i8, DType::i16, DType::i32})
    for (DType to : {DType::i8, DType::i16, DType::i32}) {
      if (from == DType::i16 && to == DType::i8) continue;  // no way of its own
      for (std::int64_t shift = 2; shift <= 62; ++shift) {
        Net net(static_cast<std::uint32_t>(shift));
        const std::int64_t most = std::min((std::int64_t{1} << (shift - 1)) - 1, range_of(from).highest);
        const ValueId x = net.input(from, {3, 47}, static_cast<double>(-most), static_cast<double>(most));
        for (std::int64_t multiplier : {0x7fffffff, 0x40000000, static_cast<int>(net.integer(1, 0x7fffffff)), 0})
          net.output(rescale_by(net, x, to, multiplier, shift,
                                from == DType::i8 && shift > 9 ? net.integer(-128, 127) : 0,
                                to == DType::i8 ? net.integer(-128, 127) : 0));
        expect_as_interpreted(net, {}, fmt::format("rescale {} to {} by {}", name_of(from), name_of(to), shift),
                              "chain");
        if (::testing::Test::HasFailure()) return;
      }
    }
}

// What one i8 tensor decides is a table; of two tensors, sums and products of RESCALEs are computed in one go. Beyond
// what these take, and for few elements, it is the same arithmetic node by node.
TEST(Elementwise, ChainsOfQuantisedOperators) {
  for (const char* op : {"add", "sub", "mul"})
    for (std::int64_t shift : {11, 22, 23, 28, 30})
      for (std::int64_t elements : {1, 3, 30, 1031, 2500})
        for (bool same : {false, true}) {
          const bool product = std::string(op) == "mul";
          Net net(static_cast<std::uint32_t>(shift));
          const ValueId x = net.input(DType::i8, {elements}, -128, 127),
                        y = net.input(DType::i8, {elements}, -128, 127);
          auto both = [&](ValueId a, ValueId b) {
            const std::int64_t multiplier = product ? 1 << 30 : net.integer(1 << 30, 2147483647);
            a = rescale_by(net, a, DType::i32, multiplier, product ? 30 : shift, net.integer(-128, 127));
            b = rescale_by(net, b, DType::i32, product ? 1 << 30 : 2147483647, product ? 30 : shift, 5);
            const ValueId joined =
                net.node(op, product ? std::vector<ValueId>{a, b, net.zero(DType::i8)} : std::vector<ValueId>{a, b});
            return rescale_by(net, joined, DType::i8, net.integer(1 << 30, 2147483647),
                              product ? 37 : std::max<std::int64_t>(61 - shift, 32), 0, net.integer(-128, 127));
          };
          const ValueId once = both(x, same ? x : y);
          const ValueId clamped = net.node(
              "clamp", {once},
              {{"min_val", std::int64_t{-90}}, {"max_val", std::int64_t{90}}, {"nan_mode", std::string("propagate")}});
          net.output(both(net.node("table", {clamped, net.constant(DType::i8, {256}, -128, 127)}), x));
          expect_as_interpreted(net, {}, fmt::format("{} shift {} elements {} same {}", op, shift, elements, same),
                                "chain");
          if (::testing::Test::HasFailure()) return;
        }

  // Operands of sums, one or both of them scaled by a power of two.
  for (std::int64_t shift = 9; shift <= 16; ++shift)
    for (const auto& [first, second] : {std::array<bool, 2>{false, true}, {true, false}, {true, true}}) {
      Net net(static_cast<std::uint32_t>(shift));
      const auto operand = [&](bool power) {
        const ValueId x = net.input(DType::i8, {1031}, -128, 127);
        return rescale_by(net, x, DType::i32, power ? 1 << 30 : net.integer(1 << 30, 2147483647), shift + !power,
                          net.integer(-128, 127));
      };
      const ValueId a = operand(first), b = operand(second);
      const ValueId sum = net.node("add", {a, b});
      net.output(rescale_by(net, sum, DType::i8, net.integer(1 << 30, 2147483647), 60 - shift, 0, -7));
      expect_as_interpreted(net, {}, fmt::format("powers {} {} shift {}", first, second, shift), "chain");
    }

  // Not functions of one i8 element: with a scale, or a constant, for each channel.
  for (bool scales : {false, true}) {
    Net net;
    const ValueId x = net.input(DType::i8, {40, 64}, -128, 127);
    const ValueId scaled = net.rescale(x, DType::i32, 12, 14, scales, 3);
    const ValueId moved =
        net.node("add", {scaled, net.constant(DType::i32, {1, scales ? 1 : 64}, -10000000, 10000000)});
    net.output(net.rescale(moved, DType::i8, 48, 49, false, 0, 5));
    expect_as_interpreted(net, {}, scales ? "scale per channel" : "constant per channel", "chain");
  }
}

// Two branches that meet, a value used twice, an interior broadcast that must not be computed per element.
TEST(Elementwise, ChainsOfManyNodes) {
  Net net;
  const ValueId x = net.input(DType::i8, {1, 13, 17, 24}, -128, 127),
                y = net.input(DType::i8, {1, 13, 17, 24}, -128, 127);
  const ValueId a = net.rescale(x, DType::i32, 12, 14, false, 3), b = net.rescale(y, DType::i32, 12, 14, false, -7);
  const ValueId sum = net.node("add", {a, b});
  const ValueId narrowed = net.rescale(sum, DType::i8, 48, 49, false, 0, 5);
  const ValueId clamped = net.node(
      "clamp", {narrowed},
      {{"min_val", std::int64_t{-100}}, {"max_val", std::int64_t{90}}, {"nan_mode", std::string("propagate")}});
  net.output(net.node("table", {clamped, net.constant(DType::i8, {256}, -128, 127)}));
  expect_as_interpreted(net);

  Net floats;
  const ValueId f = floats.input(DType::f32, {1, 30, 50, 24}, -3, 3),
                scale = floats.constant(DType::f32, {1, 1, 1, 24}, 0.5, 2);
  const ValueId small = floats.node("exp", {floats.input(DType::f32, {1, 1, 50, 1}, -1, 1)});
  const ValueId s = floats.node("sigmoid", {f});
  const ValueId swish = floats.node("mul", {f, s, floats.zero(DType::i8)});
  const ValueId scaled = floats.node("mul", {swish, scale, floats.zero(DType::i8)});
  const ValueId moved = floats.node("add", {scaled, small});
  floats.output(floats.node("maximum", {moved, swish}, {{"nan_mode", std::string("propagate")}}));
  expect_as_interpreted(floats, {1e-6, 1e-6});
}

}  // namespace
}  // namespace tosaic::test
