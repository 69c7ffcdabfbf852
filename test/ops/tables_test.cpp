// SPDX-License-Identifier: Apache-2.0
// Tables of functions that are not defined everywhere: quantised values a rounding error outside of the domain give the
// value at the end of its domain, and the quantised values on the end of the domain do.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>

#include "interp/interp.h"
#include "lower/lower.h"

namespace tosaic {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Function {
  std::string op;
  Attrs attrs;
  double lowest, highest;  // of the domain
  std::function<double(double)> f;
  double from, to;  // the reals that the quantised values of x stand for
};

std::vector<Function> functions() {
  using D = double;
  return {
      {"aten.acos.default", {}, -1, 1, [](D x) { return std::acos(x); }, -1.003, 1.003},
      {"aten.asin.default", {}, -1, 1, [](D x) { return std::asin(x); }, -1.003, 1.02},
      {"aten.atanh.default", {}, -1, 1, [](D x) { return std::atanh(x); }, -1.003, 1.003},
      {"aten.acosh.default", {}, 1, infinity, [](D x) { return std::acosh(x); }, 0, 6},
      {"aten.log.default", {}, 0, infinity, [](D x) { return std::log(x); }, -0.02, 5},
      {"aten.log1p.default", {}, -1, infinity, [](D x) { return std::log1p(x); }, -1.01, 3},
      {"aten.sqrt.default", {}, 0, infinity, [](D x) { return std::sqrt(x); }, -0.02, 5},
      {"aten.rsqrt.default", {}, 0, infinity, [](D x) { return 1 / std::sqrt(x); }, -0.02, 5},
      {"aten.pow.Tensor_Scalar", {{"exponent", 1.5}}, 0, infinity, [](D x) { return std::pow(x, 1.5); }, -0.02, 5},
      {"aten.reciprocal.default", {}, -infinity, infinity, [](D x) { return x == 0 ? -infinity : 1 / x; }, -5, 0},
  };
}

// The quantised values that the table of `function` gives for all quantised values of x.
std::vector<std::int64_t> table_of(const Function& function, const TensorType& x_type, const Scales& y) {
  Graph graph;
  const ValueId x = graph.add_value("x", x_type), out = graph.add_value("y", x_type.with(y));
  Node node;
  node.op = Operator(function.op);
  node.attrs = function.attrs;
  node.inputs = {x};
  node.outputs = {out};
  graph.nodes.push_back(std::move(node));
  graph.inputs = {x};
  graph.outputs = {out};
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message;
  const auto range = range_of(x_type.dtype);
  std::vector<std::int64_t> input_values(static_cast<std::size_t>(x_type.shape.elements()));
  for (std::size_t i = 0; i < input_values.size(); ++i) input_values[i] = range.lowest + static_cast<std::int64_t>(i);
  auto run = interp::run(lowered->graph,
                         {{lowered->graph[lowered->graph.inputs[0]].type, constant_bytes(x_type.dtype, input_values)}});
  EXPECT_TRUE(run.ok());
  std::vector<std::int64_t> results;
  for (std::size_t i = 0; i < input_values.size(); ++i)
    results.push_back(element_as_integer(x_type.dtype, run->at(0).data.data(), i));
  return results;
}

TEST(Tables, codes_of_8_bits_outside_of_a_domain_give_its_border) {
  for (const Function& function : functions()) {
    SCOPED_TRACE(function.op);
    const double step = (function.to - function.from) / 255;
    const std::int64_t zero = -128 - static_cast<std::int64_t>(std::nearbyint(function.from / step));
    const Scales y{{0.05}, {3}};
    const auto found = table_of(function, {DType::i8, Shape{256}, Scales{{step}, {zero}}}, y);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double x = static_cast<double>(static_cast<std::int64_t>(i) - 128 - zero) * step;
      const double real = function.f(std::clamp(x, function.lowest, function.highest));
      const double code = std::clamp(std::nearbyint(real / 0.05) + 3, -128.0, 127.0);
      EXPECT_NEAR(static_cast<double>(found[i]), code, 1) << "at " << x;
    }
  }
}

TEST(Tables, knots_of_16_bits_lead_to_the_border_of_a_domain) {
  for (const Function& function : functions()) {
    if (std::isinf(function.lowest) && std::isinf(function.highest)) continue;
    SCOPED_TRACE(function.op);
    const double step = std::max(-function.from, function.to) / 32767, y_step = 8.0 / 32767;
    const auto found = table_of(function, {DType::i16, Shape{65536}, Scales{{step}, {0}}}, Scales{{y_step}, {0}});
    for (const double domain_end : {function.lowest, function.highest}) {
      if (std::isinf(domain_end) || std::isinf(function.f(domain_end))) continue;  // a line only comes near a pole
      const double real = std::clamp(function.f(domain_end), -8.0, 8.0);
      const auto at = static_cast<std::int64_t>(std::nearbyint(domain_end / step));
      // Between the end of the domain's knot and the next a line takes the function's place: near the end of the
      // domain, a part of its rise.
      const double next =
          std::clamp(function.f(domain_end + (domain_end == function.lowest ? 128 : -128) * step), -8.0, 8.0);
      for (std::int64_t code = at - 2; code <= at + 2; ++code) {
        const double y = static_cast<double>(found[static_cast<std::size_t>(code + 32768)]) * y_step;
        EXPECT_NEAR(y, real, std::fabs(next - real) * 4 / 64 + 2 * y_step) << "at " << static_cast<double>(code) * step;
      }
    }
  }
}

}  // namespace
}  // namespace tosaic
