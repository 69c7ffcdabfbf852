// SPDX-License-Identifier: Apache-2.0
#include "shaders/convolution_groups.h"

#include <algorithm>

namespace tosaic::shaders {

ConvolutionGroups::ConvolutionGroups(const tosa::View& view) {
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape;
  channels = weight.size(weight.rank() - 1);
  count = channels > 0 ? std::max<std::int64_t>(in.size(in.rank() - 1) / channels, 1) : 1;
  columns = weight.size(0) / count;
}

ConvolvedGroup::ConvolvedGroup(Kernel& s, const ConvolutionGroups& groups, const Dim& tiles, Value& work_group,
                               Value& rows)
    : s_(s), groups_(groups) {
  if (groups.count == 1) return;
  const Value of_each = s.param(tiles), number = work_group / of_each, none = s.integer(0);
  const Value exists = number < groups.count;
  work_group = work_group % of_each;
  rows = s.select(exists, rows, none);
  number_ = s.select(exists, number, none);
}

std::optional<Windows::Steps> ConvolvedGroup::bind(Fetched& fetched, const tosa::View& view, std::int64_t unit) const {
  const ValueId image = view.node().inputs[0];
  if (!number_) return bind_image(s_, fetched, image, unit);
  fetched.bind(image);
  const auto step = [&](const Dim& elements) { return s_.param(fetched.units(elements)); };
  const Shape& in = view.in(0).shape;
  const int last = in.rank() - 1;
  Windows::Steps steps{*number_ * step(groups_.channels), {}, std::vector<Value>(static_cast<std::size_t>(last) - 1)};
  Dim apart = in[last];
  for (int d = last - 1; d > 0; apart = apart * in[d], --d) steps.axes[static_cast<std::size_t>(d) - 1] = step(apart);
  steps.image = step(apart);
  return steps;
}

FirstSums ConvolvedGroup::first_sums(FirstSums all) const {
  if (number_) all.first_quad = *number_ * s_.param(groups_.columns / 4);
  return all;
}

}  // namespace tosaic::shaders
