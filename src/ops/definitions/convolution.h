// SPDX-License-Identifier: Apache-2.0
// What the four convolutions share: operands, types, rules, and the end of each accumulation.
// Operands are {input, weight, bias, input_zp, weight_zp}. Private to src/ops.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ops/definitions/window.h"

namespace tosaic::tosa {

// A row with the operands and types of every convolution; `attrs` stand before acc_type and local_bound.
Op convolution_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, int rank,
                   std::vector<AttrDef> attrs);
// "<op>.input-zp", "<op>.weight-zp", "<op>.bias-size", "<op>.channels" (the weight's count of input channels).
Check check_convolution_operands(const View& view, std::int64_t weight_inputs, std::int64_t out_channels);
// The slides of the spatial axes 1.. of the input, by the attributes pad, stride and dilation.
std::vector<Slide> convolution_slides(const View& view, std::span<const std::int64_t> kernel);
// The result's sizes along them.
std::vector<Dim> convolution_sizes(const View& view, std::span<const std::int64_t> kernel);
// check_length of pad, stride and dilation, then check_slides.
Check check_convolution_slides(const View& view, std::span<const std::int64_t> kernel);
// [N, sizes..., channels] of the bias's dtype.
std::vector<TensorType> convolution_output(const View& view, std::span<const Dim> sizes, std::int64_t channels);

// How large each output channel's sums of products can become, as magnitudes, without the bias. Empty: the weights are
// not known.
std::vector<double> largest_sums(const View& view, const BoundsOf& in);

// The operands of a run as doubles, zero points taken off. A double holds every partial sum of integers exactly
// as long as it stays below 2^53, which the sizes are checked for: one loop serves every dtype.
struct ConvolutionRun {
  std::vector<double> input, weight, bias;

  // Adds the bias to a row of sums, one per output channel, and stores it. An integer sum that leaves the
  // accumulator's dtype breaks a REQUIRE.
  bool store(const MutableTensorView& out, std::int64_t first, std::span<double> sums) const;
};
Result<ConvolutionRun> start_convolution(const Run& run, std::int64_t products_per_sum);
Status accumulator_overflow(const Run& run);

}  // namespace tosaic::tosa
