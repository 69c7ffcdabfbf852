// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/gemm_f32.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "base/parallel.h"
#include "cpu/matrix/tiles.h"
#include "simd/dispatch.h"
#include "simd/prefetch.h"
#include "simd/transpose.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/gemm_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using Narrow = hn::CappedTag<float, 8>;  // processors that have longer vectors may do two of these at once

// Rows x vectors accumulators stay in registers: 24 of 32 with AVX-512, 12 of 16 elsewhere.
#if HWY_TARGET <= HWY_AVX3
constexpr int max_rows = 12;
#else
constexpr int max_rows = 6;
#endif

constexpr std::int64_t floats_of_line = 16;

template <class D, int rows, int vectors>
HWY_NOINLINE void tile(const GemmF32Call& call) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  using V = hn::Vec<D>;
  // A panel that is partly used goes through memory of our own, so that nothing past the row's end is touched.
  const int width = vectors * static_cast<int>(lanes);
  const bool whole = call.columns == width;
  HWY_ALIGN float edge[rows * vectors * HWY_MAX_BYTES / sizeof(float)];
  float* c = whole ? call.c : edge;
  const std::int64_t c_stride = whole ? call.c_stride : width;
  const auto used = static_cast<std::size_t>(call.columns) * sizeof(float);
  if (!call.bias && !whole)
    for (int r = 0; r < rows; ++r) std::memcpy(edge + r * width, call.c + r * call.c_stride, used);
  V acc[rows][vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t at = v * static_cast<std::int64_t>(lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) acc[r][v] = hn::LoadU(d, call.bias ? call.bias + at : c + r * c_stride + at);
  }
  const float* b = call.b;
  // Four rows per base register: x86 addresses base, base+s, base+2s, base+3s without further registers.
  const std::int64_t s = call.a_stride;
  const std::int64_t at_once = call.ahead.rows > 0 ? floats_of_line : call.k;
  for (std::int64_t segment = 0; segment < call.segments; ++segment) {
    const float* a0 = call.a + segment * call.segment_stride;
    const float* a4 = a0 + 4 * s;
    const float* a8 = a0 + 8 * s;
    for (std::int64_t first = 0; first < call.k; first += at_once) {
      for (std::int64_t r = 0; r < call.ahead.rows; ++r)
        simd::prefetch(call.ahead.from + r * call.ahead.pitch + (segment * call.k + first) * call.ahead.element);
      for (std::int64_t k = std::min(at_once, call.k - first); k > 0; --k) {
        V bv[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) bv[v] = hn::LoadU(d, b + static_cast<std::size_t>(v) * lanes);
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const float* base = r < 4 ? a0 : r < 8 ? a4 : a8;
          const V a = hn::Set(d, base[(r % 4) * s]);
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) acc[r][v] = hn::MulAdd(a, bv[v], acc[r][v]);
        }
        b += call.b_stride;
        ++a0;
        ++a4;
        ++a8;
      }
    }
  }
  const V lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      // A NaN passes: it is on no side of a bound.
      V x = acc[r][v];
      x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
      x = hn::IfThenElse(hn::Gt(x, highest), highest, x);
      hn::StoreU(x, d, c + r * c_stride + v * static_cast<int>(lanes));
    }
  }
  if (whole) return;
  for (int r = 0; r < rows; ++r) std::memcpy(call.c + r * call.c_stride, edge + r * width, used);
}

template <class D, int vectors>
void by_rows(const GemmF32Call& call) {
  switch (call.rows) {
    case 1: return tile<D, 1, vectors>(call);
    case 2: return tile<D, 2, vectors>(call);
    case 3: return tile<D, 3, vectors>(call);
    case 4: return tile<D, 4, vectors>(call);
    case 5: return tile<D, 5, vectors>(call);
    case 6: return tile<D, 6, vectors>(call);
#if HWY_TARGET <= HWY_AVX3
    case 7: return tile<D, 7, vectors>(call);
    case 8: return tile<D, 8, vectors>(call);
    case 9: return tile<D, 9, vectors>(call);
    case 10: return tile<D, 10, vectors>(call);
    case 11: return tile<D, 11, vectors>(call);
    case 12: return tile<D, 12, vectors>(call);
#endif
  }
}

void panel(const GemmF32Call& call) {
  const int lanes = static_cast<int>(hn::Lanes(Floats()));
  call.width > lanes    ? by_rows<Floats, 2>(call)
  : call.width == lanes ? by_rows<Floats, 1>(call)
                        : by_rows<Narrow, 1>(call);
}

}  // namespace

