// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels in which each group has as many sums as channels, 4 or 8: by columns of a 3 x 3
// window, as depthwise ones (cpu/window/depthwise_kernel.h).
#pragma once
#include "cpu/window/depthwise_kernel.h"

namespace tosaic::cpu {

// Sums come in chunks of `lanes`; the last chunk ends with the last channel, and may share some with the one before.
// columns_of(own): null where groups of so many channels are not done here.
struct GroupsF32Kernel {
  int lanes;
  // Weights are [chunk][x][y][channel of the group][lane].
  using Columns = void (*)(const DepthwiseF32Columns&);
  Columns (*columns_of)(std::int64_t own);
};
const GroupsF32Kernel& groups_f32_kernel();

struct GroupsI8Kernel {
  int lanes;
  int at_once;          // channels of a pixel that are multiplied at once
  int weight_bytes;     // of a weight as packed
  std::int32_t offset;  // added to each input
  // Weights are [chunk][x][y][part of the group's channels][lane][channel in the part].
  using Columns = void (*)(const DepthwiseI8Columns&);
  Columns (*columns_of)(std::int64_t own);
};
const GroupsI8Kernel& groups_i8_kernel();

}  // namespace tosaic::cpu
