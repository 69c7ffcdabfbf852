// SPDX-License-Identifier: Apache-2.0
#include "evaluate/fit_input.h"

#include <fmt/format.h>
#include <cmath>

#include "ir/tensor.h"

namespace tosaic {
namespace {

OwnedTensor quantised(const Tensor& real, const TensorInfo& input) {
  const auto elements = static_cast<std::size_t>(real.type.shape.elements());
  std::size_t inner = 1;
  for (int d = input.axis + 1; input.axis >= 0 && d < real.type.rank(); ++d)
    inner *= static_cast<std::size_t>(real.type.shape.size(d));
  std::byte* memory = nullptr;
  Bytes data = Bytes::fresh(elements * storage_size(input.dtype), memory);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t channel = input.axis < 0 ? 0 : i / inner % input.scale.size();
    const double value = element_as_double(real.type.dtype, real.data.data(), i);
    store_double(input.dtype, memory, i,
                 std::nearbyint(value / input.scale[channel]) + static_cast<double>(input.zero_point[channel]));
  }
  return {input.dtype, real.type.shape.sizes(), std::move(data)};
}

}  // namespace

Result<OwnedTensor> fit_input(const OwnedTensor& given, const TensorInfo& input) {
  if (given.dtype == input.dtype) return given;
  const Tensor tensor{{given.dtype, Shape(given.sizes), {}}, given.data};
  if (is_float(given.dtype) && !input.scale.empty()) return quantised(tensor, input);
  const bool floats = is_float(given.dtype) && is_float(input.dtype);
  const bool integers = is_integer(given.dtype) && is_integer(input.dtype) && input.scale.empty();
  if (floats || integers)
    return OwnedTensor{input.dtype, given.sizes, converted({tensor.type, given.data.data()}, input.dtype)};
  return error("evaluate.data", fmt::format("the samples for {} are {}, the program takes {}",
                                            input.name.empty() ? "the input" : "input '" + input.name + "'",
                                            to_string(tensor.type), to_string(input)))
      .hint(is_float(given.dtype)
                ? "the program takes quantised values, and its file does not say their scale: evaluate "
                  "it compiled with --io float"
            : is_float(input.dtype)
                ? "prepare the samples as the model takes them: floats, scaled and shifted as in training"
                : "give the samples in the program's own type");
}

}  // namespace tosaic
