// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/rest.h"

#include <algorithm>

#include "ops/definitions/convolution.h"
#include "ops/definitions/pool.h"

namespace tosaic::tosa {
namespace {

bool has(const Op& op, std::string_view attribute) {
  return std::ranges::find(op.attrs, attribute, &AttrDef::name) != op.attrs.end();
}

// Weights have their kernel behind the output channel, those of depthwise convolutions before everything else.
std::vector<std::int64_t> kernel_of(const View& view, const Op& op) {
  const int first = op.name == "depthwise_conv2d" ? 0 : 1;
  std::vector<std::int64_t> kernel;
  for (int d = 0; d < view.in(0).rank() - 2; ++d) kernel.push_back(view.in(1).shape.size(first + d));
  return kernel;
}

std::vector<Slide> slides_of(const View& view) {
  const Op* op = find(view.node().op);
  if (op && adapts(view)) return pool_slides(view);
  if (!op || !has(*op, "pad") || !has(*op, "stride")) return {};
  return has(*op, "kernel") ? pool_slides(view) : convolution_slides(view, kernel_of(view, *op));
}

}  // namespace

Check check_rest(const View& view) {
  for (const Slide& s : slides_of(view))
    if (room(s) % s.stride != 0)
      return broken(fmt::format("{}.output-size", view.node().op.base()),
                    "a kernel of {} with dilation {} can move by {} over an input of {} with padding {} and {}, which "
                    "stride {} does "
                    "not divide",
                    s.kernel, s.dilation, room(s), s.size, s.before, s.after, s.stride);
  return std::nullopt;
}

}  // namespace tosaic::tosa
