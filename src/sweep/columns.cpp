// SPDX-License-Identifier: Apache-2.0
#include "sweep/columns.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/printable.h"

namespace tosaic::sweeps {
namespace {

using Member = std::optional<double> SweepRow::*;

std::string exactly(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.10g}", value);
}

Column text(std::string key, std::string title, std::string SweepRow::*member) {
  const auto told = [member](const SweepRow& row) { return printable(row.*member); };
  return {std::move(key), std::move(title), false, [member](const SweepRow& row) { return row.*member; }, told};
}

Column number(std::string key, std::string title, Member member, double unit, int digits) {
  return {std::move(key), std::move(title), true,
          [member](const SweepRow& row) { return row.*member ? exactly(*(row.*member)) : ""; },
          [member, unit, digits](const SweepRow& row) {
            if (!(row.*member)) return std::string();
            const double value = *(row.*member);
            if (std::isinf(value)) return std::string("equal");
            return fmt::format("{:.{}f}", value / unit, digits);
          }};
}

Column count(std::string key, std::string title, std::size_t SweepRow::*member) {
  const auto told = [member](const SweepRow& row) { return row.*member ? std::to_string(row.*member) : ""; };
  return {std::move(key), std::move(title), true, told, told};
}

std::vector<Column> all() {
  std::vector<Column> list{text("target", "target", &SweepRow::target),
                           text("precision", "precision", &SweepRow::precision),
                           text("memory_mode", "memory mode", &SweepRow::memory_mode)};
  const auto share = [](const SweepRow& row) {
    return row.compiled() ? fmt::format("{}/{}", row.delegated, row.nodes) : "";
  };
  list.push_back({"delegated", "delegated", true, share, share});
  list.push_back(count("delegates", "delegates", &SweepRow::delegates));
  list.push_back(number("cycles", "cycles", &SweepRow::cycles, 1, 0));
  list.push_back(number("inferences_per_second", "inf/s", &SweepRow::inferences_per_second, 1, 1));
  list.push_back(number("sram_bytes", "SRAM kB", &SweepRow::sram_bytes, 1e3, 1));
  list.push_back(number("flash_bytes", "flash kB", &SweepRow::flash_bytes, 1e3, 1));
  list.push_back({"program_bytes", ".pte kB", true,
                  [](const SweepRow& row) { return row.compiled() ? std::to_string(row.program_bytes) : ""; },
                  [](const SweepRow& row) {
                    return row.compiled() ? fmt::format("{:.1f}", static_cast<double>(row.program_bytes) / 1e3) : "";
                  }});
  list.push_back(number("snr_db", "SNR dB", &SweepRow::db, 1, 1));
  list.push_back(number("right", "right %", &SweepRow::right, 1, 2));
  list.push_back(number("right_in_floats", "floats %", &SweepRow::right_in_floats, 1, 2));
  list.push_back(text("problem", "problem", &SweepRow::problem));
  return list;
}

}  // namespace

const std::vector<Column>& columns() {
  static const std::vector<Column> list = all();
  return list;
}

std::vector<const Column*> columns_of(const std::vector<SweepRow>& rows) {
  std::vector<const Column*> used;
  for (const Column& column : columns())
    if (std::ranges::any_of(rows, [&](const SweepRow& row) { return !column.exact(row).empty(); }))
      used.push_back(&column);
  return used;
}

}  // namespace tosaic::sweeps
