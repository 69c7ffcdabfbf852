// SPDX-License-Identifier: Apache-2.0
// Narrow groups of channels: a vector has the sums of several groups, or of some of one. What a group's channels have
// in a pixel is read once and put to all of its sums, some channels at a time.
#include "cpu/window/groups_kernel.h"

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/groups_i8_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"
#include "cpu/window/byte_products-inl.h"
#include "cpu/window/depthwise_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

#if HWY_TARGET == HWY_SCALAR
constexpr GroupsI8Kernel::Columns columns_of(std::int64_t) { return nullptr; }
#else
constexpr int lanes = static_cast<int>(hn::MaxLanes(Ints()));

// The sums of a vector's channels. `own`: channels of a group, as many as it has sums. A column of its window is `side`
// pixels, each in as many parts as the channels are when some are multiplied at once.
template <int own>
struct ChunkOfGroups {
  static constexpr int chains = 2, pixels = 1, side = 3, parts = own / ByteProducts::at_once, groups = side * parts;
  static constexpr int read = own > lanes ? own : lanes;  // channels
  static_assert(read / ByteProducts::at_once <= lanes, "a pixel's channels fit a vector");
  using Vector = IntVector;
  const std::int8_t* const* lines;
  Vector term, outside;
  Vector weight[side][groups];
  decltype(hn::SetTableIndices(Ints(), static_cast<const std::int32_t*>(nullptr))) order[parts];

  HWY_INLINE ChunkOfGroups(const DepthwiseI8Columns& call, std::int64_t chunk, std::int64_t c)
      : lines(call.window.lines),
        term(hn::LoadU(Ints(), call.of.term + c)),
        outside(ByteProducts::same(call.window.padding)) {
    const auto* from = static_cast<const std::int32_t*>(call.of.weight) + chunk * side * groups * lanes;
#pragma GCC unroll 3
    for (int x = 0; x < side; ++x) {
#pragma GCC unroll 12
      for (int g = 0; g < groups; ++g) weight[x][g] = hn::LoadU(Ints(), from + (x * groups + g) * lanes);
    }
    HWY_ALIGN std::int32_t at[lanes];
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) {
      for (int i = 0; i < lanes; ++i) at[i] = i / own * parts + p;
      order[p] = hn::SetTableIndices(Ints(), at);
    }
  }
  HWY_INLINE void load(std::int64_t at, Vector (&column)[groups]) const {
#pragma GCC unroll 3
    for (int y = 0; y < side; ++y) {
      const Vector pixel = ByteProducts::neighbours<read>(lines[y] + at);
#pragma GCC unroll 4
      for (int p = 0; p < parts; ++p) column[y * parts + p] = hn::TableLookupLanes(pixel, order[p]);
    }
  }
  static HWY_INLINE Vector add_products(Vector sums, Vector x, Vector w) {
    return ByteProducts::add_products(sums, x, w);
  }
};

template <int own, int stride>
HWY_NOINLINE void chunk_of_columns(const DepthwiseI8Columns& call, std::int64_t first, std::int64_t last,
                                   std::int64_t chunk, std::int64_t c) {
  const DepthwiseI8Channels& of = call.of;
  const RescaleVector rescale(of.multiplier + c, of.shift + c, of.round + c);
  const QuantisedValues quantised(of.zero_point, of.lowest, of.highest);
  std::int8_t* const out = of.out + c;
  by_columns<stride>(ChunkOfGroups<own>(call, chunk, c), call.window, of.channels, own > lanes ? c / own * own : c,
                     first, last, [&](std::int64_t p, const IntVector(&sums)[1], std::int64_t) HWY_ATTR {
                       quantised.store(rescale(sums[0]), out + (p - call.window.first) * of.out_step);
                     });
}
template <int own>
void columns(const DepthwiseI8Columns& call) {
  for_chunks(call, lanes, [&](std::int64_t first, std::int64_t last, std::int64_t chunk, std::int64_t c) {
    call.window.stride == 1 ? chunk_of_columns<own, 1>(call, first, last, chunk, c)
                            : chunk_of_columns<own, 2>(call, first, last, chunk, c);
  });
}
constexpr GroupsI8Kernel::Columns columns_of(std::int64_t own) {
  if (own == 4) return &columns<4>;
  if (own == 8) return &columns<8>;
  return nullptr;
}
#endif

}  // namespace

const GroupsI8Kernel& groups_i8_kernel_here() {
  static const GroupsI8Kernel here{static_cast<int>(hn::Lanes(Ints())), ByteProducts::at_once,
                                   ByteProducts::weight_bytes, ByteProducts::offset, &columns_of};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(groups_i8_kernel_here);
const GroupsI8Kernel& groups_i8_kernel() { return HWY_DYNAMIC_DISPATCH(groups_i8_kernel_here)(); }
}  // namespace tosaic::cpu
#endif
