// SPDX-License-Identifier: Apache-2.0
// C = A x B in i8 with i32 sums, then either the sums themselves or their RESCALE and CLAMP as i8. The same of A in
// i16, with results in i16.
//
// Zero points never reach the inner loop. With x the stored input, w the stored weight, o the offset that A's
// form adds to x (VNNI multiplies u8 by i8, so A holds x + 128; tiles multiply i8 by i8):
//   sum (x - zx)(w - zw) = sum (x + o) w  - (zx + o) sum w  - zw sum x + K zx zw
// The second and fourth terms are constants of the column, the third one of the row.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/lines.h"
#include "cpu/matrix/packed_once.h"
#include "cpu/matrix/rescale.h"
#include "cpu/matrix/sharing.h"

namespace tosaic::cpu {

struct GemmI8Call {
  const void* a;          // [rows], in the form that `convert` writes
  std::int64_t a_stride;  // bytes between rows
  std::int64_t rows;
  // Of tiles alone. Where the products of each step begin in a row, in bytes; null: one step's after the other's. And
  // rows that come in lines of `line_rows`, of which C has the first `kept_rows`; 0: C has all.
  const std::int64_t* a_steps;
  std::int64_t line_rows, kept_rows;
  std::int64_t groups;  // of `group` products each
  // How many that lie so many bytes apart make a row; b has all of them. Not of tiles.
  std::int64_t segments = 1, segment_stride = 0;
  const void* b;                    // one panel: [groups][units * unit_columns][group]
  const void* next_b;               // the panel after it, or null
  int units;                        // 1 or 2
  const std::int32_t* column_term;  // [units * unit_columns]
  const std::int32_t* row_term;     // [rows], or null
  int columns;                      // of this panel
  std::int64_t c_stride;            // elements
  std::int32_t* sums;               // where the sums go, or null: rescale
  std::int8_t* c;
  std::int16_t* c_i16;                             // in place of c, of the kernel for i16; its output zero point is 0
  const std::int32_t *multiplier, *shift, *round;  // see RescaleColumns
  std::int32_t zero_point, lowest, highest;        // of the output; lowest and highest are quantised values
};

struct GemmI8 {
  int lanes;             // of a vector
  int unit_columns;      // a vector's lanes, or a tile's columns: B is padded to whole units
  int max_rows;          // work is shared out by so many rows; `panel` takes any number
  int least_rows;        // A's memory has them even where fewer are computed
  int group;             // products per lane and step
  int most_groups;       // in a step
  int a_bytes, b_bytes;  // of one element in A's and B's own form
  std::int32_t offset;   // what A's form adds
  bool loads_tiles;      // of A: also of i8 where it lies; faster with rows an odd number of cache lines apart
  void (*convert)(const std::int8_t* from, std::int64_t count, void* to);
  void (*panel)(const GemmI8Call&);
};
// The kernel for A of so many rows of k elements.
const GemmI8& gemm_i8(std::int64_t rows, std::int64_t k);
// The kernel for i16 inputs, which are A's own form (group 2). Sums are i32: the caller keeps K short enough.
const GemmI8& gemm_i16();

struct PanelsI8 {
  std::int64_t k = 0, n = 0;
  std::int64_t groups = 0;  // padded to whole steps, all of which have the same number
  int unit_columns = 0, group = 0, b_bytes = 0;
  std::int32_t offset = 0;
  const std::byte* data = nullptr;
  const std::int32_t* column_term = nullptr;  // padded to whole vectors
  std::int64_t padded() const { return (n + unit_columns - 1) / unit_columns * unit_columns; }
  std::int64_t panel_width() const { return 2 * unit_columns; }
  static constexpr std::int64_t widest = 32;  // panel_width of tiles and of vectors of 64 bytes
  // Of a row of A in memory of our own.
  std::int64_t row_bytes(const GemmI8& kernel) const {
    const std::int64_t bytes = groups * group * kernel.a_bytes, line = static_cast<std::int64_t>(line_bytes);
    return kernel.loads_tiles ? (bytes + line - 1) / line / 2 * 2 * line + line : bytes;
  }
  // A's rows can be read where they are, as i8 next to each other.
  bool reads_i8(const GemmI8& kernel, std::int64_t rows) const {
    return kernel.loads_tiles && k == groups * group && rows >= kernel.least_rows && count() < panels_worth_a_copy;
  }
  static constexpr std::int64_t panels_worth_a_copy = 4;
  std::int64_t count() const { return (n + panel_width() - 1) / panel_width(); }
  int units(std::int64_t panel) const { return (panel + 1) * panel_width() <= padded() ? 2 : 1; }
  const std::byte* panel(std::int64_t p) const { return data + p * panel_width() * groups * group * b_bytes; }
  std::size_t packed_bytes() const { return static_cast<std::size_t>(padded() * groups * group * b_bytes); }
};
PanelsI8 panels_i8(const GemmI8& kernel, std::int64_t n, std::int64_t k);

// What happens to the sums: left as i32, or rescaled.
struct RescaleEpilogue {
  bool rescaled = false;
  const RescaleColumns* scales = nullptr;
  std::int32_t zero_point = 0, lowest = 0, highest = 0;
};
// Rows of A in the kernel's form.
struct RowsI8 {
  const std::byte* data;
  std::int64_t stride;                        // bytes
  const std::int64_t* steps = nullptr;        // as of GemmI8Call,
  std::int64_t line_rows = 0, kept_rows = 0;  // likewise
};
// `rows` rows of k elements next to each other: where they are, or what they are converted to in `memory`.
RowsI8 rows_i8(const GemmI8& kernel, const PanelsI8& b, const std::int8_t* from, std::int64_t rows, std::byte* memory);
// The bytes of `memory` that so many rows need at most.
std::size_t rows_i8_bytes(const GemmI8& kernel, const PanelsI8& b, std::int64_t rows);
// Rows and panels of `part`. a and c are the part's rows; row_terms is null or has one entry per row. `c_stride`:
// elements from row to row of C; 0: it has B's columns alone.
void multiply(const GemmI8& kernel, const Sharing::Part& part, const RowsI8& a, const std::int32_t* row_terms,
              const PanelsI8& b, const RescaleEpilogue& epilogue, std::byte* c, std::int64_t c_stride = 0);
// -weight_zp times the sum of each row, for B with a zero point.
void row_terms(const GemmI8& kernel, const RowsI8& a, std::int64_t rows, std::int64_t k, std::int32_t weight_zp,
               std::int32_t* terms);

// Fills `data` (packed_bytes long) with B. Element (j, i), column j and product i, is at
// weight[j * column_stride + i * k_stride].
void pack_panels(const PanelsI8& shape, const std::int8_t* weight, std::int64_t column_stride, std::int64_t k_stride,
                 std::byte* data);
// And `terms` (padded long) with the terms of its columns. The zero points are those of x and w.
void column_terms(const PanelsI8& shape, const std::vector<std::int32_t>& sums, const std::int32_t* bias,
                  std::int64_t bias_count, std::int32_t input_zp, std::int32_t weight_zp, std::int32_t* terms);
std::vector<std::int32_t> column_sums(const PanelsI8& shape, const std::int8_t* weight, std::int64_t column_stride,
                                      std::int64_t k_stride);

// A weight [n][k] row-major, as those of convolutions are.
struct PackedI8 {
  FreshLines<std::byte> panels;
  std::vector<std::int32_t> sums;
};
// `once`: where `weight` may have been packed before; null: it is no memory that lasts.
std::shared_ptr<const PackedI8> pack_rows(const PanelsI8& shape, const std::int8_t* weight,
                                          PackedOnce<const PackedI8>* once);

}  // namespace tosaic::cpu
