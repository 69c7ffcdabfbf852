// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisations and quantisation of rows by their kernels, against their definitions in TOSA: on every
// instruction set, for rows of every length around those of vectors, and for rows with numbers that are none.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cpu/net.h"
#include "ops/definitions/extension.h"
#include "plan/raise_definitions.h"

namespace tosaic::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr Tolerance near{2e-6, 2e-6};

ValueId add(Net& net, Operator op, std::vector<ValueId> operands, Attrs attrs) {
  const TensorType type = net.graph[operands[0]].type;
  const ValueId v = net.graph.add_value("v" + std::to_string(net.graph.values.size()), type);
  net.graph.nodes.push_back({op, std::move(operands), std::move(attrs), {v}, nullptr, {}});
  const auto broken = extension::verify_node(tosa::View(net.graph, net.graph.nodes.back()));
  EXPECT_FALSE(broken) << broken->label << ": " << broken->message;
  return v;
}

ValueId softmax(Net& net, ValueId x, bool safe) {
  const std::int64_t last = net.graph[x].type.rank() - 1;
  return add(net, extension::op::softmax, {x}, {{extension::softmax::axis, last}, {extension::softmax::safe, safe}});
}

ValueId norm(Net& net, Operator op, ValueId x, bool weighted, bool biased) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(net.graph[x].type.rank()), 1);
  std::vector<ValueId> operands{x, net.constant(DType::f32, Shape(sizes), 1e-5, 1e-5)};
  sizes.back() = net.graph[x].type.shape.size(net.graph[x].type.rank() - 1);
  if (weighted) operands.push_back(net.input(DType::f32, Shape(sizes), -1, 1));
  if (biased) operands.push_back(net.constant(DType::f32, Shape(sizes), -1, 1));
  return add(net, op, operands, {{extension::norm::weighted, weighted}, {extension::norm::biased, biased}});
}

// Every row of `rows` once among others.
void set_rows(Net& net, const std::vector<std::vector<float>>& rows) {
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  net.inputs[0].data = Bytes::of(std::move(all));
}

TEST(Rows, Softmax) {
  for (std::int64_t n = 1; n < 140; n += n < 70 ? 1 : 23)
    for (const bool safe : {false, true}) {
      Net net(static_cast<std::uint32_t>(n));
      net.output(softmax(net, net.input(DType::f32, {2, 3, n}, -20, 20), safe));
      expect_as_interpreted(net, near, fmt::format("rows of {}, safe {}", n, safe), "softmax");
      if (::testing::Test::HasFailure()) return;
    }
}

ValueId masked_softmax(Net& net, ValueId x, ValueId mask, bool safe, std::int64_t axis) {
  return add(net, extension::op::softmax, {x, mask},
             {{extension::softmax::axis, axis}, {extension::softmax::safe, safe}});
}
// A mask whose row `hidden` shows nothing.
ValueId mask_of(Net& net, const Shape& shape, std::int64_t hidden) {
  std::vector<std::uint8_t> shown(static_cast<std::size_t>(shape.elements()));
  for (std::uint8_t& one : shown) one = net.integer(0, 2) > 0;
  const std::int64_t length = shape.size(shape.rank() - 1);
  for (std::int64_t i = 0; hidden >= 0 && i < length; ++i) shown[static_cast<std::size_t>(hidden * length + i)] = 0;
  const ValueId v = net.input(DType::boolean, shape, 0, 1);
  net.inputs.back().data = Bytes::of(std::move(shown));
  return v;
}

