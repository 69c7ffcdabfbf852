// SPDX-License-Identifier: Apache-2.0
// Loops over the vectors of a row, for inclusion in files compiled per instruction set.
#if defined(TOSAIC_CPU_ROW_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_ROW_LOOPS_INL_H
#undef TOSAIC_CPU_ROW_LOOPS_INL_H
#else
#define TOSAIC_CPU_ROW_LOOPS_INL_H
#endif
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// `count` elements, at most a vector's; the others are `rest`. Nothing behind them is read, or written.
HWY_INLINE V load(D d, const float* from, std::int64_t count, V rest) {
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
#if HWY_TARGET <= HWY_AVX2
  const auto there = hn::FirstN(d, static_cast<std::size_t>(count));
  return hn::IfThenElse(there, hn::MaskedLoad(there, d, from), rest);
#else
  HWY_ALIGN float all[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(rest, d, all);
  std::memcpy(all, from, static_cast<std::size_t>(count) * sizeof(float));
  return hn::Load(d, all);
#endif
}
HWY_INLINE void store(D d, V v, std::int64_t count, float* to) {
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, to);
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  HWY_ALIGN float all[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, all);
  std::memcpy(to, all, static_cast<std::size_t>(count) * sizeof(float));
#endif
}

// Which of `count` booleans are true; others are not.
HWY_INLINE hn::Mask<D> load_booleans(D d, const std::uint8_t* from, std::int64_t count) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<std::uint8_t, D> bytes;
  HWY_ALIGN std::uint8_t all[HWY_MAX_BYTES / sizeof(float)] = {};
  if (count < static_cast<std::int64_t>(hn::Lanes(d)))
    from = static_cast<const std::uint8_t*>(std::memcpy(all, from, static_cast<std::size_t>(count)));
  return hn::RebindMask(d, hn::Ne(hn::PromoteTo(words, hn::LoadU(bytes, from)), hn::Zero(words)));
}

// f(first, count) for the vectors of a row of `length` elements.
template <class F>
HWY_INLINE void for_vectors(std::int64_t length, const F& f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t i = 0;
  for (; i + lanes <= length; i += lanes) f(i, lanes);
  if (i < length) f(i, length - i);
}

// All f(first, count) joined, beginning with four times `start`: what f gives for elements that are not there counts.
template <class F, class Join>
HWY_INLINE V reduce_vectors(std::int64_t length, V start, const F& f, const Join& join) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  V a = start, b = start, c = start, e = start;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= length; i += 4 * lanes) {
    a = join(a, f(i, lanes));
    b = join(b, f(i + lanes, lanes));
    c = join(c, f(i + 2 * lanes, lanes));
    e = join(e, f(i + 3 * lanes, lanes));
  }
  for (; i + lanes <= length; i += lanes) a = join(a, f(i, lanes));
  if (i < length) b = join(b, f(i, length - i));
  return join(join(a, b), join(c, e));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
