// SPDX-License-Identifier: Apache-2.0
#include "compare/answers.h"

#include <fmt/format.h>

#include "compare/chosen_class.h"

namespace tosaic {
namespace {

double real_at(const Tensor& x, std::size_t i) {
  const double value = element_as_double(x.type.dtype, x.data.data(), i);
  if (!x.type.quantised()) return value;
  return x.type.scales->scale[0] * (value - static_cast<double>(x.type.scales->zero_point[0]));
}

std::int64_t class_in_row(const Tensor& x, std::size_t row, std::size_t classes) {
  return chosen_class(classes, [&](std::size_t c) { return real_at(x, row * classes + c); });
}

}  // namespace

Result<Answers> Answers::make(std::span<const std::int64_t> labels, std::size_t samples) {
  if (samples == 0 || labels.empty() || labels.size() % samples != 0)
    return error("compare.labels", fmt::format("{} labels for {} samples", labels.size(), samples))
        .hint("give one to each sample, or one to each row of its first output");
  return Answers(labels, labels.size() / samples);
}

Status Answers::add(const Tensor& floats, const Tensor& quantised) {
  const Shape& shape = floats.type.shape;
  const auto classes = static_cast<std::size_t>(shape.rank() == 0 ? 1 : shape.size(shape.rank() - 1));
  const std::size_t rows = classes == 0 ? 0 : static_cast<std::size_t>(shape.elements()) / classes;
  if (rows != each_)
    return error("compare.labels",
                 fmt::format("each sample has {} label{}, and its first output is {}: {} row{}", each_,
                             each_ == 1 ? "" : "s", to_string(floats.type), rows, rows == 1 ? "" : "s"))
        .hint("labels say which element along the last axis should be the largest");
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels_[right_.labels++];
    right_.floats += class_in_row(floats, row, classes) == label;
    right_.quantised += class_in_row(quantised, row, classes) == label;
  }
  return {};
}

}  // namespace tosaic
