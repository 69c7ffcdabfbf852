// SPDX-License-Identifier: Apache-2.0
#include "ops/bias_room.h"

#include <algorithm>
#include <cmath>

namespace tosaic {

std::vector<double> growth_for_biases(const Tensor& biases, double x_scale, DType x, const Scales& weight) {
  const double most = x == DType::i16 ? std::exp2(38) : std::exp2(30);  // NPUs accumulate in 40 bits
  std::vector<double> growth(weight.scale.size(), 1);
  const auto count = static_cast<std::size_t>(biases.type.shape.elements());
  for (std::size_t c = 0; c < std::max(count, growth.size()); ++c) {
    const std::size_t k = growth.size() == 1 ? 0 : c;
    const double real = std::fabs(element_as_double(biases.type.dtype, biases.data.data(), count == 1 ? 0 : c));
    const double times = real / (x_scale * weight.scale[k] * most);
    if (times > 1 && std::isfinite(times)) growth[k] = std::max(growth[k], std::exp2(std::ceil(std::log2(times))));
  }
  return growth;
}

Tensor with_larger_steps(const Tensor& weight, const std::vector<double>& growth) {
  TensorType type = weight.type;
  std::int64_t run = 1;  // elements of one channel next to each other
  if (growth.size() > 1) {
    int last = type.scales->axis;
    for (std::int64_t channels = type.shape.size(last); channels < std::ssize(growth) && last + 1 < type.rank();)
      channels *= type.shape.size(++last);
    for (int d = last + 1; d < type.rank(); ++d) run *= type.shape.size(d);
  }
  std::vector<std::byte> values(weight.data.data(), weight.data.data() + weight.data.size());
  const auto count = static_cast<std::size_t>(type.shape.elements()), side_by_side = static_cast<std::size_t>(run);
  for (std::size_t first = 0; first < count; first += side_by_side) {
    const double by = growth[first / side_by_side % growth.size()];
    if (by == 1) continue;
    for (std::size_t i = first; i < first + side_by_side; ++i) {
      const double value = element_as_double(type.dtype, weight.data.data(), i);
      store_integer(type.dtype, values.data(), i, static_cast<std::int64_t>(std::nearbyint(value / by)));
    }
  }
  for (std::size_t k = 0; k < growth.size(); ++k) type.scales->scale[k] *= growth[k];
  return {type, Bytes::of(std::move(values))};
}

}  // namespace tosaic