TEST(Rows, MaskedSoftmax) {
  for (std::int64_t n = 1; n < 140; n += n < 70 ? 1 : 23)
    for (const bool safe : {false, true}) {
      Net net(static_cast<std::uint32_t>(n));
      const ValueId x = net.input(DType::f32, {2, 3, n}, -20, 20);
      net.output(masked_softmax(net, x, mask_of(net, {2, 3, n}, 1), safe, 2));
      expect_as_interpreted(net, near, fmt::format("rows of {}, safe {}", n, safe), "softmax");
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Rows, MasksBroadcast) {
  for (const Shape& mask : {Shape{1, 1, 1, 9}, Shape{2, 1, 1, 9}, Shape{1, 3, 1, 9}, Shape{1, 1, 5, 9},
                            Shape{2, 1, 5, 9}, Shape{1, 3, 5, 9}, Shape{2, 3, 1, 9}, Shape{2, 3, 5, 9}}) {
    Net net;
    net.output(masked_softmax(net, net.input(DType::f32, {2, 3, 5, 9}, -2, 2), mask_of(net, mask, -1), true, 3));
    expect_as_interpreted(net, near, to_string(mask), "softmax");
  }
  for (const std::int64_t rows : {1, 40}) {  // several tasks
    Net net;
    net.output(masked_softmax(net, net.input(DType::f32, {3, 40, 700, 1}, -2, 2), mask_of(net, {1, rows, 700, 1}, -1),
                              false, 2));
    expect_as_interpreted(net, near, fmt::format("{} rows of a mask", rows), "softmax");
  }
}

TEST(Rows, MasksThatNoKernelTakes) {
  for (const Shape& mask : {Shape{1, 1}, Shape{5, 1}}) {
    Net net;
    net.output(masked_softmax(net, net.input(DType::f32, {5, 9}, -2, 2), mask_of(net, mask, -1), true, 1));
    expect_as_interpreted(net, near, to_string(mask));
  }
}

// Shown and hidden, in rows that are hidden as a whole, too.
TEST(Rows, MaskedSoftmaxOfWhatIsNoNumber) {
  for (const std::size_t n : {3u, 8u, 37u})
    for (const bool safe : {false, true}) {
      std::vector<std::vector<float>> rows;
      std::vector<std::uint8_t> shown;
      for (const float odd :
           {nan, infinity, -infinity, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()})
        for (const std::size_t hidden : {std::size_t{0}, n / 2, n, n + 1}) {  // one, none, all
          for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
            rows.emplace_back(n, 0.5f)[at] = odd;
            rows.emplace_back(n, odd);
            for (std::size_t i = 0; i < 2 * n; ++i) shown.push_back(hidden <= n && i % n != hidden);
          }
        }
      const auto count = static_cast<std::int64_t>(rows.size()), length = static_cast<std::int64_t>(n);
      Net net;
      const ValueId x = net.input(DType::f32, {count, length}, 0, 0);
      net.output(masked_softmax(net, x, net.input(DType::boolean, {count, length}, 0, 1), safe, 1));
      set_rows(net, rows);
      net.inputs[1].data = Bytes::of(std::move(shown));
      expect_as_interpreted(net, near, fmt::format("rows of {}, safe {}", n, safe), "softmax");
    }
}

TEST(Rows, SoftmaxAlongAnAxisBeforeOnes) {
  Net net;
  net.output(add(net, extension::op::softmax, {net.input(DType::f32, {4, 9, 1}, -2, 2)},
                 {{extension::softmax::axis, std::int64_t{1}}, {extension::softmax::safe, false}}));
  expect_as_interpreted(net, near, "axis 1 of 3", "softmax");
}

TEST(Rows, SoftmaxOfOtherAxesAndDtypesByItsDefinition) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t axis : {0, 1}) {
      Net net;
      net.output(add(net, extension::op::softmax, {net.input(dtype, {5, 9}, -2, 2)},
                     {{extension::softmax::axis, axis}, {extension::softmax::safe, true}}));
      const double step = dtype == DType::bf16 ? 0.02 : dtype == DType::f16 ? 3e-3 : 2e-6;
      expect_as_interpreted(net, {step, step}, fmt::format("{} along {}", name_of(dtype), axis));
    }
}

TEST(Rows, SoftmaxOfWhatIsNoNumber) {
  for (const std::size_t n : {3u, 8u, 37u})
    for (const bool safe : {false, true}) {
      std::vector<std::vector<float>> rows;
      for (const float odd :
           {nan, infinity, -infinity, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
        rows.emplace_back(n, odd);
        for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          rows.emplace_back(n, 0.5f)[at] = odd;
          rows.emplace_back(n, -infinity)[at] = odd;
          rows.back()[(at + 1) % n] = nan;
        }
      }
      Net net;
      net.output(softmax(
          net, net.input(DType::f32, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(n)}, 0, 0),
          safe));
      set_rows(net, rows);
      expect_as_interpreted(net, near, fmt::format("rows of {}, safe {}", n, safe), "softmax");
    }
}

