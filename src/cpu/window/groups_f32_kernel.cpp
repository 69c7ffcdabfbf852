// SPDX-License-Identifier: Apache-2.0
// Narrow groups of channels in floats, as cpu/window/groups_i8_kernel.cpp has them: a channel of each group at a time.
// An element's sum is the same with every instruction set.
#include "cpu/window/groups_kernel.h"

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/groups_f32_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/window/depthwise_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;

#if HWY_TARGET == HWY_SCALAR
constexpr GroupsF32Kernel::Columns columns_of(std::int64_t) { return nullptr; }
#else
constexpr int lanes = static_cast<int>(hn::MaxLanes(Floats()));

// The sums of a vector's channels, of groups of `own`.
template <int own>
struct ChunkOfGroups {
  static constexpr int chains = 3, pixels = 1, side = 3, groups = side * own;
  using Vector = FloatVector;
  // Too many for registers.
  struct Weights {
    const float* from;
    struct OfColumn {
      const float* from;
      HWY_INLINE Vector operator[](int g) const { return hn::LoadU(Floats(), from + g * lanes); }
    };
    HWY_INLINE OfColumn operator[](int x) const { return {from + x * groups * lanes}; }
  };
  const float* const* lines;
  Vector term, outside;
  Weights weight;
  decltype(hn::SetTableIndices(Floats(), static_cast<const std::int32_t*>(nullptr))) order[own];

  HWY_INLINE ChunkOfGroups(const DepthwiseF32Columns& call, std::int64_t chunk, std::int64_t c)
      : lines(call.window.lines),
        term(hn::LoadU(Floats(), call.of.bias + c)),
        outside(hn::Zero(Floats())),
        weight{call.of.weight + chunk * side * groups * lanes} {
    HWY_ALIGN std::int32_t at[lanes];
#pragma GCC unroll 8
    for (int i = 0; i < own; ++i) {
      for (int lane = 0; lane < lanes; ++lane) at[lane] = lane / own * own + i;
      order[i] = hn::SetTableIndices(Floats(), at);
    }
  }
  HWY_INLINE void load(std::int64_t at, Vector (&column)[groups]) const {
#pragma GCC unroll 3
    for (int y = 0; y < side; ++y) {
      const Vector pixel = hn::LoadU(Floats(), lines[y] + at);
#pragma GCC unroll 8
      for (int i = 0; i < own; ++i) column[y * own + i] = hn::TableLookupLanes(pixel, order[i]);
    }
  }
  static HWY_INLINE Vector add_products(Vector sums, Vector x, Vector w) { return hn::MulAdd(x, w, sums); }
};

template <int own, int stride>
HWY_NOINLINE void chunk_of_columns(const DepthwiseF32Columns& call, std::int64_t first, std::int64_t last,
                                   std::int64_t chunk, std::int64_t c) {
  const Floats d;
  const FloatVector lowest = hn::Set(d, call.of.lowest), highest = hn::Set(d, call.of.highest);
  float* const out = call.of.out + c;
  by_columns<stride>(ChunkOfGroups<own>(call, chunk, c), call.window, call.of.channels, c, first, last,
                     [&](std::int64_t p, const FloatVector(&sums)[1], std::int64_t) HWY_ATTR {
                       hn::StoreU(hn::Min(highest, hn::Max(lowest, sums[0])), d,
                                  out + (p - call.window.first) * call.of.out_step);
                     });
}
template <int own>
void columns(const DepthwiseF32Columns& call) {
  for_chunks(call, lanes, [&](std::int64_t first, std::int64_t last, std::int64_t chunk, std::int64_t c) {
    call.window.stride == 1 ? chunk_of_columns<own, 1>(call, first, last, chunk, c)
                            : chunk_of_columns<own, 2>(call, first, last, chunk, c);
  });
}
constexpr GroupsF32Kernel::Columns columns_of(std::int64_t own) {
  if constexpr (lanes > 4)
    if (own == 4) return &columns<4>;
  if constexpr (lanes > 8)
    if (own == 8) return &columns<8>;
  return nullptr;
}
#endif

}  // namespace

const GroupsF32Kernel& groups_f32_kernel_here() {
  static const GroupsF32Kernel here{static_cast<int>(hn::Lanes(Floats())), &columns_of};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(groups_f32_kernel_here);
const GroupsF32Kernel& groups_f32_kernel() { return HWY_DYNAMIC_DISPATCH(groups_f32_kernel_here)(); }
}  // namespace tosaic::cpu
#endif
