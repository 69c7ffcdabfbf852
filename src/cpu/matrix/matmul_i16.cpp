// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/matmul_i16.h"

#include <cstring>

#include "cpu/matrix/short_parts.h"

namespace tosaic::cpu {

bool MatmulI16::prepare(const Planning& planning, const Node& node, const MatmulShape& s) {
  for (const std::size_t zero_point : {2, 3}) {
    const ValueId value = node.inputs[zero_point];
    if (!planning.constant(value) || only_scalar(planning.graph, value) != 0) return false;
  }
  kernel = &gemm_i16();
  columns = s.w;
  const std::int64_t lanes = kernel->unit_columns;
  panels = panels_i8(*kernel, (s.w + lanes - 1) / lanes * 2 * lanes, s.c);
  turned = s.turned;
  return true;
}

void MatmulI16::pack(const void* b, std::int64_t p, std::byte* into) const {
  const std::int64_t lanes = panels.unit_columns, first = p * lanes;
  const std::int64_t column_stride = turned ? panels.k : 1, k_stride = turned ? 1 : columns;
  std::byte* to = into + p * panels.panel_width() * panels.groups * 4;
  short_parts().pack({.from = static_cast<const std::int16_t*>(b) + first * column_stride,
                      .columns = std::min(lanes, columns - first),
                      .k = panels.k,
                      .column_stride = column_stride,
                      .k_stride = k_stride},
                     lanes, reinterpret_cast<std::int16_t*>(to));
}

void MatmulI16::run(const Sharing& sharing, const Sharing::Part& part, const void* a, const std::byte* packed,
                    std::byte* c, std::byte* scratch) const {
  const std::int64_t lanes = panels.unit_columns, k_bytes = panels.k * 2;
  const std::byte* rows = static_cast<const std::byte*>(a) + part.first_row * k_bytes;
  if (copies_rows()) {
    for (std::int64_t r = 0; r < part.rows; ++r) {
      std::memcpy(scratch + r * row_bytes(), rows + r * k_bytes, static_cast<std::size_t>(k_bytes));
      std::memset(scratch + r * row_bytes() + k_bytes, 0, 2);  // it meets a zero
    }
    rows = scratch;
  }
  PanelsI8 at = panels;
  at.data = packed;
  constexpr std::int32_t zeros[PanelsI8::widest] = {};
  constexpr std::int64_t stretch = most_part_products / 2;  // in pairs
  alignas(64) std::int32_t sums[most_rows_in_vectors * PanelsI8::widest];
  for (std::int64_t p = part.first_panel; p < part.last_panel; ++p)
    sharing.for_groups(part.rows, [&](std::int64_t first, std::int64_t count) {
      GemmI8Call call{};
      call.a = rows + first * row_bytes();
      call.a_stride = row_bytes();
      call.rows = count;
      call.b = at.panel(p);
      call.units = 2;
      call.column_term = zeros;
      call.columns = static_cast<int>(2 * lanes);
      call.c_stride = 2 * lanes;
      call.sums = sums;
      auto* to = reinterpret_cast<std::int64_t*>(c) + first * columns + p * lanes;
      for (std::int64_t g = 0; g < panels.groups; g += stretch) {
        call.groups = std::min(stretch, panels.groups - g);
        kernel->panel(call);
        short_parts().join(sums, count, lanes, std::min(lanes, columns - p * lanes), g > 0, to, columns);
        call.a = static_cast<const std::byte*>(call.a) + stretch * 4;
        call.b = static_cast<const std::byte*>(call.b) + stretch * 2 * lanes * 4;
      }
    });
}

}  // namespace tosaic::cpu
