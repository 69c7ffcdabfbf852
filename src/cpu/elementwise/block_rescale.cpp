// SPDX-License-Identifier: Apache-2.0
// RESCALE on blocks. Three parts, each a pass over the block: widen (minus the input zero point) to i32, scale,
// narrow (plus the output zero point, clipped). The frequent pairs of dtypes do all three in registers.
#include <algorithm>
#include <cstring>

#include "cpu/elementwise/block.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/block_rescale.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/elementwise/block_loops-inl.h"
#include "cpu/matrix/rescale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using C = BlockConstants;

struct Widen {
  template <class T>
  static HWY_INLINE std::int32_t f(T a, const C& c) {
    return static_cast<std::int32_t>(a) - c.input_zp;
  }
};
template <class Out>
struct Narrow {
  static HWY_INLINE Out f(std::int32_t a, const C& c) {
    const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(c.output_zp));
    const auto lowest = static_cast<std::int32_t>(c.lowest), highest = static_cast<std::int32_t>(c.highest);
    return static_cast<Out>(std::min(std::max(x, lowest), highest));
  }
};

// One element, as the standard writes it.
HWY_INLINE std::int32_t scale_one(std::int64_t value, std::int64_t multiplier, int shift, bool double_round) {
  std::int64_t round = std::int64_t{1} << (shift - 1);
  if (double_round && shift > 31) round += value >= 0 ? std::int64_t{1} << 30 : -(std::int64_t{1} << 30);
  return static_cast<std::int32_t>((value * multiplier + round) >> shift);
}

// The multiplier and shift of element i of the block.
struct Scales {
  const std::int32_t* multiplier;
  const std::int32_t* shift;
  explicit Scales(const Block& block) {
    const C& c = *block.constants;
    const std::int64_t at = c.channels == 1 ? 0 : block.first % c.channels;
    multiplier = c.multiplier.data() + at;
    shift = c.scale_shift.data() + at;
  }
};

// Repeats one scale over a vector.
struct PerTensor {
  HWY_ALIGN std::int32_t multiplier[HWY_MAX_BYTES / 4];
  HWY_ALIGN std::int64_t shift[HWY_MAX_BYTES / 4], round[HWY_MAX_BYTES / 4];
  explicit PerTensor(const C& c) {
    std::fill(std::begin(multiplier), std::end(multiplier), c.multiplier[0]);
    std::fill(std::begin(shift), std::end(shift), c.scale_shift[0]);
    std::fill(std::begin(round), std::end(round), std::int64_t{1} << (c.scale_shift[0] - 1));
  }
  RescaleVector vector() const { return RescaleVector(multiplier, shift, round); }
};

// out = f(in) for vectors of i32, from and to narrower dtypes; the rest of the block goes through a vector's
// worth of memory.
template <class In, class Out, class F>
HWY_INLINE void for_vectors(const Block& block, const F& f) {
  const Ints d;
  const hn::Rebind<In, Ints> d_in;
  const hn::Rebind<Out, Ints> d_out;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const In*>(block.in[0]);
  auto* out = static_cast<Out*>(block.out);
  auto one = [&](const In* from, Out* to) {
    IntVector x;
    if constexpr (sizeof(In) == 4)
      x = hn::LoadU(d, from);
    else
      x = hn::PromoteTo(d, hn::LoadU(d_in, from));
    x = f(x);
    if constexpr (sizeof(Out) == 4)
      hn::StoreU(x, d, to);
    else
      hn::StoreU(hn::DemoteTo(d_out, x), d_out, to);
  };
  std::int64_t i = 0;
  for (; i + lanes <= block.count; i += lanes) one(in + i, out + i);
  if (i == block.count) return;
  const auto rest = static_cast<std::size_t>(block.count - i);
  HWY_ALIGN In from[HWY_MAX_BYTES] = {};
  HWY_ALIGN Out to[HWY_MAX_BYTES];
  std::memcpy(from, in + i, rest * sizeof(In));
  one(from, to);
  std::memcpy(out + i, to, rest * sizeof(Out));
}

