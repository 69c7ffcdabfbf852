// SPDX-License-Identifier: Apache-2.0
// NaN, infinities, zeros of both signs and denormals: every operator of floats computes with them what the interpreter
// does, alone and among neighbours that a driver's compiler would like to simplify.
#include <cmath>
#include <functional>

#include "formats/spirv/compute/float_controls.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

using Sizes = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

class SpecialFloats : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

constexpr double nan = NAN, infinity = INFINITY;

Numbers special_of(DType type) {
  Numbers list{nan, infinity, -infinity, 0.0, -0.0, 1.0,  -1.0,  2.0,    -2.0,  0.5,  -0.5,  1.5,   -2.5,
               3.0, 7.0,      -7.0,      0.9, 88.0, 90.0, -89.0, -104.0, 200.0, -200, 448.0, -448.0};
  switch (type) {
    case DType::f32: list.insert(list.end(), {3.4e38, -3.4e38, 1.2e-38, 1e-40, -1e-40, 1.4e-45, 2147483648.0}); break;
    case DType::bf16: list.insert(list.end(), {3.3e38, -3.3e38, 1.2e-38, 2147483648.0}); break;
    case DType::f16: list.insert(list.end(), {65504.0, -65504.0, 6.2e-5, 6e-8, -6e-8}); break;
    default: list.insert(list.end(), {0.015625, 0.001953125, -0.001953125}); break;
  }
  while (list.size() % 4) list.push_back(0.25);
  return list;
}

Tolerance tolerance_of(DType type) {
  switch (type) {
    case DType::f32: return {2e-6, 1e-7};
    case DType::f16: return {1e-3, 1e-7};
    case DType::bf16: return {8e-3, 1e-38};
    case DType::f8e4m3: return {0.0625, 0};
    default: return {0.125, 0};
  }
}

ValueId given(Net& net, DType type, const Sizes& sizes, const Numbers& numbers) {
  const ValueId v = net.input(type, Shape(sizes), 0, 0);
  net.inputs.back().data = constant_bytes(type, std::span<const double>(numbers));
  return v;
}

// What the standard leaves to the device.
bool is_defined(std::string_view op, DType to, const Numbers& x) {
  if (op == "cast" && !is_float(to) && to != DType::boolean) return !std::isnan(x[0]);
  // A device may take the least numbers as zero, and zero has a positive exponent.
  constexpr float least = std::numeric_limits<float>::min();
  if (op == "pow") return std::isfinite(x[0]) && std::isfinite(x[1]) && x[0] >= 0 && (x[0] >= least || x[1] >= least);
  return true;
}

// Every pair of special numbers that the operator is defined for.
void expect_pairs(const tosa::Op& op, const tosa::TypeRow& row, bool ignore_nan) {
  const auto dtype = [&](std::string_view variable) {
    for (const auto& [name, type] : row.types)
      if (name == variable) return type;
    return dtype_named(variable).value_or(DType::f32);
  };
  const DType to = dtype(op.outputs[0].type);
  std::vector<std::size_t> floats;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (is_float(dtype(op.inputs[i].type)) && !(op.name == "negate" && i > 0)) floats.push_back(i);
  if (floats.empty() || to == DType::i64) return;  // shaders move 64-bit integers, and compute nothing with them
  const Numbers special = special_of(dtype(op.inputs[floats[0]].type));
  std::vector<Numbers> columns(floats.size());
  for (double a : special)
    for (double b : special) {
      Numbers x{a, b};
      x.resize(floats.size());
      if (!is_defined(op.name, to, x)) continue;
      for (std::size_t i = 0; i < x.size(); ++i) columns[i].push_back(x[i]);
    }
  const auto count = static_cast<std::int64_t>(columns[0].size());
  Net net(7);
  std::vector<ValueId> operands(op.inputs.size());
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const DType type = dtype(op.inputs[i].type);
    const auto place = static_cast<std::size_t>(std::ranges::find(floats, i) - floats.begin());
    if (place < floats.size())
      operands[i] = given(net, type, {count}, columns[place]);
    else
      operands[i] = type == DType::boolean ? net.input(type, {count}, 0, 1) : net.numbers(type, {0});
  }
  Attrs attrs;
  for (const tosa::AttrDef& attr : op.attrs)
    if (attr.kind == tosa::AttrKind::nan_mode)
      attrs.set(std::string(attr.name), std::string(ignore_nan ? "ignore" : "propagate"));
    else
      attrs.set(std::string(attr.name), attr.name == "min_val" ? -1.0 : 2.0);
  net.output(net.node(std::string(op.name), operands, attrs, to));
  Tolerance tolerance = is_float(to) ? tolerance_of(to) : Tolerance{};
  // The exponent multiplies what the logarithm is off by.
  if (op.name == "pow" && to == DType::f32) tolerance.relative = 1e-5;
  expect_on_device(net, tolerance,
                   std::string(op.name) + " " + std::string(name_of(dtype(op.inputs[floats[0]].type))) + " to " +
                       std::string(name_of(to)) + (ignore_nan ? " ignoring NaN" : ""));
}

