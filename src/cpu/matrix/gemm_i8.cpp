// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/gemm_i8.h"

#include <algorithm>
#include <cstring>

#include "cpu/matrix/tiles.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/gemm_i8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/pairs-inl.h"
#include "cpu/matrix/rescale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

#if HWY_TARGET <= HWY_AVX3
constexpr int max_rows = 12;
#else
constexpr int max_rows = 6;
#endif

// The inner products. A "word" is the 32 bits of A that meet one lane of B in one step: two i16, or four u8.
struct Pairs {
  using Out = std::int8_t;
  static constexpr int group = 2, element_bytes = 2, offset = 0;
  static HWY_INLINE IntVector dot(IntVector acc, IntVector a, IntVector b) { return add_pairs(acc, a, b); }
  static void convert(const std::int8_t* from, std::int64_t count, void* to) {
    auto* out = static_cast<std::int16_t*>(to);
    for (std::int64_t i = 0; i < count; ++i) out[i] = from[i];
  }
};
struct PairsToShorts : Pairs {
  using Out = std::int16_t;
};
#if HWY_TARGET == HWY_AVX3_DL
struct Quads {
  using Out = std::int8_t;
  static constexpr int group = 4, element_bytes = 1, offset = 128;
  static HWY_INLINE IntVector dot(IntVector acc, IntVector a, IntVector b) {
    return IntVector{_mm512_dpbusd_epi32(acc.raw, a.raw, b.raw)};
  }
  static void convert(const std::int8_t* from, std::int64_t count, void* to) {
    auto* out = static_cast<std::uint8_t*>(to);
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(from[i]) ^ 0x80;
  }
};
using Best = Quads;
#else
using Best = Pairs;
#endif

HWY_INLINE IntVector word(const std::byte* a) {
  std::int32_t bits;
  std::memcpy(&bits, a, 4);
  return hn::Set(Ints(), bits);
}

// Few sums wait for each other from step to step: then a step's products go to as many sums of their own as there are
// steps in a round.
template <class Product, int rows, int vectors>
HWY_INLINE void add_products(const GemmI8Call& call, IntVector (&acc)[rows][vectors]) {
  const Ints d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  constexpr int most_chains = 8 / (rows * vectors), chains = most_chains > 4 ? 4 : most_chains > 1 ? most_chains : 1;
  const auto* b = static_cast<const std::int32_t*>(call.b);
  const std::int64_t s = call.a_stride;
  const std::byte *a0, *a4, *a8;  // four rows per base register
  const auto step = [&](IntVector(&sums)[rows][vectors]) HWY_ATTR {
    IntVector bv[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const std::byte* base = r < 4 ? a0 : r < 8 ? a4 : a8;
      const IntVector a = word(base + (r % 4) * s);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[r][v] = Product::dot(sums[r][v], a, bv[v]);
    }
    b += vectors * lanes;
    a0 += 4;
    a4 += 4;
    a8 += 4;
  };
  IntVector others[chains > 1 ? chains - 1 : 1][rows][vectors];
  if constexpr (chains > 1)
    for (auto& other : others)
      for (auto& row : other)
        for (auto& sum : row) sum = hn::Zero(d);
  for (std::int64_t segment = 0; segment < call.segments; ++segment) {
    a0 = static_cast<const std::byte*>(call.a) + segment * call.segment_stride;
    a4 = a0 + 4 * s;
    a8 = a0 + 8 * s;
    std::int64_t left = call.groups;
    for (; chains > 1 && left >= chains; left -= chains) {
      step(acc);
#pragma GCC unroll 3
      for (int c = 0; c < chains - 1; ++c) step(others[c]);
    }
    for (; left > 0; --left) step(acc);
  }
  if constexpr (chains > 1) {
#pragma GCC unroll 3
    for (int c = 0; c < chains - 1; ++c)
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) acc[r][v] = hn::Add(acc[r][v], others[c][r][v]);
  }
}

