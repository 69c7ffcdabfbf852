// SPDX-License-Identifier: Apache-2.0
#include "ethosu/conv_kernel.h"

#include <cstring>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ethosu/conv_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "simd/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::ethosu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Sixteen lanes of sums, as many vectors as that takes.
using Ints = hn::CappedTag<std::int32_t, 16>;
using IntVector = hn::Vec<Ints>;

#if HWY_TARGET != HWY_SCALAR
template <int rows>
HWY_NOINLINE void dense_rows(const DenseCall& call) {
  const Ints d;
  constexpr int vectors = 16 / static_cast<int>(hn::MaxLanes(Ints()));
  constexpr int lanes = 16 / vectors;
  IntVector sums[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
  const std::int16_t* b = call.weights;
  for (std::int64_t s = 0; s < call.stretch_count; ++s) {
    const std::int64_t offset = call.stretches[s].offset;
    for (std::int64_t g = 0; g < call.stretches[s].pairs; ++g, b += 32) {
      IntVector weights[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        weights[v] = hn::BitCast(d, hn::LoadU(hn::Repartition<std::int16_t, Ints>(), b + 2 * lanes * v));
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        std::int32_t pair;
        std::memcpy(&pair, call.pixels[r] + offset + 2 * g, 4);
        const IntVector input = hn::Set(d, pair);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          sums[r][v] = simd::HWY_NAMESPACE::add_pair_products(d, sums[r][v], input, weights[v]);
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, call.sums + r * call.stride + lanes * v);
}
#else
template <int rows>
void dense_rows(const DenseCall& call) {
  for (int r = 0; r < rows; ++r) {
    std::int32_t sums[16] = {};
    const std::int16_t* b = call.weights;
    for (std::int64_t s = 0; s < call.stretch_count; ++s)
      for (std::int64_t g = 0; g < call.stretches[s].pairs; ++g, b += 32) {
        const std::int16_t* a = call.pixels[r] + call.stretches[s].offset + 2 * g;
        for (int lane = 0; lane < 16; ++lane) sums[lane] += a[0] * b[2 * lane] + a[1] * b[2 * lane + 1];
      }
    std::memcpy(call.sums + r * call.stride, sums, sizeof sums);
  }
}
#endif

void dense(const DenseCall& call) {
  switch (call.count) {
    case 1: return dense_rows<1>(call);
    case 2: return dense_rows<2>(call);
    case 3: return dense_rows<3>(call);
    case 4: return dense_rows<4>(call);
    case 5: return dense_rows<5>(call);
    case 6: return dense_rows<6>(call);
    case 7: return dense_rows<7>(call);
    default: return dense_rows<8>(call);
  }
}

void depthwise(const DepthwiseCall& call) {
  const Ints d;
  const hn::Rebind<std::int16_t, Ints> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < call.channels; c += lanes) {
    IntVector sum = hn::Zero(d);
    for (std::int64_t t = 0; t < call.taps; ++t) {
      const auto input = hn::PromoteTo(d, hn::LoadU(d16, call.pixel + call.tap_offsets[t] + c));
      const auto weight = hn::PromoteTo(d, hn::LoadU(d16, call.weights + t * call.channels + c));
      sum = hn::Add(sum, hn::Mul(input, weight));
    }
    hn::StoreU(sum, d, call.sums + c);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::ethosu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::ethosu {
HWY_EXPORT(dense);
HWY_EXPORT(depthwise);
void dense_block(const DenseCall& call) { HWY_DYNAMIC_DISPATCH(dense)(call); }
void depthwise_pixel(const DepthwiseCall& call) { HWY_DYNAMIC_DISPATCH(depthwise)(call); }

std::vector<std::int16_t> pack_dense(const Weights& weights) {
  const std::int64_t pairs = (weights.inputs + 1) / 2, taps = weights.taps();
  const std::int64_t blocks = (weights.outputs + block_outputs - 1) / block_outputs;
  std::vector<std::int16_t> packed(static_cast<std::size_t>(blocks * taps * pairs * 2 * block_outputs), 0);
  for (std::int64_t o = 0; o < weights.outputs; ++o)
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int16_t* from = weights.of(o) + t * weights.inputs;
      std::int16_t* to =
          packed.data() + ((o / block_outputs * taps + t) * pairs * block_outputs + o % block_outputs) * 2;
      for (std::int64_t i = 0; i < weights.inputs; ++i) to[i / 2 * 2 * block_outputs + i % 2] = from[i];
    }
  return packed;
}

std::vector<std::int16_t> pack_depthwise(const Weights& weights) {
  const std::int64_t channels = (weights.outputs + 15) / 16 * 16, taps = weights.taps();
  std::vector<std::int16_t> packed(static_cast<std::size_t>(taps * channels), 0);
  for (std::int64_t o = 0; o < weights.outputs; ++o)
    for (std::int64_t t = 0; t < taps; ++t) packed[static_cast<std::size_t>(t * channels + o)] = weights.of(o)[t];
  return packed;
}
}  // namespace tosaic::ethosu
#endif
