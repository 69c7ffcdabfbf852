// SPDX-License-Identifier: Apache-2.0
#include "cpu/elementwise/reduce_rows.h"

#include "ir/tosa_operators.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/reduce_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

struct Total {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Highest {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Max(a, b);
  }
};
struct Lowest {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Min(a, b);
  }
};

// All lanes as one.
template <class Join, class D>
HWY_INLINE hn::TFromD<D> join_lanes(D, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return join_lanes<Join>(half, Join::of(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}

template <class Join, class T>
void reduce_rows(const void* in, std::int64_t rows, std::int64_t length, void* out) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (std::int64_t r = 0; r < rows; ++r, from += length, ++to) {
    std::int64_t i = 1;
    auto result = hn::Set(one, from[0]);
    if (length >= lanes) {
      auto all = hn::LoadU(d, from);
      for (i = lanes; i + lanes <= length; i += lanes) all = Join::of(all, hn::LoadU(d, from + i));
      result = hn::Set(one, join_lanes<Join>(d, all));
    }
    for (; i < length; ++i) result = Join::of(result, hn::Set(one, from[i]));
    hn::StoreU(result, one, to);
  }
}

template <class Join>
RowsReducer of_any_width(DType type) {
  switch (type) {
    case DType::i8: return reduce_rows<Join, std::int8_t>;
    case DType::i16: return reduce_rows<Join, std::int16_t>;
    case DType::i32: return reduce_rows<Join, std::int32_t>;
    default: return nullptr;
  }
}

}  // namespace

RowsReducer rows_reducer_here(Operator op, DType type) {
  if (op == tosa::op::reduce_sum && type == DType::i32) return reduce_rows<Total, std::int32_t>;
  if (op == tosa::op::reduce_max) return of_any_width<Highest>(type);
  if (op == tosa::op::reduce_min) return of_any_width<Lowest>(type);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(rows_reducer_here);
RowsReducer rows_reducer(Operator op, DType type) { return HWY_DYNAMIC_DISPATCH(rows_reducer_here)(op, type); }
}  // namespace tosaic::cpu
#endif