// A panel that is partly used goes through memory of our own, so that nothing past the row's end is written.
template <int rows, class T>
HWY_INLINE void copy_columns(const GemmI8Call& call, const T* edge, std::int64_t width, T* to) {
  for (int r = 0; r < rows; ++r)
    std::memcpy(to + r * call.c_stride, edge + r * width, static_cast<std::size_t>(call.columns) * sizeof(T));
}

template <int rows, int vectors>
HWY_INLINE void store_sums(const GemmI8Call& call, const IntVector (&acc)[rows][vectors]) {
  const Ints d;
  const int lanes = static_cast<int>(hn::Lanes(d)), width = vectors * lanes;
  HWY_ALIGN std::int32_t edge[rows * vectors * HWY_MAX_BYTES / sizeof(std::int32_t)];
  const bool whole = call.columns == width;
  std::int32_t* c = whole ? call.sums : edge;
  const std::int64_t stride = whole ? call.c_stride : width;
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) hn::StoreU(acc[r][v], d, c + r * stride + v * lanes);
  }
  if (!whole) copy_columns<rows>(call, edge, width, call.sums);
}

template <int rows, int vectors>
HWY_INLINE void rescale_sums(const GemmI8Call& call, IntVector (&acc)[rows][vectors]) {
  const int lanes = static_cast<int>(hn::Lanes(Ints()));
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const RescaleVector rescale(call.multiplier + v * lanes, call.shift + v * lanes, call.round + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) acc[r][v] = rescale(acc[r][v]);
  }
}

template <int rows, int vectors>
HWY_INLINE void store(const GemmI8Call& call, IntVector (&acc)[rows][vectors], std::int8_t* to) {
  const int lanes = static_cast<int>(hn::Lanes(Ints())), width = vectors * lanes;
  HWY_ALIGN std::int8_t edge[rows * vectors * HWY_MAX_BYTES / sizeof(std::int32_t) + HWY_MAX_BYTES];
  const bool whole = call.columns == width;
  std::int8_t* c = whole ? to : edge;
  const std::int64_t stride = whole ? call.c_stride : width;
  rescale_sums(call, acc);
  const QuantisedValues quantised(call.zero_point, call.lowest, call.highest);
  constexpr int at_once = 4 / vectors, whole_rows = rows / at_once * at_once;
#pragma GCC unroll 12
  for (int r = 0; r < whole_rows; r += at_once) {
    if constexpr (vectors == 2)
      quantised.store_pairs({acc[r][0], acc[r][1], acc[r + 1][0], acc[r + 1][1]}, c + r * stride, stride);
    else
      quantised.store_four({acc[r][0], acc[r + 1][0], acc[r + 2][0], acc[r + 3][0]}, c + r * stride, stride);
  }
#pragma GCC unroll 12
  for (int r = whole_rows; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) quantised.store(acc[r][v], c + r * stride + v * lanes);
  }
  if (!whole) copy_columns<rows>(call, edge, width, to);
}

template <int rows, int vectors>
HWY_INLINE void store(const GemmI8Call& call, IntVector (&acc)[rows][vectors], std::int16_t* to) {
  const int lanes = static_cast<int>(hn::Lanes(Ints())), width = vectors * lanes;
  HWY_ALIGN std::int16_t edge[rows * vectors * HWY_MAX_BYTES / sizeof(std::int32_t)];
  const bool whole = call.columns == width;
  std::int16_t* c = whole ? to : edge;
  const std::int64_t stride = whole ? call.c_stride : width;
  rescale_sums(call, acc);
  const ShortValues shorts(call.lowest, call.highest);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    if constexpr (vectors == 2)
      shorts.store_two(acc[r][0], acc[r][1], c + r * stride);
    else
      shorts.store(acc[r][0], c + r * stride);
  }
  if (!whole) copy_columns<rows>(call, edge, width, to);
}

template <class Out>
HWY_INLINE Out* results(const GemmI8Call& call) {
  if constexpr (sizeof(Out) == 1)
    return call.c;
  else
    return call.c_i16;
}