TEST_F(SpecialFloats, InEveryElementwiseOperator) {
  for (const tosa::Op& op : tosa::all()) {
    if (!op.elementwise || op.name == "rescale") continue;  // that one is of integers
    const bool has_mode =
        std::ranges::any_of(op.attrs, [](const auto& a) { return a.kind == tosa::AttrKind::nan_mode; });
    for (const tosa::TypeRow& row : op.types)
      for (const bool ignore_nan : {false, true})
        if (!ignore_nan || has_mode) expect_pairs(op, row, ignore_nan);
  }
}

// Chains that are something else if numbers were real: x - x is 0, x * 0 is 0, !(a < b) is a >= b.
TEST_F(SpecialFloats, WhereACompilerWouldSimplify) {
  using Make = std::function<ValueId(Net&, ValueId, ValueId)>;
  const auto node = [](Net& net, const char* op, std::vector<ValueId> operands) {
    if (std::string_view(op) == "mul") operands.push_back(net.numbers(DType::i8, {0}));
    return net.node(op, std::move(operands));
  };
  const auto number = [](Net& net, double value) { return net.constant(DType::f32, {1, 1}, value, value); };
  const std::pair<const char*, Make> chains[] = {
      {"x - x",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "sub", {x, x});
       }},
      {"x + -x",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "add", {x, n.node("negate", {x, n.zero(DType::f32), n.zero(DType::f32)})});
       }},
      {"x * 0",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "mul", {x, number(n, 0)});
       }},
      {"x * (y - y)",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "mul", {x, node(n, "sub", {y, y})});
       }},
      {"(x + y) - x",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "sub", {node(n, "add", {x, y}), x});
       }},
      {"(x + 1e8) - 1e8",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "sub", {node(n, "add", {x, number(n, 1e8)}), number(n, 1e8)});
       }},
      {"x * y + x * -y",
       [&](Net& n, ValueId x, ValueId y) {
         const ValueId negative = n.node("negate", {y, n.zero(DType::f32), n.zero(DType::f32)});
         return node(n, "add", {node(n, "mul", {x, y}), node(n, "mul", {x, negative})});
       }},
      {"x * (1 / x)",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "mul", {x, node(n, "reciprocal", {x})});
       }},
      {"1 / (1 / x)", [&](Net& n, ValueId x, ValueId) { return node(n, "reciprocal", {node(n, "reciprocal", {x})}); }},
      {"x - floor(x)",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "sub", {x, node(n, "floor", {x})});
       }},
      {"log(exp(x))", [&](Net& n, ValueId x, ValueId) { return node(n, "log", {node(n, "exp", {x})}); }},
      {"exp(x) * exp(y)",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "mul", {node(n, "exp", {x}), node(n, "exp", {y})});
       }},
      {"x == x",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "equal", {x, x});
       }},
      {"x >= x",
       [&](Net& n, ValueId x, ValueId) {
         return node(n, "greater_equal", {x, x});
       }},
      {"not (x > y)",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "logical_not", {node(n, "greater", {x, y})});
       }},
      {"not (x >= y)",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "logical_not", {node(n, "greater_equal", {x, y})});
       }},
      {"x + y > x",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "greater", {node(n, "add", {x, y}), x});
       }},
      {"x - y > 0",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "greater", {node(n, "sub", {x, y}), number(n, 0)});
       }},
      {"x > y ? x : y",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "select", {node(n, "greater", {x, y}), x, y});
       }},
      {"x > y ? y : x",
       [&](Net& n, ValueId x, ValueId y) {
         return node(n, "select", {node(n, "greater", {x, y}), y, x});
       }},
      {"abs(x) >= -abs(y)",
       [&](Net& n, ValueId x, ValueId y) {
         const ValueId below = n.node("negate", {node(n, "abs", {y}), n.zero(DType::f32), n.zero(DType::f32)});
         return node(n, "greater_equal", {node(n, "abs", {x}), below});
       }},
  };
  const Numbers special = special_of(DType::f32);
  const auto count = static_cast<std::int64_t>(special.size());
  for (const auto& [name, make] : chains) {
    Net net(3);
    const ValueId x = given(net, DType::f32, {count, 1}, special), y = given(net, DType::f32, {1, count}, special);
    ValueId made = make(net, x, y);
    net.output(made);
    expect_on_device(net, tolerance_of(DType::f32), name);
  }
}

