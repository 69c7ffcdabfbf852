// SPDX-License-Identifier: Apache-2.0
// Windows that slide over spatial axes: the rules and the output size that convolutions and pools share.
// Private to src/ops.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ops/definitions/row.h"

namespace tosaic::tosa {

// One spatial axis and what slides along it.
struct Slide {
  std::int64_t size = 1;  // of the input
  std::int64_t kernel = 1;
  std::int64_t before = 0, after = 0;  // padding
  std::int64_t stride = 1, dilation = 1;
};

// Elements by which the window can move; negative: it does not fit.
std::int64_t room(const Slide& slide);
// room / stride + 1, and 0 for windows that do not fit.
std::int64_t positions(const Slide& slide);

// The same along an axis whose size may be a Dim; one without windows that fit, as a number, has none.
Dim positions(const Dim& size, Slide slide);

// Element i of a list attribute, `otherwise` when the list is shorter or missing.
std::int64_t item(const View& view, std::string_view attribute, std::size_t i, std::int64_t otherwise);
// "<op>.attribute-length".
Check check_length(const View& view, std::string_view attribute, std::size_t wanted);
// "<op>.pad", "<op>.stride", "<op>.dilation", "<op>.output-size": what holds for every sliding window.
// What a stride leaves of the input is tosa_rest.h's to see.
Check check_slides(const View& view, std::span<const Slide> slides);
// "<op>.level-kernel", "<op>.level-pad", "<op>.level-stride".
Check level_slides(const View& view, const Level& level, std::span<const Slide> slides);
// A zero point operand has one element ("<op>.<name>-size") and is 0 unless the tensor's dtype is i8
// ("<op>.<name>"). `tensor` is that dtype.
Check check_zero_point(const View& view, std::size_t operand, std::string_view name, DType tensor);

// Every element as a double, less `zero_point`. Exact for every dtype of at most 48 bits.
std::vector<double> as_doubles(const TensorView& tensor, double zero_point = 0);
inline double first_as_double(const TensorView& tensor) { return element_as_double(tensor.type.dtype, tensor.data, 0); }
// Stores doubles, rounding once. False when an integer dtype cannot hold one of them.
bool store_doubles(const MutableTensorView& tensor, std::int64_t first, std::span<const double> values);

}  // namespace tosaic::tosa