// All of RESCALE with one scale, single rounding.
template <class In, class Out>
void whole(const Block& block) {
  const Ints d;
  const C& c = *block.constants;
  const PerTensor constants(c);
  const RescaleVector scale = constants.vector();
  const IntVector input_zp = hn::Set(d, c.input_zp), output_zp = hn::Set(d, c.output_zp);
  const IntVector lowest = hn::Set(d, static_cast<std::int32_t>(c.lowest));
  const IntVector highest = hn::Set(d, static_cast<std::int32_t>(c.highest));
  for_vectors<In, Out>(block, [&](IntVector x) HWY_ATTR {
    const IntVector y = hn::Add(scale(hn::Sub(x, input_zp)), output_zp);
    return hn::Min(hn::Max(y, lowest), highest);
  });
}

void scale(const Block& block) {
  const PerTensor constants(*block.constants);
  const RescaleVector by = constants.vector();
  for_vectors<std::int32_t, std::int32_t>(block, [&](IntVector x) HWY_ATTR { return by(x); });
}

// In: i32, or i64 for the i48 accumulators of 16-bit activations (16-bit multipliers, 64-bit arithmetic).
template <class In, bool double_round>
void scale_slowly(const Block& block) {
  const Scales scales(block);
  const std::int64_t step = block.constants->channels == 1 ? 0 : 1;
  const auto* in = static_cast<const In*>(block.in[0]);
  auto* out = static_cast<std::int32_t*>(block.out);
  for (std::int64_t i = 0; i < block.count; ++i)
    out[i] = scale_one(in[i], scales.multiplier[i * step], scales.shift[i * step], double_round);
}

}  // namespace

BlockKernel rescale_kernel_here(const BlockKey& key) {
  using enum DType;
  const DType in = key.in, out = key.out;
  if (key.op == tosa::op::rescale) {  // whole
    if (key.per_channel || key.double_round || key.input_unsigned || key.output_unsigned) return nullptr;
    if (in == i8 && out == i32) return whole<std::int8_t, std::int32_t>;
    if (in == i32 && out == i8) return whole<std::int32_t, std::int8_t>;
    if (in == i8 && out == i8) return whole<std::int8_t, std::int8_t>;
    if (in == i32 && out == i32) return whole<std::int32_t, std::int32_t>;
    if (in == i16 && out == i32) return whole<std::int16_t, std::int32_t>;
    if (in == i32 && out == i16) return whole<std::int32_t, std::int16_t>;
    if (in == i16 && out == i16) return whole<std::int16_t, std::int16_t>;
    return nullptr;
  }
  if (key.op == block::widen) {
    if (in == i8)
      return key.input_unsigned ? map1<Widen, std::uint8_t, std::int32_t> : map1<Widen, std::int8_t, std::int32_t>;
    if (in == i16)
      return key.input_unsigned ? map1<Widen, std::uint16_t, std::int32_t> : map1<Widen, std::int16_t, std::int32_t>;
    return in == i32 ? map1<Widen, std::int32_t> : nullptr;
  }
  if (key.op == block::scale) {
    if (in == i48) return scale_slowly<std::int64_t, false>;
    if (key.double_round) return scale_slowly<std::int32_t, true>;
    return key.per_channel ? scale_slowly<std::int32_t, false> : scale;
  }
  if (key.op == block::narrow) {
    if (out == i8) return map1<Narrow<std::int8_t>, std::int32_t, std::int8_t>;
    if (out == i16) return map1<Narrow<std::int16_t>, std::int32_t, std::int16_t>;
    return out == i32 ? map1<Narrow<std::int32_t>, std::int32_t, std::int32_t> : nullptr;
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(rescale_kernel_here);
BlockKernel rescale_kernel(const BlockKey& key) { return HWY_DYNAMIC_DISPATCH(rescale_kernel_here)(key); }
BlockKernel block_kernel(const BlockKey& key) {
  if (BlockKernel kernel = rescale_kernel(key)) return kernel;
  if (BlockKernel kernel = float_kernel(key)) return kernel;
  return integer_kernel(key);
}
}  // namespace tosaic::cpu
#endif
