// SPDX-License-Identifier: Apache-2.0
// A weight, or a table of rows, of quantised values as the program has it. A look-up reads its rows where they lie;
// products want panels (quantised_kernel.h), which the first run makes: a program that is only loaded reads nothing of
// it.
#pragma once
#include <memory>
#include <mutex>

#include "base/system/thread_pool.h"
#include "cpu/matrix/quantised_kernel.h"
#include "cpu/step.h"
#include "plan/quantised_rows.h"

namespace tosaic::cpu {

using plan::QuantisedRows;

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

// That of a tosaic.scaled_product or tosaic.scaled_gather node.
std::shared_ptr<QuantisedWeight> quantised_weight(Planning& planning, const Node& node);

}  // namespace tosaic::cpu
