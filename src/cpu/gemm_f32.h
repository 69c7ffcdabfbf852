// SPDX-License-Identifier: Apache-2.0
// C = clamp(A x B + bias) in f32. B is packed once into panels of two vectors' width; A and C are row-major with
// any stride. Each element sums its K products in order, starting from the bias: results do not depend on how
// rows and columns are shared out.
#pragma once
#include <cstdint>
#include <vector>

namespace tosaic::cpu {

struct GemmF32Call {
  const float* a;         // [rows][k]
  std::int64_t a_stride;  // elements between rows
  int rows;               // 1..max_rows
  std::int64_t k;
  const float* b;         // one panel: [k][vectors * lanes]
  int vectors;            // 1 or 2
  const float* bias;      // [vectors * lanes]
  float lowest, highest;  // NaN passes through
  float* c;
  std::int64_t c_stride;
  int columns;            // of this panel; the last vector may be partly used
};

struct GemmF32 {
  int lanes;
  int max_rows;
  void (*panel)(const GemmF32Call&);
};
const GemmF32& gemm_f32();  // for the instruction set in use

// B in panels. Column j of row k is at(k, j); panels follow each other.
struct PackedF32 {
  std::int64_t k = 0, n = 0;
  int lanes = 0;
  std::vector<float> data;  // padded columns are 0
  std::vector<float> bias;  // padded to whole vectors
  std::int64_t padded() const { return (n + lanes - 1) / lanes * lanes; }
  std::int64_t panel_width() const { return 2 * lanes; }
  std::int64_t panels() const { return (n + panel_width() - 1) / panel_width(); }
  int vectors(std::int64_t panel) const { return (panel + 1) * panel_width() <= padded() ? 2 : 1; }
  const float* panel(std::int64_t p) const { return data.data() + p * panel_width() * k; }
};
// weight is [n][k] row-major, as conv weights are; one bias serves all columns when bias_count is 1.
PackedF32 pack_rows(const float* weight, std::int64_t n, std::int64_t k, const float* bias, std::int64_t bias_count);
// b is [k][n] row-major, as in MATMUL. `into` is padded() * k floats.
void pack_columns(const float* b, std::int64_t k, std::int64_t n, int lanes, float* into);

}  // namespace tosaic::cpu
