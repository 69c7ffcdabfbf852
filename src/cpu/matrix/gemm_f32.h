// SPDX-License-Identifier: Apache-2.0
// C = clamp(A x B + bias) in f32. B is packed once into panels of two vectors' width; A and C are row-major with
// any stride. Each element sums its K products in order, starting from the bias: results do not depend on how
// rows and columns are shared out.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/lines.h"
#include "cpu/matrix/packed_once.h"
#include "cpu/matrix/sharing.h"

namespace tosaic::cpu {

struct GemmF32Call {
  const float* a;         // [rows][k]
  std::int64_t a_stride;  // elements between rows
  int rows;               // 1..max_rows
  std::int64_t k;
  const float* b;         // one panel: [k][vectors * lanes]
  std::int64_t b_stride;  // elements between its rows
  int vectors;            // 1 or 2
  const float* bias;      // [vectors * lanes]; null: the sums go on from what c holds
  float lowest, highest;  // NaN passes through
  float* c;
  std::int64_t c_stride;
  int columns;  // of this panel; the last vector may be partly used
};

struct GemmF32 {
  int lanes;
  int max_rows;
  void (*panel)(const GemmF32Call&);
};
const GemmF32& gemm_f32();  // for the instruction set in use

// B in panels of two vectors' columns, one after the other, each [k][columns]; the last may be one vector wide.
struct PanelsF32 {
  std::int64_t k = 0, n = 0;
  int lanes = 0;
  const float* data = nullptr;  // padded columns are 0
  const float* bias = nullptr;  // padded to whole vectors
  bool packed = true;           // false: `data` is B itself, [k][n], of whole vectors
  std::int64_t padded() const { return (n + lanes - 1) / lanes * lanes; }
  std::int64_t panel_width() const { return 2 * lanes; }
  std::int64_t count() const { return (n + panel_width() - 1) / panel_width(); }
  int vectors(std::int64_t panel) const { return (panel + 1) * panel_width() <= padded() ? 2 : 1; }
  const float* panel(std::int64_t p) const { return data + p * panel_width() * (packed ? k : 1); }
};
struct PackedF32 : PanelsF32 {
  std::shared_ptr<float[]> storage;
  Lines<float> bias_storage;
};
// Rows and panels of `part` of C = clamp(A x B + bias). a and c point at the part's first row.
void multiply(const GemmF32& kernel, const Sharing& sharing, const Sharing::Part& part, const float* a,
              std::int64_t a_stride, const PanelsF32& b, float lowest, float highest, float* c);

// weight is [n][k] row-major, as conv weights are; one bias serves all columns when bias_count is 1. `once`: where
// `weight` may have been packed before; null: it is no memory that lasts.
void pack_rows(const float* weight, std::int64_t n, std::int64_t k, const float* bias, std::int64_t bias_count,
               PackedF32& packed, PackedOnce<float[]>* once);
// Panel p of b, [k][n] row-major as in MATMUL, or [n][k], into `into` (where panels.panel(p) shall be).
void pack_columns(const PanelsF32& panels, std::int64_t p, const float* b, float* into);
void pack_panel_of_rows(const PanelsF32& panels, std::int64_t p, const float* b, float* into);

}  // namespace tosaic::cpu
