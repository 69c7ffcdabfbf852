// SPDX-License-Identifier: Apache-2.0
// The weights of a convolution of 8 bits in panels, and what belongs to their columns.
#pragma once
#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/step.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {

// Of one group of channels. `weight` points into the others.
struct PackedConvI8 {
  PanelsI8 weight;
  std::shared_ptr<const PackedI8> packed;
  Lines<std::int32_t> column_terms;
  RescaleColumns scales;

  RescaleEpilogue rescale(const Epilogue& epilogue) const {
    return {epilogue.rescaled, &scales, epilogue.output_zp, epilogue.lowest_quantised, epilogue.highest_quantised};
  }
};
std::vector<PackedConvI8> pack_conv_i8(const Planning& planning, const Node& node, const Window& window,
                                       const GemmI8& kernel);
// When the epilogue is known: its scales.
void pack_scales(const Epilogue& epilogue, const GemmI8& kernel, std::vector<PackedConvI8>& groups);

}  // namespace tosaic::cpu