template <class Product, int rows, int vectors>
HWY_NOINLINE void tile(const GemmI8Call& call) {
  const Ints d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  IntVector acc[rows][vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const IntVector term = hn::LoadU(d, call.column_term + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) acc[r][v] = call.row_term ? hn::Add(term, hn::Set(d, call.row_term[r])) : term;
  }
  add_products<Product>(call, acc);
  call.sums ? store_sums(call, acc) : store(call, acc, results<typename Product::Out>(call));
}

template <class Product, int vectors>
void by_rows(const GemmI8Call& call) {
  switch (call.rows) {
    case 1: return tile<Product, 1, vectors>(call);
    case 2: return tile<Product, 2, vectors>(call);
    case 3: return tile<Product, 3, vectors>(call);
    case 4: return tile<Product, 4, vectors>(call);
    case 5: return tile<Product, 5, vectors>(call);
    case 6: return tile<Product, 6, vectors>(call);
#if HWY_TARGET <= HWY_AVX3
    case 7: return tile<Product, 7, vectors>(call);
    case 8: return tile<Product, 8, vectors>(call);
    case 9: return tile<Product, 9, vectors>(call);
    case 10: return tile<Product, 10, vectors>(call);
    case 11: return tile<Product, 11, vectors>(call);
    case 12: return tile<Product, 12, vectors>(call);
#endif
  }
}

template <class Product>
void panel(const GemmI8Call& whole) {
  GemmI8Call call = whole;
  for_even_groups(whole.rows, max_rows, [&](std::int64_t first, std::int64_t count) {
    call.rows = count;
    call.a = static_cast<const std::byte*>(whole.a) + first * whole.a_stride;
    if (whole.row_term) call.row_term = whole.row_term + first;
    if (whole.sums) call.sums = whole.sums + first * whole.c_stride;
    if (whole.c) call.c = whole.c + first * whole.c_stride;
    if (whole.c_i16) call.c_i16 = whole.c_i16 + first * whole.c_stride;
    call.units == 2 ? by_rows<Product, 2>(call) : by_rows<Product, 1>(call);
  });
}
template <class P>
constexpr GemmI8 kernels(int lanes) {
  return {.lanes = lanes,
          .unit_columns = lanes,
          .max_rows = max_rows,
          .least_rows = 1,
          .group = P::group,
          .most_groups = 1,
          .a_bytes = P::element_bytes,
          .b_bytes = P::element_bytes,
          .offset = P::offset,
          .loads_tiles = false,
          .convert = &P::convert,
          .panel = &panel<P>};
}

}  // namespace

