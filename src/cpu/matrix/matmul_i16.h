// SPDX-License-Identifier: Apache-2.0
// MATMUL of i16 with i48 sums, as take_matmul's others.
#pragma once
#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/matmul.h"

namespace tosaic::cpu {

struct MatmulI16 {
  static constexpr std::string_view name = "matmul_i16";
  static constexpr std::int64_t element_bytes = 2;
  static constexpr bool rescales = false;
  const GemmI8* kernel = nullptr;
  PanelsI8 panels;  // of a unit of upper and one of lower parts each: see short_parts.h
  Epilogue epilogue;
  std::int64_t columns = 0;
  bool turned = false;

  bool prepare(const Planning& planning, const Node& node, const MatmulShape& s);
  void share(const Planning&, const Sharing&, ValueId) {}
  bool packs() const { return true; }
  std::int64_t panel_count() const { return panels.count(); }
  std::size_t packed_bytes() const { return align_up(panels.packed_bytes()); }
  std::int64_t packing_tasks() const { return panels.count(); }
  void pack(const void* b, std::int64_t p, std::byte* into) const;
  std::int64_t row_bytes() const { return panels.row_bytes(*kernel); }
  // Rows of an odd number of elements are copied: the kernel reads pairs.
  bool copies_rows() const { return panels.k % 2 != 0; }
  std::size_t row_scratch(std::int64_t rows) const {
    return copies_rows() ? align_up(static_cast<std::size_t>(rows * row_bytes())) : 0;
  }
  void run(const Sharing& sharing, const Sharing::Part& part, const void* a, const std::byte* packed, std::byte* c,
           std::byte* scratch) const;
};

}  // namespace tosaic::cpu