// Of each line one or two elements are special.
Numbers lines(std::int64_t count, std::int64_t size, bool by_columns) {
  const std::vector<Numbers> found{{},         {nan},           {infinity},      {-infinity}, {infinity, -infinity},
                                   {nan, nan}, {nan, infinity}, {1e-40, -1e-40}, {-0.0, 0.0}, {infinity, infinity}};
  Numbers all(static_cast<std::size_t>(count * size));
  for (std::int64_t line = 0; line < count; ++line)
    for (std::int64_t i = 0; i < size; ++i) {
      const Numbers& put = found[static_cast<std::size_t>(line) % found.size()];
      // At places that move from line to line, so that each of those that fold together gets some.
      const std::int64_t behind = (i + size - line * 7 % size) % size;
      const double plain = 0.25 * static_cast<double>((i * 5 + line) % 9 - 4);
      const bool all_nan = put.size() == 2 && std::isnan(put[1]);
      const double value = all_nan ? nan : behind < static_cast<std::int64_t>(put.size()) ? put[behind] : plain;
      all[static_cast<std::size_t>(by_columns ? i * count + line : line * size + i)] = value;
    }
  return all;
}

TEST_F(SpecialFloats, InReductions) {
  for (const char* op : {"reduce_sum", "reduce_product", "reduce_max", "reduce_min", "argmax"})
    for (const bool ignore_nan : {false, true})
      for (const std::int64_t size : {5, 8, 20, 64, 577})
        for (const bool by_columns : {false, true}) {
          const std::string name = op;
          const bool has_mode = name == "reduce_max" || name == "reduce_min" || name == "argmax";
          if (ignore_nan && !has_mode) continue;
          if (name == "reduce_product" && size > 20) continue;
          Net net(5);
          const std::int64_t count = 20;
          const ValueId x = given(net, DType::f32, by_columns ? Sizes{size, count} : Sizes{count, size},
                                  lines(count, size, by_columns));
          Attrs attrs{{"axis", std::int64_t{by_columns ? 0 : 1}}};
          if (has_mode) attrs.set("nan_mode", std::string(ignore_nan ? "ignore" : "propagate"));
          net.output(net.node(op, {x}, attrs));
          expect_on_device(net, {1e-5, 1e-5},
                           name + (ignore_nan ? " ignoring NaN, of " : ", of ") + std::to_string(size) +
                               (by_columns ? " down" : " along"));
        }
}

TEST_F(SpecialFloats, InPools) {
  for (const std::int64_t channels : {3, 20})
    for (const bool whole : {false, true})
      for (const char* mode : {"", "propagate", "ignore"}) {
        Net net(5);
        const ValueId x = given(net, DType::f32, {1, 6, 7, channels}, lines(channels, 42, true));
        Attrs attrs{{"kernel", whole ? Sizes{6, 7} : Sizes{2, 3}}, {"stride", Sizes{1, 1}}, {"pad", Sizes{0, 0, 0, 0}}};
        if (*mode)
          attrs.set("nan_mode", std::string(mode));
        else
          attrs.set("acc_type", DType::f32);
        std::vector<ValueId> operands{x};
        if (!*mode) operands.insert(operands.end(), {net.zero(DType::f32), net.zero(DType::f32)});
        net.output(net.node(*mode ? "max_pool2d" : "avg_pool2d", operands, attrs));
        expect_on_device(net, {1e-5, 1e-5}, std::string("pool ") + mode);
      }
}

// A special element reaches what it is multiplied into, and nothing else: not what a tile holds next to it.
TEST_F(SpecialFloats, InProducts) {
  struct Size {
    std::int64_t rows, depth, columns;
  };
  for (const Size& c : {Size{3, 5, 7}, Size{17, 33, 24}, Size{1, 64, 40}, Size{70, 130, 67}, Size{20, 16, 64}}) {
    for (const bool left : {true, false}) {
      Net net(2);
      const ValueId a = net.input(DType::f32, Shape{1, c.rows, c.depth}, -1, 1),
                    b = net.input(DType::f32, Shape{1, c.depth, c.columns}, -1, 1);
      const std::int64_t count = left ? c.rows : c.columns;
      net.inputs[left ? 0 : 1].data = constant_bytes(DType::f32, std::span<const double>(lines(count, c.depth, !left)));
      net.output(net.node("matmul", {a, b, net.zero(DType::f32), net.zero(DType::f32)}, {}, DType::f32));
      expect_on_device(net, {1e-5, 1e-5},
                       std::to_string(c.rows) + " x " + std::to_string(c.depth) + " x " + std::to_string(c.columns) +
                           (left ? " left" : " right"));
    }
    Net net(2);
    const ValueId x = given(net, DType::f32, {1, 1, c.rows, c.depth}, lines(c.rows, c.depth, false));
    net.output(net.conv2d(x, net.constant(DType::f32, Shape{c.columns, 1, 1, c.depth}, -1, 1)));
    expect_on_device(net, {1e-5, 1e-5}, "weights");
  }
}

