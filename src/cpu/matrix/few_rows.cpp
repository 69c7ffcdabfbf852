// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/few_rows.h"

#include <algorithm>
#include <limits>

#include "cpu/matrix/rows_kernel.h"
#include "simd/dispatch.h"
#include "simd/prefetch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/few_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef TOSAIC_CPU_STRAIGHT_CALL
#define TOSAIC_CPU_STRAIGHT_CALL
namespace tosaic::cpu {

// Products of some of k, added to what c holds or, at first, to `bias`.
struct StraightCall {
  const float* a;  // [rows], a_stride elements apart
  std::int64_t a_stride, k;
  int rows, vectors;  // 1..max_rows; 1 or most_vectors
  const float* b;     // [k], b_stride elements apart
  std::int64_t b_stride;
  std::int64_t ahead;  // elements behind those that are read, what is fetched with them
  const float* bias;   // null: sums go on
  float lowest, highest;
  float* c;
  std::int64_t c_stride;
};
struct StraightKernel {
  static constexpr int most_vectors = 4;
  int lanes, max_rows;
  void (*add)(const StraightCall&);
};

}  // namespace tosaic::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;

// Rows x 4 sums stay in registers: 24 of 32 with AVX-512, 8 of 16 elsewhere.
#if HWY_TARGET <= HWY_AVX3
constexpr int max_rows = 6;
#else
constexpr int max_rows = 2;
#endif

template <int rows, int vectors>
HWY_NOINLINE void tile(const StraightCall& call) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  FloatVector sums[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = hn::LoadU(d, (call.bias ? call.bias : call.c + r * call.c_stride) + v * lanes);
  const float* b = call.b;
  for (std::int64_t k = 0; k < call.k; ++k, b += call.b_stride) {
    FloatVector row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      row[v] = hn::LoadU(d, b + v * lanes);
      if (v * lanes % 16 == 0) simd::prefetch(b + v * lanes + call.ahead);  // once for each line
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const FloatVector a = hn::Set(d, call.a[r * call.a_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(a, row[v], sums[r][v]);
    }
  }
  const FloatVector lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      FloatVector x = sums[r][v];  // a NaN passes: it is on no side of a bound
      x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
      x = hn::IfThenElse(hn::Gt(x, highest), highest, x);
      hn::StoreU(x, d, call.c + r * call.c_stride + v * lanes);
    }
}

template <int rows>
void by_rows(const StraightCall& call) {
  if constexpr (rows > max_rows) {
    return;
  } else {
    if (call.rows != rows) return by_rows<rows + 1>(call);
    call.vectors == 1 ? tile<rows, 1>(call) : tile<rows, StraightKernel::most_vectors>(call);
  }
}

}  // namespace

const StraightKernel& straight_kernel_here() {
  static const StraightKernel here{static_cast<int>(hn::Lanes(Floats())), max_rows, &by_rows<1>};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(straight_kernel_here);

namespace {

const StraightKernel& straight_kernel() { return HWY_DYNAMIC_DISPATCH(straight_kernel_here)(); }

// Processors that see a stream follow it to the end of a page only: so much further on is asked for.
constexpr std::int64_t bytes_ahead = 4096;
// Of k in a block of [k][n], whose columns are more than the kernel takes: so it is read from front to back.
constexpr std::int64_t block_of_k = 64;

struct Columns {
  std::int64_t first, end;
};
Columns columns_of(const FewRows& few) {
  const std::int64_t width = few.panels.panel_width();
  return {few.part.first_panel * width, std::min(few.panels.n, few.part.last_panel * width)};
}

}  // namespace

bool takes_few_rows(const MatmulShape& shape) {
  const std::int64_t max_rows = shape.turned ? rows_kernel().max_rows : straight_kernel().max_rows;
  // A rest of k takes as long as some vectors.
  return shape.h <= max_rows && (shape.turned ? shape.c : shape.w) % straight_kernel().lanes == 0;
}

void multiply_turned(const FewRows& few) {
  constexpr std::int64_t at_once = RowsKernel::columns_at_once;
  const RowsKernel& kernel = rows_kernel();
  const std::int64_t k = few.panels.k, n = few.panels.n;
  RowsCall call{};
  call.a_stride = call.k = k;
  call.bias = few.panels.bias;
  call.lowest = few.lowest;
  call.highest = few.highest;
  call.c_stride = n;
  const auto [first, end] = columns_of(few);
  for (std::int64_t column = first; column < end; column += at_once) {
    call.weight = reinterpret_cast<const std::byte*>(few.b + column * k);
    call.columns = static_cast<int>(std::min(at_once, end - column));
    for_even_groups(few.part.rows, kernel.max_rows, [&](std::int64_t row, std::int64_t count) {
      call.rows = static_cast<int>(count);
      call.a = few.a + row * k;
      call.c = few.c + row * n + column;
      // A kernel that fetches sums a row alone in an order of its own: that of a product of one row, and of no others.
      call.ahead = row == 0 && (count > 1 || few.rows == 1) ? bytes_ahead : 0;
      kernel.f32(call);
    });
  }
}

void multiply_straight(const FewRows& few) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const StraightKernel& kernel = straight_kernel();
  const std::int64_t all = few.panels.k, n = few.panels.n;
  StraightCall call{};
  call.a_stride = all;
  call.rows = static_cast<int>(few.part.rows);
  call.b_stride = call.c_stride = n;
  call.ahead = (bytes_ahead / 4 + n - 1) / n * n;
  const auto [first, end] = columns_of(few);
  const std::int64_t block = end - first > kernel.most_vectors * kernel.lanes ? block_of_k : all;
  for (std::int64_t k = 0; k < all; k += block) {
    call.k = std::min(block, all - k);
    const bool last = k + call.k == all;
    call.lowest = last ? few.lowest : -infinity;
    call.highest = last ? few.highest : infinity;
    for (std::int64_t column = first; column < end; column += call.vectors * kernel.lanes) {
      const std::int64_t vectors = (end - column) / kernel.lanes;
      call.vectors = vectors >= kernel.most_vectors ? kernel.most_vectors : 1;
      call.b = few.b + k * n + column;
      call.bias = k == 0 ? few.panels.bias + column : nullptr;
      call.a = few.a + k;
      call.c = few.c + column;
      kernel.add(call);
    }
  }
}

}  // namespace tosaic::cpu
#endif
