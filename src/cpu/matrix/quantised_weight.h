// SPDX-License-Identifier: Apache-2.0
// A weight, or a table of rows, of quantised values as the program has it. A look-up reads its rows where they lie;
// products want panels (quantised_kernel.h), which the first run makes: a program that is only loaded reads nothing of
// it.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/thread_pool.h"
#include "cpu/matrix/quantised_kernel.h"
#include "plan/quantised_constant.h"
#include "plan/quantised_form.h"

namespace tosaic::cpu {

// n rows of k values, a scale for each group of neighbours in a row.
struct QuantisedRows {
  plan::QuantisedConstant values;
  std::int64_t n = 0, k = 0, group = 0;
  bool by_columns = false;                  // the values lie [k][n]
  std::optional<plan::QuantisedForm> form;  // nullopt: all scales are 1
  Bytes scales;                             // f32, the elements of form->scales

  std::int64_t groups() const { return k / group; }
  // `to`: [count][k].
  void read_values(std::int64_t first, std::int64_t count, std::int8_t* to) const;
  // `to`: [groups()].
  void read_scales(std::int64_t row, std::span<float> to) const;
};

class QuantisedWeight {
 public:
  // Rows whose values need 4 or 8 bits; groups are multiples of values_per_word() of these.
  QuantisedWeight(QuantisedRows rows, int bits);
  // The one that some program has of the same memory, or a new one.
  static std::shared_ptr<QuantisedWeight> shared(QuantisedRows rows, int bits);

  // Their sizes; their content when pack() is done.
  const QuantisedPanels& panels() const { return panels_; }
  // Once for all programs that share the weight.
  void pack(ThreadPool& pool) const;
  // Row `n` as k floats.
  void read_row(std::int64_t n, float* to) const;

  // Rows are read one by one, too: they stay when panels are there.
  bool keeps_rows = false;

 private:
  void pack_all(ThreadPool& pool) const;
  void pack_panel(std::int64_t panel, std::uint32_t* memory) const;

  mutable QuantisedRows rows_;
  mutable QuantisedPanels panels_;
  mutable std::once_flag packed_;
};

}  // namespace tosaic::cpu