const GemmF32& gemm_f32_here() {
  static const GemmF32 here{static_cast<int>(hn::Lanes(Floats())), static_cast<int>(hn::Lanes(Narrow())), max_rows,
                            &panel};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(gemm_f32_here);
const GemmF32& gemm_f32() { return HWY_DYNAMIC_DISPATCH(gemm_f32_here)(); }

void pack_rows(const float* weight, std::int64_t n, std::int64_t k, const float* bias, std::int64_t bias_count,
               PackedF32& packed, PackedOnce<float[]>* once) {
  packed.k = k;
  packed.n = n;
  packed.lanes = gemm_f32().lanes;
  packed.narrowest = gemm_f32().narrowest;
  packed.bias_storage.resize(static_cast<std::size_t>(packed.padded()));
  for (std::int64_t j = 0; j < n; ++j) packed.bias_storage[static_cast<std::size_t>(j)] = bias[bias_count == 1 ? 0 : j];
  packed.bias = packed.bias_storage.data();
  const auto pack = [&] {
    packed.storage = fresh_lines<float>(static_cast<std::size_t>(packed.padded() * k));
    in_parallel(static_cast<std::size_t>(packed.count()),
                static_cast<std::size_t>((1 << 17) / (packed.panel_width() * k) + 1),
                [&](std::size_t first_panel, std::size_t last_panel) {
                  for (std::size_t p = first_panel; p < last_panel; ++p)
                    pack_panel_of_rows(packed, static_cast<std::int64_t>(p), weight,
                                       packed.storage.get() + static_cast<std::int64_t>(p) * packed.panel_width() * k);
                });
    return packed.storage;
  };
  packed.storage = once ? once->at({weight, n, k, packed.lanes}, pack) : pack();
  packed.data = packed.storage.get();
}

void pack_panel_of_rows(const PanelsF32& panels, std::int64_t p, const float* b, float* into) {
  const std::int64_t width = panels.width(p), first = p * panels.panel_width();
  const std::int64_t columns = std::min(width, panels.n - first);
  simd::transpose_words(reinterpret_cast<const std::uint32_t*>(b + first * panels.k), panels.k,
                        reinterpret_cast<std::uint32_t*>(into), width, columns, panels.k);
  if (columns < width)
    for (std::int64_t i = 0; i < panels.k; ++i) std::fill(into + i * width + columns, into + (i + 1) * width, 0.0f);
}

void pack_columns(const PanelsF32& panels, std::int64_t p, const float* b, float* into) {
  const std::int64_t width = panels.width(p), first = p * panels.panel_width();
  const std::int64_t columns = std::min(width, panels.n - first);
  for (std::int64_t i = 0; i < panels.k; ++i) {
    std::memcpy(into, b + i * panels.n + first, static_cast<std::size_t>(columns) * sizeof(float));
    std::fill(into + columns, into + width, 0.0f);
    into += width;
  }
}

namespace {

// Products of a sum that one call of the kernel adds: of so many stretches of a row, each `k` long and `step` elements
// from the one before. They begin with product `begin` of the sum.
struct Piece {
  std::int64_t begin, k, start;
  std::int64_t segments = 1, step = 0;
};

// Of the products of a stretch, so many at once that a panel's part stays in the first-level cache for all rows. What
// they come to waits in C. On AMD's processors panels come from the second-level cache as fast as they are used.
std::int64_t products_at_once(std::int64_t k, std::int64_t of_sum, std::int64_t tiles_of_rows) {
  static const bool parts = tile_instructions_allowed();
  constexpr std::int64_t part = 256, worth_parts = 512, few_tiles = 2, line = 16;
  if (!parts || of_sum <= worth_parts || tiles_of_rows <= few_tiles) return std::max<std::int64_t>(k, 1);
  const std::int64_t count = (k + part - 1) / part;
  return ((k + count - 1) / count + line - 1) / line * line;
}

bool equally_far_apart(std::span<const std::int64_t> starts) {
  for (std::size_t i = 2; i < starts.size(); ++i)
    if (starts[i] - starts[i - 1] != starts[1] - starts[0]) return false;
  return true;
}

template <class F>
void for_pieces(std::span<const std::int64_t> starts, std::int64_t k, std::int64_t tiles_of_rows, const F& f) {
  const std::int64_t segments = std::max<std::int64_t>(1, std::ssize(starts)), of_segment = k / segments,
                     at_once = products_at_once(of_segment, k, tiles_of_rows);
  if (at_once >= of_segment && equally_far_apart(starts))
    return f(Piece{0, of_segment, starts.empty() ? 0 : starts[0], segments, segments > 1 ? starts[1] - starts[0] : 0});
  for (std::int64_t s = 0; s < segments; ++s)
    for (std::int64_t begin = 0; begin < of_segment; begin += at_once)
      f(Piece{s * of_segment + begin, std::min(at_once, of_segment - begin),
              (starts.empty() ? 0 : starts[static_cast<std::size_t>(s)]) + begin});
}

}  // namespace

void multiply(const GemmF32& kernel, const Sharing& sharing, const Sharing::Part& part, const RowsF32& a,
              const PanelsF32& b, float lowest, float highest, float* c, std::int64_t c_stride) {
  for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) {
    const std::int64_t first_column = p * b.panel_width();
    GemmF32Call call{};
    call.a_stride = a.stride;
    call.width = b.width(p);
    call.b_stride = b.packed ? call.width : b.n;
    call.c_stride = c_stride ? c_stride : b.n;
    call.columns = static_cast<int>(std::min<std::int64_t>(call.width, b.n - first_column));
    Ahead ahead;
    if (b.packed && p + 1 < part.last_panel)
      ahead = {reinterpret_cast<const std::byte*>(b.panel(p + 1)), b.width(p + 1), b.k * 4, 4};
    for_pieces(a.starts, b.k, part.rows / kernel.max_rows, [&](const Piece& piece) {
      const bool last = piece.begin + piece.segments * piece.k >= b.k;
      call.k = piece.k;
      call.segments = piece.segments;
      call.segment_stride = piece.step;
      call.b = b.panel(p) + piece.begin * call.b_stride;
      call.bias = piece.begin == 0 ? b.bias + first_column : nullptr;
      call.lowest = last ? lowest : -std::numeric_limits<float>::infinity();
      call.highest = last ? highest : std::numeric_limits<float>::infinity();
      Ahead near = ahead;
      near.from += piece.begin * near.element;
      sharing.for_groups(part.rows, [&](std::int64_t first, std::int64_t count) {
        call.a = a.data + first * a.stride + piece.start;
        call.rows = static_cast<int>(count);
        call.c = c + first * call.c_stride + first_column;
        call.ahead = near.part(first, count, part.rows);
        kernel.panel(call);
      });
    });
  }
}

}  // namespace tosaic::cpu
#endif
