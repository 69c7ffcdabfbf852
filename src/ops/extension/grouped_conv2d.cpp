// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/dense_convolution.h"
#include "ops/definitions/extension.h"

namespace tosaic::extension {
namespace {

using namespace grouped_conv2d;

// The weight takes the channels of one group: [OC, KH, KW, IC / groups].
tosa::Check check(const tosa::View& view) {
  const std::int64_t own = view.in(weight).shape.size(3), channels = view.in(input).shape.size(3),
                     out_channels = view.in(weight).shape.size(0);
  if (own < 1 || channels % own != 0 || out_channels % std::max<std::int64_t>(groups(view), 1) != 0)
    return tosa::broken("grouped_conv2d.groups", "groups of {} channels divide neither {} nor {} into as many", own,
                        channels, out_channels);
  if (auto violation = tosa::check_convolution_operands(view, channels, out_channels)) return violation;
  const std::vector<std::int64_t> kernel{view.in(weight).shape.size(1), view.in(weight).shape.size(2)};
  return tosa::check_convolution_slides(view, kernel);
}

std::vector<ValueId> to_tosa(Definition& d) {
  const Graph& graph = d.graph();
  const std::int64_t count = groups(tosa::View(graph, d.node())), own = d.type(d.operand(weight)).shape.size(3),
                     out = d.type(d.operand(weight)).shape.size(0) / count;
  const bool shared_bias = d.type(d.operand(bias)).shape.size(0) == 1;
  TensorType type = d.result();
  type.shape.set(3, out);
  std::vector<ValueId> parts;
  for (std::int64_t g = 0; g < count; ++g) {
    std::vector<ValueId> operands = d.node().inputs;
    operands[input] = d.slice(d.operand(input), 3, g * own, own);
    operands[weight] = d.slice(d.operand(weight), 0, g * out, out);
    if (!shared_bias) operands[bias] = d.slice(d.operand(bias), 0, g * out, out);
    parts.push_back(d.call(tosa::op::conv2d, std::move(operands), type, d.node().attrs));
  }
  return {d.call(tosa::op::concat, std::move(parts), d.result(), {{"axis", std::int64_t{3}}})};
}

}  // namespace

std::int64_t grouped_conv2d::groups(const tosa::View& view) {
  return view.in(input).shape.size(3) / view.in(weight).shape.size(3);
}

// CONV2D of each of several groups of neighbouring channels by weights of its own.
Op extension_grouped_conv2d() {
  tosa::Op row = tosa::dense_convolution_row(
      "grouped_conv2d", 0, "2-D convolution of groups of channels, each by weights of its own, plus bias", 2);
  row.check = check;
  row.level = nullptr;
  row.eval = nullptr;
  return {.row = std::move(row), .to_tosa = to_tosa};
}

}  // namespace tosaic::extension
