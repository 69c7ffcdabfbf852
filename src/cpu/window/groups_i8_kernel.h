// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels in which each group has as many sums as channels, 4 or 8: by columns of a 3 x 3
// window, as depthwise ones (cpu/window/depthwise_kernel.h).
#pragma once
#include "cpu/window/depthwise_kernel.h"

namespace tosaic::cpu {

struct GroupsI8Kernel {
  int lanes;    // sums of a chunk; the last chunk ends with the last channel, and may share some with the one before
  int at_once;  // channels of a pixel that are multiplied at once
  int weight_bytes;     // of a weight as packed
  std::int32_t offset;  // added to each input
  // Weights are [chunk][x][y][part of the group's channels][lane][channel in the part]. Null: groups of `own` channels
  // are not done here.
  using Columns = void (*)(const DepthwiseI8Columns&);
  Columns (*columns_of)(std::int64_t own);
};
const GroupsI8Kernel& groups_i8_kernel();

}  // namespace tosaic::cpu
