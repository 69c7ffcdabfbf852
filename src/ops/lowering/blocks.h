// SPDX-License-Identifier: Apache-2.0
// Blocks of elements that share a scale, as torchao says them: block_size[i] neighbours along dim i.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/packed_weight.h"
#include "ops/op.h"

namespace tosaic {

struct Blocks {
  Shape split;        // the tensor with each dim that has several blocks as (blocks, elements of one)
  calls::Axes inner;  // the dims of `split` that lie within a block
  Shape scales;       // `split` with those as 1: how scales stand next to it
  Shape counts;       // blocks along each dim of the tensor
};

inline Blocks blocks_of(const Call& call, Val x) {
  const std::vector<std::int64_t> sizes = call.ints("block_size");
  Builder& b = call.builder();
  std::vector<std::int64_t> split, scales, counts;
  Blocks blocks;
  bool fits = static_cast<int>(sizes.size()) == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)], all = x.dim(i);
    fits = size > 0 && all % size == 0;
    if (!fits) break;
    counts.push_back(all / size);
    if (size == 1 || size < all) {
      split.push_back(all / size);
      scales.push_back(all / size);
    }
    if (size == 1) continue;
    blocks.inner.push_back(static_cast<int>(split.size()));
    split.push_back(size);
    scales.push_back(1);
  }
  if (!fits)
    b.refuse("aten.blocks.size",
             fmt::format("blocks of {} in a tensor of shape {}", to_string(Shape(sizes)), to_string(x.shape())));
  blocks.split = Shape(split);
  blocks.scales = Shape(scales);
  blocks.counts = Shape(counts);
  return blocks;
}

// The quantised values in use: those of the dtype where the call says nothing.
inline tosa::Bounds quantised_range(const Call& call, DType dtype) {
  const IntegerRange all = range_of(dtype);
  return {call.has("quant_min") ? call.number("quant_min") : static_cast<double>(all.lowest),
          call.has("quant_max") ? call.number("quant_max") : static_cast<double>(all.highest)};
}

// Scales or zero points, one for each block, next to Blocks::split.
inline Val broadcast_to_blocks(const Call& call, Val v, const Blocks& blocks, DType dtype) {
  Builder& b = call.builder();
  if (v.shape().elements() != blocks.scales.elements())
    b.refuse("aten.blocks.scales",
             fmt::format("{} scales or zero points for {} blocks", to_string(v.shape()), to_string(blocks.counts)));
  return calls::view(b.aten(aten::op::_to_copy, {v}, {{"dtype", dtype}}), blocks.scales);
}
// Absent, without elements, or all 0: torchao says each where there are none.
inline std::optional<Val> zero_points(const Call& call) {
  auto zero = call.optional_tensor("zero_point");
  if (!zero || zero->shape().elements() == 0) return std::nullopt;
  if (zero->is_constant() && std::ranges::all_of(elements_of(*zero), [](double z) { return z == 0; }))
    return std::nullopt;
  return zero;
}

}  // namespace tosaic
