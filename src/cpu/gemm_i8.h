// SPDX-License-Identifier: Apache-2.0
// C = A x B in i8 with i32 sums, then either the sums themselves or their RESCALE and CLAMP as i8.
//
// Zero points never reach the inner loop. With x the stored input, w the stored weight, o the offset that A's
// form adds to x (VNNI multiplies u8 by i8, so A holds x + 128):
//   sum (x - zx)(w - zw) = sum (x + o) w  - (zx + o) sum w  - zw sum x + K zx zw
// The second and fourth terms are constants of the column, the third one of the row.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/rescale.h"

namespace tosaic::cpu {

struct GemmI8Call {
  const void* a;           // [rows], in the form that `convert` writes
  std::int64_t a_stride;   // bytes between rows
  int rows;                // 1..max_rows
  std::int64_t groups;     // of `group` products each
  const void* b;           // one panel: [groups][vectors * lanes][group]
  int vectors;             // 1 or 2
  const std::int32_t* column_term;  // [vectors * lanes]
  const std::int32_t* row_term;     // [rows], or null
  int columns;             // of this panel
  std::int64_t c_stride;   // elements
  std::int32_t* sums;      // where the sums go, or null: rescale
  std::int8_t* c;
  const std::int32_t* multiplier;          // see RescaleColumns
  const std::int64_t *shift, *round;
  std::int32_t zero_point, lowest, highest;  // of the output; lowest and highest are codes
};

struct GemmI8 {
  int lanes;
  int max_rows;
  int group;                     // products per lane and step
  int a_bytes, b_bytes;          // of one element in A's and B's own form
  std::int32_t offset;           // what A's form adds
  void (*convert)(const std::int8_t* from, std::int64_t count, void* to);
  void (*panel)(const GemmI8Call&);
};
const GemmI8& gemm_i8();

struct PackedI8 {
  std::int64_t k = 0, n = 0;
  int lanes = 0, group = 0, b_bytes = 0;
  std::vector<std::byte> data;
  std::vector<std::int32_t> column_term;  // padded to whole vectors
  std::int64_t groups() const { return (k + group - 1) / group; }
  std::int64_t padded() const { return (n + lanes - 1) / lanes * lanes; }
  std::int64_t panel_width() const { return 2 * lanes; }
  std::int64_t panels() const { return (n + panel_width() - 1) / panel_width(); }
  int vectors(std::int64_t panel) const { return (panel + 1) * panel_width() <= padded() ? 2 : 1; }
  const std::byte* panel(std::int64_t p) const { return data.data() + p * panel_width() * groups() * group * b_bytes; }
  std::size_t packed_bytes() const {
    return static_cast<std::size_t>(padded() * groups() * group * b_bytes);
  }
};
PackedI8 packed_shape(std::int64_t n, std::int64_t k);
// Fills `data` (packed_bytes long) and `column_term` (padded long) of B. Element (j, i), column j and product i,
// is at weight[j * column_stride + i * k_stride]. The zero points are those of x and w.
void pack_i8(const PackedI8& shape, const std::int8_t* weight, std::int64_t column_stride, std::int64_t k_stride,
             const std::int32_t* bias, std::int64_t bias_count, std::int32_t input_zp, std::int32_t weight_zp,
             std::byte* data, std::int32_t* column_term);

}  // namespace tosaic::cpu