TEST(Rows, Norms) {
  for (const Operator op : {extension::op::layer_norm, extension::op::rms_norm})
    for (std::int64_t n = 1; n < 140; n += n < 70 ? 1 : 23) {
      Net net(static_cast<std::uint32_t>(n));
      const bool weighted = n % 2 == 0, biased = n % 4 < 2;
      net.output(norm(net, op, net.input(DType::f32, {2, 3, n}, -3, 5), weighted, biased));
      expect_as_interpreted(net, {2e-5, 2e-5}, fmt::format("{} of {}, weighted {}, biased {}", op, n, weighted, biased),
                            std::string(op.base()));
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Rows, NormsOfWhatIsNoNumber) {
  for (const Operator op : {extension::op::layer_norm, extension::op::rms_norm})
    for (const std::size_t n : {3u, 8u, 37u}) {
      std::vector<std::vector<float>> rows;
      for (const float odd : {nan, infinity, -infinity, 0.0f, 3e38f}) {
        rows.emplace_back(n, odd);
        rows.emplace_back(n, 0.5f)[n - 1] = odd;
        rows.emplace_back(n, -0.5f)[0] = odd;
      }
      Net net;
      net.output(norm(
          net, op, net.input(DType::f32, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(n)}, 0, 0),
          true, true));
      set_rows(net, rows);
      expect_as_interpreted(net, {2e-5, 2e-5}, fmt::format("{} of {}", op, n), std::string(op.base()));
    }
}

// Its results: the quantised values, a scale and a zero point for each row.
std::vector<ValueId> quantise(Net& net, ValueId x, double least_scale, bool keeps_dim) {
  Node node{extension::op::quantise_rows,
            {x},
            {{extension::quantise_rows::least_scale, least_scale}, {extension::quantise_rows::keeps_dim, keeps_dim}},
            {},
            nullptr,
            {}};
  for (const TensorType& type : extension::find(node.op)->row.infer(tosa::View(net.graph, node)))
    node.outputs.push_back(net.graph.add_value("v" + std::to_string(net.graph.values.size()), type));
  net.graph.nodes.push_back(node);
  const auto broken = extension::verify_node(tosa::View(net.graph, node));
  EXPECT_FALSE(broken) << broken->label << ": " << broken->message;
  return node.outputs;
}

// To the last bit.
TEST(Rows, Quantised) {
  for (std::int64_t n = 1; n < 140; n += n < 70 ? 1 : 23)
    for (const bool keeps_dim : {false, true})
      for (const auto& [lowest, highest] : {std::pair{-3, 5}, {2, 9}, {-70, -1}, {0, 0}}) {
        Net net(static_cast<std::uint32_t>(n));
        for (ValueId v : quantise(net, net.input(DType::f32, {3, 5, n}, lowest, highest), 0x1p-23, keeps_dim))
          net.output(v);
        expect_as_interpreted(net, {}, fmt::format("rows of {} in {}..{}", n, lowest, highest), "quantise_rows");
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(Rows, QuantisedOfEverySize) {
  std::vector<std::vector<float>> rows;
  for (const double size : {1e-45, 1e-40, 1e-38, 1e-20, 1e-7, 1.0, 127.5, 1e20, 1e37, 3.4e38}) {
    const auto most = static_cast<float>(size);
    std::vector<float> row(37);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = most * (static_cast<float>(i) / 18 - 1);
    rows.push_back(row);
    rows.emplace_back(37, most);
    rows.emplace_back(37, -most);
    for (float& x : row) x = -0.0f;
    row[20] = most;
    rows.push_back(std::move(row));
  }
  for (const double least_scale : {0x1p-23, 0x1p-126}) {
    Net net;
    for (ValueId v :
         quantise(net, net.input(DType::f32, {static_cast<std::int64_t>(rows.size()), 37}, 0, 0), least_scale, true))
      net.output(v);
    set_rows(net, rows);
    expect_as_interpreted(net, {}, fmt::format("no scale below {}", least_scale), "quantise_rows");
  }
}

// So many that threads share them; in whatever parts, a row's result is the same.
TEST(Rows, OfManyTasks) {
  std::vector<Bytes> first;
  for (const int threads : {1, 2, 3}) {
    Net net;
    const ValueId x = net.input(DType::f32, {150, 700}, -3, 3);
    net.output(softmax(net, x, false));
    net.output(masked_softmax(net, x, mask_of(net, {150, 700}, 70), true, 1));
    net.output(norm(net, extension::op::layer_norm, x, true, true));
    net.output(norm(net, extension::op::rms_norm, x, true, false));
    for (ValueId v : quantise(net, x, 0x1p-23, true)) net.output(v);
    if (threads == 1) expect_as_interpreted(net, {2e-5, 2e-5});
    auto program = cpu::Program::compile(net.graph, {.threads = threads});
    ASSERT_TRUE(program.ok());
    const auto got = program->run(net.inputs);
    ASSERT_TRUE(got.ok());
    for (std::size_t i = 0; i < got->size(); ++i) {
      if (threads == 1) first.push_back((*got)[i].data);
      EXPECT_TRUE((*got)[i].data == first[i]) << "output " << i << " of " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace tosaic::test