TEST_F(SpecialFloats, InWindows) {
  for (const std::int64_t channels : {3, 8, 20}) {
    const auto convolved = [&](const char* op, const Shape& weight, std::int64_t outputs) {
      Net net(4);
      const ValueId x = given(net, DType::f32, {1, 9, 10, channels}, lines(channels, 90, true));
      Attrs attrs{{"stride", Sizes{1, 1}}, {"acc_type", DType::f32}, {"local_bound", false}};
      const bool transposed = std::string_view(op) == "transpose_conv2d";
      attrs.set(transposed ? "out_pad" : "pad", transposed ? Sizes{0, 0, 0, 0} : Sizes{1, 1, 1, 1});
      if (!transposed) attrs.set("dilation", Sizes{1, 1});
      net.output(net.node(op,
                          {x, net.constant(DType::f32, weight, -1, 1), net.constant(DType::f32, Shape{outputs}, -1, 1),
                           net.zero(DType::f32), net.zero(DType::f32)},
                          attrs));
      expect_on_device(net, {1e-5, 1e-5}, std::string(op) + " of " + std::to_string(channels));
    };
    convolved("conv2d", Shape{12, 3, 3, channels}, 12);
    convolved("depthwise_conv2d", Shape{3, 3, channels, 1}, channels);
    convolved("transpose_conv2d", Shape{12, 3, 3, channels}, 12);
  }
}

// Rows that are masked with -infinity, in parts and altogether.
TEST_F(SpecialFloats, InSoftmax) {
  for (const std::int64_t size : {8, 33, 577}) {
    Net net(6);
    Numbers mask(static_cast<std::size_t>(5 * size), 0);
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 2) mask[static_cast<std::size_t>(size + i)] = -infinity;
      mask[static_cast<std::size_t>(2 * size + i)] = -infinity;
    }
    mask[static_cast<std::size_t>(3 * size + 4)] = nan;
    mask[static_cast<std::size_t>(4 * size + 4)] = infinity;
    const ValueId x = net.input(DType::f32, Shape{5, size}, -3, 3), m = given(net, DType::f32, {5, size}, mask);
    const ValueId masked = net.node("add", {x, m});
    const ValueId most =
        net.node("reduce_max", {masked}, {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}});
    const ValueId e = net.node("exp", {net.node("sub", {masked, most})});
    const ValueId sum = net.node("reduce_sum", {e}, {{"axis", std::int64_t{1}}});
    net.output(net.node("mul", {e, net.node("reciprocal", {sum}), net.numbers(DType::i8, {0})}));
    expect_on_device(net, {2e-5, 2e-6}, "softmax of " + std::to_string(size));
  }
}

TEST_F(SpecialFloats, InResizing) {
  for (const char* mode : {"nearest", "bilinear"}) {
    Net net(6);
    const ValueId x = given(net, DType::f32, {1, 4, 5, 3}, lines(3, 20, true));
    net.output(net.node("resize", {x, net.shape({4, 2, 4, 2}), net.shape({-1, -1}), net.shape({1, 1})},
                        {{"mode", std::string(mode)}}));
    expect_on_device(net, {1e-5, 1e-5}, mode);
  }
}

// What is said when the device is known stands where the standard wants it; the rest is as before.
TEST(FloatControls, StandInTheModule) {
  Net net;
  net.output(net.node("exp", {net.input(DType::f32, {4}, -1, 1)}));
  constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};
  const vulkan_program::Program program = compiled(net.graph, base);
  const auto module = program.tiers.at(0).modules.at(0).as<spirv::Word>();
  const auto listed = [](std::span<const spirv::Word> words) {
    std::vector<std::vector<spirv::Word>> all;
    for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
      all.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at),
                       words.begin() + static_cast<std::ptrdiff_t>(at + (words[at] >> 16)));
    return all;
  };
  EXPECT_TRUE(std::ranges::equal(spirv::with_float_controls(module, {}), module));
  const auto before = listed(module);
  auto made = listed(spirv::with_float_controls(module, {true, true}));
  ASSERT_EQ(made.size(), before.size() + 5);
  // In the order of the sections: capabilities, extensions, the entry point, its modes.
  std::vector<spirv::Word> order;
  for (const auto& i : made)
    for (const spirv::Word section : {17u, 10u, 15u, 16u})
      if ((i[0] & 0xffff) == section && (order.empty() || order.back() != section)) order.push_back(section);
  EXPECT_EQ(order, (std::vector<spirv::Word>{17, 10, 15, 16}));
  std::erase_if(made, [&](const auto& i) { return std::ranges::find(before, i) == before.end(); });
  EXPECT_EQ(made, before);
}

}  // namespace
}  // namespace tosaic::test
