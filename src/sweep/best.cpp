// SPDX-License-Identifier: Apache-2.0
// The rows that nobody beats in everything.
#include <array>

#include "tosaic/sweep.hpp"

namespace tosaic {
namespace {

// The higher the better.
std::array<double, 4> merits(const SweepRow& row) {
  return {-static_cast<double>(row.macs_per_cycle), row.inferences_per_second.value_or(0), -row.sram_bytes.value_or(0),
          row.right ? *row.right : row.db.value_or(0)};
}

bool beats(const SweepRow& a, const SweepRow& b) {
  const auto x = merits(a), y = merits(b);
  bool better = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < y[i]) return false;
    better |= x[i] > y[i];
  }
  return better;
}

bool counts(const SweepRow& row) { return row.compiled() && row.problem.empty() && row.cycles.has_value(); }

}  // namespace

void mark_best(std::vector<SweepRow>& rows) {
  for (SweepRow& row : rows) {
    row.best = counts(row);
    for (const SweepRow& other : rows) row.best &= !(counts(other) && beats(other, row));
  }
}

void set_clock(std::vector<SweepRow>& rows, double hertz) {
  for (SweepRow& row : rows)
    if (row.cycles && *row.cycles > 0) row.inferences_per_second = hertz / *row.cycles;
}

}  // namespace tosaic
