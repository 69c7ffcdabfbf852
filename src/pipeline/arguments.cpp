// SPDX-License-Identifier: Apache-2.0
#include "pipeline/arguments.h"

#include <algorithm>
#include <cmath>

namespace tosaic {
namespace {

// A float sample as the quantised values of an integer input.
Tensor quantised_sample(const Tensor& sample, const TensorType& type, const Scales& scales) {
  const IntegerRange range = quantised_range(type);
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double real = element_as_double(sample.type.dtype, sample.data.data(), i);
    const double value = std::nearbyint(real / scales.scale[0]) + static_cast<double>(scales.zero_point[0]);
    values[i] = std::clamp(value, static_cast<double>(range.lowest), static_cast<double>(range.highest));
  }
  return {type, constant_bytes(type.dtype, values)};
}

}  // namespace

Tensor seeded(const TensorType& type, std::mt19937& random) {
  const IntegerRange range = quantised_range(type);
  const bool narrow = type.dtype == DType::i8 || type.dtype == DType::u8 || type.dtype == DType::i16;
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  for (double& x : values) {
    if (is_float(type.dtype))
      x = random() / 2147483648.0 - 1;
    else
      x = narrow ? static_cast<double>(range.lowest + random() % (range.highest - range.lowest + 1)) : random() % 2;
  }
  return {type, constant_bytes(type.dtype, values)};
}

std::vector<Tensor> arguments_for(const Graph& program, const std::vector<TensorType>& wanted,
                                  const std::vector<Tensor>& sample) {
  std::mt19937 random(1);
  const auto& inputs = program.inputs;
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool fits = sample.size() == wanted.size() && sample[i].type.shape.sizes() == wanted[i].shape.sizes();
    const auto& scales = inputs.size() == wanted.size() ? program[inputs[i]].type.scales : std::nullopt;
    if (!fits)
      arguments.push_back(seeded(wanted[i], random));
    else if (is_float(sample[i].type.dtype) && !is_float(wanted[i].dtype) && scales)
      arguments.push_back(quantised_sample(sample[i], wanted[i], *scales));
    else
      arguments.push_back({wanted[i], converted({sample[i].type, sample[i].data.data()}, wanted[i].dtype)});
  }
  return arguments;
}

}  // namespace tosaic
