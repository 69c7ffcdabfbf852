// SPDX-License-Identifier: Apache-2.0
// A graph with attributes of every kind and elements of several widths, for the tests of the graph formats; each adds
// what its format alone holds.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tosaic {

inline Graph graph_of(std::string_view text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  return graph.ok() ? *graph : Graph();
}

// Reads %x: 1x8x8x4xf32 and %q: 4x6xi8; computes %tall, %narrow and %flag.
inline const std::string sample_nodes =
    R"(  %w: 2x3x3x4xf32 = constant [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0,
    9.5, 10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0, 13.5, 14.0, 14.5, 15.0, 15.5, 16.0, 16.5, 17.0, 17.5, 18.0,
    0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0,
    9.5, 10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0, 13.5, 14.0, 14.5, 15.0, 15.5, 16.0, 16.5, 17.0, 17.5, 18.0]
  %b: 2xf32 = constant [0.25, -0.25]
  %z: 1xf32 = constant [0.0]
  %conv: 1x8x8x2xf32 = tosa.conv2d(%x, %w, %b, %z, %z) {pad=[1, 1, 1, 1], stride=[1, 1], dilation=[1, 1], acc_type=f32, local_bound=false} loc("model.py":6 "y = a | b" in "net.conv" "torch.nn.modules.conv.Conv2d" fn "conv2d_1" from "aten.conv2d.default" as "conv2d")
  %clamped: 1x8x8x2xf32 = tosa.clamp(%conv) {min_val=0.0, max_val=6.5, nan_mode="propagate"}
  %to: 2xshape = constant [64, 2]
  %tall: 64x2xf32 = tosa.reshape(%clamped, %to)
  %low: 4x6xi8 = tosa.clamp(%q) {min_val=-3, max_val=100, nan_mode="ignore"}
  %multiplier: 1xi32 = constant [1073741824]
  %shift: 1xi8 = constant [30]
  %in_zp: 1xi8 = constant [-1]
  %out_zp: 1xi16 = constant [0]
  %narrow: 4x6xi16 = tosa.rescale(%low, %multiplier, %shift, %in_zp, %out_zp) {scale32=true, rounding_mode="double_round", per_channel=false, input_unsigned=false, output_unsigned=false}
  %flag: 4xi32 = tosa.argmax(%q) {axis=1, nan_mode="propagate"}
)";

}  // namespace tosaic