const GemmI8& gemm_i8_here() {
  static const GemmI8 here = kernels<Best>(static_cast<int>(hn::Lanes(Ints())));
  return here;
}
const GemmI8& gemm_i16_here() {
  static const GemmI8 here = kernels<PairsToShorts>(static_cast<int>(hn::Lanes(Ints())));
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(gemm_i8_here);
const GemmI8& gemm_i8(std::int64_t rows, std::int64_t k) {
  if (const GemmI8* tiles = gemm_i8_tiles(); tiles && worth_tiles(rows, k)) return *tiles;
  return HWY_DYNAMIC_DISPATCH(gemm_i8_here)();
}
HWY_EXPORT(gemm_i16_here);
const GemmI8& gemm_i16() { return HWY_DYNAMIC_DISPATCH(gemm_i16_here)(); }

PanelsI8 panels_i8(const GemmI8& kernel, std::int64_t n, std::int64_t k) {
  PanelsI8 shape;
  shape.k = k;
  shape.n = n;
  const std::int64_t groups = std::max<std::int64_t>(1, (k + kernel.group - 1) / kernel.group);
  const std::int64_t steps = (groups + kernel.most_groups - 1) / kernel.most_groups;
  // Rows that have to be copied anyway become whole lines of the cache: no row of a tile lies in two.
  shape.groups = k % kernel.group == 0 ? (groups + steps - 1) / steps * steps : steps * kernel.most_groups;
  shape.unit_columns = kernel.unit_columns;
  shape.group = kernel.group;
  shape.b_bytes = kernel.b_bytes;
  shape.offset = kernel.offset;
  return shape;
}

namespace {

// One panel: to[g][j][0..group) = weight(first + j, g * group + ...), zeros where there is none.
template <class T>
void pack_panel(const PanelsI8& shape, const std::int8_t* weight, std::int64_t column_stride, std::int64_t k_stride,
                std::int64_t first, std::int64_t width, T* to) {
  constexpr std::int64_t group = sizeof(T) == 1 ? 4 : 2;
  const std::int64_t columns = std::min(width, shape.n - first), full = shape.k / group;
  if (column_stride == 1) {  // B is row-major: `group` of its rows at a time
    constexpr std::int8_t zeros[PanelsI8::widest] = {};
    for (std::int64_t g = 0; g < shape.groups; ++g, to += width * group) {
      const std::int8_t* rows[group];
      for (std::int64_t e = 0; e < group; ++e)
        rows[e] = g * group + e < shape.k ? weight + (g * group + e) * k_stride + first : zeros;
      for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t e = 0; e < group; ++e) to[j * group + e] = rows[e][j];
      std::fill(to + columns * group, to + width * group, T{0});
    }
    return;
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::int8_t* from = weight + (first + j) * column_stride;
    T* out = to + j * group;
    if (sizeof(T) == 1 && k_stride == 1) {
      for (std::int64_t g = 0; g < full; ++g) std::memcpy(out + g * width * 4, from + g * 4, 4);
    } else {
      for (std::int64_t g = 0; g < full; ++g)
        for (std::int64_t e = 0; e < group; ++e)
          out[g * width * group + e] = static_cast<T>(from[(g * group + e) * k_stride]);
    }
    for (std::int64_t i = full * group; i < shape.groups * group; ++i)
      out[i / group * width * group + i % group] = i < shape.k ? static_cast<T>(from[i * k_stride]) : T{0};
  }
  for (std::int64_t g = 0; g < shape.groups && columns < width; ++g)
    std::fill(to + (g * width + columns) * group, to + (g + 1) * width * group, T{0});
}

}  // namespace

void pack_panels(const PanelsI8& shape, const std::int8_t* weight, std::int64_t column_stride, std::int64_t k_stride,
                 std::byte* data) {
  for (std::int64_t p = 0; p < shape.count(); ++p) {
    const std::int64_t first = p * shape.panel_width(), width = shape.units(p) * shape.unit_columns;
    std::byte* to = data + first * shape.groups * shape.group * shape.b_bytes;
    if (shape.b_bytes == 1)
      pack_panel(shape, weight, column_stride, k_stride, first, width, reinterpret_cast<std::int8_t*>(to));
    else
      pack_panel(shape, weight, column_stride, k_stride, first, width, reinterpret_cast<std::int16_t*>(to));
  }
}

std::vector<std::int32_t> column_sums(const PanelsI8& shape, const std::int8_t* weight, std::int64_t column_stride,
                                      std::int64_t k_stride) {
  std::vector<std::int32_t> sums(static_cast<std::size_t>(shape.n), 0);
  if (k_stride == 1) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < shape.k; ++i) sum += weight[j * column_stride + i];
      sums[static_cast<std::size_t>(j)] = sum;
    }
  } else {
    for (std::int64_t i = 0; i < shape.k; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j)
        sums[static_cast<std::size_t>(j)] += weight[j * column_stride + i * k_stride];
  }
  return sums;
}

void column_terms(const PanelsI8& shape, const std::vector<std::int32_t>& sums, const std::int32_t* bias,
                  std::int64_t bias_count, std::int32_t input_zp, std::int32_t weight_zp, std::int32_t* terms) {
  std::fill(terms, terms + shape.padded(), 0);
  // Unsigned arithmetic: intermediate sums may wrap, the final ones are right modulo 2^32.
  const auto times = [](std::int64_t a, std::int64_t b) { return static_cast<std::uint32_t>(a * b); };
  for (std::int64_t j = 0; j < shape.n; ++j) {
    auto term = static_cast<std::uint32_t>(bias ? bias[bias_count == 1 ? 0 : j] : 0);
    term += times(-(input_zp + shape.offset), sums[static_cast<std::size_t>(j)]);
    term += times(static_cast<std::int64_t>(input_zp) * weight_zp, shape.k);
    terms[j] = static_cast<std::int32_t>(term);
  }
}

