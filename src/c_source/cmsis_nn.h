// SPDX-License-Identifier: Apache-2.0
// Convolutions as calls of Arm's CMSIS-NN, which the user brings, where it computes what TOSA says bit for bit. Private
// to src/c_source.
#pragma once
#include <optional>

#include "c_source/step.h"
#include "c_source/writer.h"

namespace tosaic::c_source {

// How RESCALE and CLAMP make elements of sums.
struct ScaledOutput {
  std::uint32_t rescale = 0;  // the node
  ValueId value = no_value;
  std::int64_t zero_point = 0, low = 0, high = 0;
  bool double_round = false;
};

struct CmsisNnCall {
  Writer body;
  std::vector<ValueId> reads;
  std::int64_t scratch_bytes = 0;
};
// Nothing: its arithmetic is another one there, or it does not take this.
std::optional<CmsisNnCall> cmsis_nn_call(Planning& planning, const tosa::View& view, const ScaledOutput& out,
                                         bool depthwise);

}  // namespace tosaic::c_source
