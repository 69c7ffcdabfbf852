// SPDX-License-Identifier: Apache-2.0
// The exponential that float kernels share, against the library's in f64.
#include <cmath>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

// From results that are no normal floats to those that are not finite: within 1.5 units in the last place.
TEST(Exponentials, OfEverySize) {
  constexpr int count = 20001;
  std::vector<float> x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<float>(-104 + 192.7 * i / (count - 1)));
  Net net;
  net.output(net.node("exp", {net.input(DType::f32, {count}, 0, 0)}));
  for (std::int64_t set : instruction_sets()) {
    use(set);
    auto program = cpu::Program::compile(net.graph, {.threads = 1});
    ASSERT_TRUE(program.ok());
    const auto got = program->run({{net.inputs[0].type, Bytes::of(x)}});
    ASSERT_TRUE(got.ok());
    const auto y = (*got)[0].data.as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double wanted = std::exp(static_cast<double>(x[i]));
      const float nearest = static_cast<float>(wanted), unit = std::nextafter(nearest, INFINITY) - nearest;
      ASSERT_NEAR(y[i], wanted, 1.5 * static_cast<double>(unit)) << "exp(" << x[i] << "), instruction set " << set;
    }
  }
  use(0);
}

}  // namespace
}  // namespace tosaic::test