std::shared_ptr<const PackedI8> pack_rows(const PanelsI8& shape, const std::int8_t* weight,
                                          PackedOnce<const PackedI8>* once) {
  const auto pack = [&] {
    auto packed = std::make_shared<PackedI8>();
    packed->panels = fresh_lines<std::byte>(shape.packed_bytes());
    pack_panels(shape, weight, shape.k, 1, packed->panels.get());
    packed->sums = column_sums(shape, weight, shape.k, 1);
    return std::shared_ptr<const PackedI8>(std::move(packed));
  };
  return once ? once->at({weight, shape.n, shape.k,
                          ((shape.groups * 64 + shape.unit_columns) * 8 + shape.group) * 4 + shape.b_bytes},
                         pack)
              : pack();
}

RowsI8 rows_i8(const GemmI8& kernel, const PanelsI8& b, const std::int8_t* from, std::int64_t rows, std::byte* memory) {
  if (b.reads_i8(kernel, rows)) return {reinterpret_cast<const std::byte*>(from), b.k};
  const RowsI8 to{memory, b.row_bytes(kernel)};
  if (to.stride == b.k * kernel.a_bytes) {
    kernel.convert(from, rows * b.k, memory);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) kernel.convert(from + r * b.k, b.k, memory + r * to.stride);
  }
  return to;
}

std::size_t rows_i8_bytes(const GemmI8& kernel, const PanelsI8& b, std::int64_t rows) {
  return static_cast<std::size_t>(std::max<std::int64_t>(rows, kernel.least_rows) * b.row_bytes(kernel)) + 64;
}

void multiply(const GemmI8& kernel, const Sharing::Part& part, const RowsI8& a, const std::int32_t* row_terms,
              const PanelsI8& b, const RescaleEpilogue& epilogue, std::byte* c, std::int64_t c_stride) {
  for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) {
    const std::int64_t first_column = p * b.panel_width();
    GemmI8Call call{};
    call.a = a.data;
    call.a_stride = a.stride;
    call.rows = part.rows;
    call.a_steps = a.steps;
    call.line_rows = a.line_rows;
    call.kept_rows = a.kept_rows;
    call.groups = b.groups;
    call.b = b.panel(p);
    call.next_b = p + 1 < part.last_panel ? b.panel(p + 1) : nullptr;
    call.units = b.units(p);
    call.column_term = b.column_term + first_column;
    call.row_term = row_terms;
    call.columns = static_cast<int>(std::min<std::int64_t>(call.units * b.unit_columns, b.n - first_column));
    call.c_stride = c_stride ? c_stride : b.n;
    if (epilogue.rescaled) {
      call.c = reinterpret_cast<std::int8_t*>(c) + first_column;
      call.multiplier = epilogue.scales->multiplier.data() + first_column;
      call.shift = epilogue.scales->shift.data() + first_column;
      call.round = epilogue.scales->round.data() + first_column;
      call.zero_point = epilogue.zero_point;
      call.lowest = epilogue.lowest;
      call.highest = epilogue.highest;
    } else {
      call.sums = reinterpret_cast<std::int32_t*>(c) + first_column;
    }
    kernel.panel(call);
  }
}

void row_terms(const GemmI8& kernel, const RowsI8& a, std::int64_t rows, std::int64_t k, std::int32_t weight_zp,
               std::int32_t* terms) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::byte* row = a.data + r * a.stride;
    std::int32_t sum = 0;
    if (kernel.a_bytes == 2)
      for (std::int64_t i = 0; i < k; ++i) sum += reinterpret_cast<const std::int16_t*>(row)[i];
    else
      for (std::int64_t i = 0; i < k; ++i)
        sum += kernel.offset == 0
                   ? reinterpret_cast<const std::int8_t*>(row)[i]
                   : static_cast<std::int32_t>(reinterpret_cast<const std::uint8_t*>(row)[i]) - kernel.offset;
    terms[r] = -weight_zp * sum;
  }
}

}  // namespace tosaic::cpu
#endif
