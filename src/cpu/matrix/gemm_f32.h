// SPDX-License-Identifier: Apache-2.0
// C = clamp(A x B + bias) in f32. B is packed once into panels of two vectors' width; A and C are row-major with
// any stride. Each element sums its K products in order, starting from the bias: results do not depend on how
// rows and columns are shared out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/lines.h"
#include "cpu/matrix/packed_once.h"
#include "cpu/matrix/sharing.h"

namespace tosaic::cpu {

// What is read soon, and brought to the second-level cache while products are computed: rows of k elements.
struct Ahead {
  const std::byte* from = nullptr;
  std::int64_t rows = 0, pitch = 0, element = 0;  // pitch and size of an element in bytes
  // What is fetched with `count` of `all` rows of products, from `first` on.
  Ahead part(std::int64_t first, std::int64_t count, std::int64_t all) const {
    const std::int64_t begin = rows * first / all, end = rows * (first + count) / all;
    return {from + begin * pitch, end - begin, pitch, element};
  }
};

struct GemmF32Call {
  const float* a;         // [rows][segments][k]
  std::int64_t a_stride;  // elements between rows
  int rows;               // 1..max_rows
  std::int64_t k;
  std::int64_t segments = 1, segment_stride = 0;  // how many that lie so many elements apart make a row
  const float* b;                                 // one panel: [segments * k][width]
  std::int64_t b_stride;                          // elements between its rows
  int width;                                      // of two vectors, one, or the kernel's narrowest
  const float* bias;                              // [width]; null: the sums go on from what c holds
  float lowest, highest;                          // NaN passes through
  float* c;
  std::int64_t c_stride;
  int columns;  // of this panel; the last vector may be partly used
  Ahead ahead = {};
};

struct GemmF32 {
  int lanes;
  int narrowest;  // lanes of the shortest vectors that are worth while: they may take half the time
  int max_rows;
  void (*panel)(const GemmF32Call&);
};
const GemmF32& gemm_f32();  // for the instruction set in use

// How many elements apart rows of A are best where they can be copied: a multiple of 4096 bytes would bring as many as
// a tile has into one set of the first-level cache, which holds eight lines or twelve. `n`: columns that
// each of them meets, which pay for the copy.
inline std::int64_t best_pitch(const GemmF32& kernel, std::int64_t k, std::int64_t n) {
  const bool alike = k > 0 && k % 1024 == 0;
  return alike && kernel.max_rows > 6 && n >= 64 ? k + 16 : k;
}

// B in panels of two vectors' columns, one after the other, each [k][columns]; the last may be narrower.
struct PanelsF32 {
  std::int64_t k = 0, n = 0;
  int lanes = 0, narrowest = 0;  // 0: a panel is whole vectors
  const float* data = nullptr;   // padded columns are 0
  const float* bias = nullptr;   // padded to whole vectors
  bool packed = true;            // false: `data` is B itself, [k][n], of whole vectors
  std::int64_t padded() const { return (n + lanes - 1) / lanes * lanes; }
  std::int64_t panel_width() const { return 2 * lanes; }
  std::int64_t count() const { return (n + panel_width() - 1) / panel_width(); }
  int width(std::int64_t panel) const {
    const std::int64_t columns = n - panel * panel_width();
    return columns > lanes ? 2 * lanes : columns > narrowest ? lanes : narrowest;
  }
  const float* panel(std::int64_t p) const { return data + p * panel_width() * (packed ? k : 1); }
};
struct PackedF32 : PanelsF32 {
  std::shared_ptr<float[]> storage;
  Lines<float> bias_storage;
};
// Rows of A, `stride` elements apart. Where a row is several stretches, all as long: how far from it each begins.
struct RowsF32 {
  const float* data;
  std::int64_t stride;
  std::span<const std::int64_t> starts = {};
};
// Rows and panels of `part` of C = clamp(A x B + bias). a and c point at the part's first row. `c_stride`: elements
// from row to row of C; 0: it has B's columns alone.
void multiply(const GemmF32& kernel, const Sharing& sharing, const Sharing::Part& part, const RowsF32& a,
              const PanelsF32& b, float lowest, float highest, float* c, std::int64_t c_stride = 0);

// weight is [n][k] row-major, as conv weights are; one bias serves all columns when bias_count is 1. `once`: where
// `weight` may have been packed before; null: it is no memory that lasts.
void pack_rows(const float* weight, std::int64_t n, std::int64_t k, const float* bias, std::int64_t bias_count,
               PackedF32& packed, PackedOnce<float[]>* once);
// Panel p of b, [k][n] row-major as in MATMUL, or [n][k], into `into` (where panels.panel(p) shall be).
void pack_columns(const PanelsF32& panels, std::int64_t p, const float* b, float* into);
void pack_panel_of_rows(const PanelsF32& panels, std::int64_t p, const float* b, float* into);

}  // namespace tosaic::cpu
