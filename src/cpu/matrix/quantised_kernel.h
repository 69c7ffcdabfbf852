// SPDX-License-Identifier: Apache-2.0
// C = A x W^T + bias where W holds quantised values of 4 or 8 bits, and groups of neighbouring quantised values of a
// row share a scale. A is f32, or 8-bit quantised values with a scale and a zero point for each row.
//
// W lies in panels of one vector's columns. A panel is a list of words, one 32-bit word per column and step; a word
// holds quantised values k..k+3 in its bytes, or k..k+3 in the low and k+4..k+7 in the high halves of its bytes.
// Quantised values are stored with an offset that makes them unsigned, as x86 wants one factor: with o the offset,
//   sum q c = sum q (c + o) - o sum q
// where the second sum belongs to the row and the group.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/lines.h"

namespace tosaic::cpu {

struct QuantisedPanels {
  std::int64_t n = 0, k = 0, group = 0;  // k is a multiple of group, group of values_per_word()
  int bits = 8, lanes = 0;
  FreshLines<std::uint32_t> words;  // [panel][k / values_per_word()][lanes]
  // [panel][k / group][lanes], in one of two forms: bfloat16's bits where these say every one, for they are a fifth of
  // what is read where groups are small.
  std::vector<float> scales;
  std::vector<std::uint16_t> short_scales;
  std::vector<float> row_sums;  // of what the quantised values stand for, by column of C; padded to whole panels

  int values_per_word() const { return 32 / bits; }
  std::int64_t groups() const { return k / group; }
  std::int64_t count() const { return (n + lanes - 1) / lanes; }
  const std::uint32_t* words_of(std::int64_t panel) const {
    return words.get() + panel * k / values_per_word() * lanes;
  }
  std::size_t scale_at(std::int64_t panel, std::int64_t g) const {
    return static_cast<std::size_t>((panel * groups() + g) * lanes);
  }
};

// Rows of A that meet one panel.
struct QuantisedCall {
  const QuantisedPanels* b;
  std::int64_t panel;
  int rows;                  // 1..max_rows
  const void* a;             // f32, or quantised values in the form that `convert` writes
  std::int64_t a_stride;     // bytes between rows
  const std::int32_t* sums;  // of quantised values: -offset times the sum of each group, [rows][groups]
  const float* scale;        // of quantised values: one for each row, or null
  const float* zero;         // likewise, or null
  const float* bias;         // by column of C; padded to whole panels
  float lowest, highest;     // NaN passes through
  float* c;
  std::int64_t c_stride;  // elements
};

struct QuantisedGemm {
  int lanes;
  int max_rows;
  void (*floats)(const QuantisedCall&);
  void (*int8)(const QuantisedCall&);
  // A's quantised values in the kernel's own form, which depends on the bits of W's: bytes of one, and what writes it.
  int (*bytes_of_value)(int bits);
  void (*convert)(int bits, const std::int8_t* from, std::int64_t count, void* to);
  // Columns of one panel as floats, row k at to[k * stride].
  void (*widen)(const QuantisedPanels& b, std::int64_t panel, float* to, std::int64_t stride);
};
const QuantisedGemm& quantised_gemm();  // for the instruction set in use

// Fills `sums` ([groups]) for one quantised row.
void group_sums(const QuantisedPanels& b, const std::int8_t* row, std::int32_t* sums);

}  // namespace tosaic::cpu
