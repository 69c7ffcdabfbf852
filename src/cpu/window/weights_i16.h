// SPDX-License-Identifier: Apache-2.0
// What convolutions of i16 inputs and i8 weights know of their weights: as the kernel reads them, less their zero
// point, and whether their sums fit i32.
#pragma once
#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/short_sums.h"

namespace tosaic::cpu {

struct WeightsI16 {
  const GemmI8* kernel = nullptr;
  PanelsI8 panels;
  std::shared_ptr<const PackedI8> packed;
  std::vector<std::int64_t> bias;  // of each column
  std::int64_t stretch_groups = 0;
  // What sums in i32 begin with, and with what they are RESCALEd where they are.
  Lines<std::int32_t> terms;
  RescaleColumns scales;

  void add_epilogue(const Epilogue& epilogue);
  // What all calls for panel p have in common; results are not where they go yet.
  GemmI8Call call(std::int64_t p) const;
  GemmI8Call rescaling_call(std::int64_t p, const Epilogue& epilogue) const;
};

// Of the conv2d, conv3d or transpose_conv2d node: what its sums of k products fit, and, packed, its weights. The
// products of a row are in so many segments, each filled to whole groups.
ShortSums short_sums(const Planning& planning, const Node& node, std::int64_t k);
WeightsI16 weights_i16(Planning& planning, const Node& node, std::int64_t k, const ShortSums& sums,
                       std::int64_t segments = 1);

}  // namespace tosaic::cpu
