// SPDX-License-Identifier: Apache-2.0
// A sweep as a table for people, as JSON and as CSV.
#include <fmt/format.h>
#include <algorithm>

#include "base/diagnostic.h"
#include "base/printable.h"
#include "sweep/columns.h"

namespace tosaic {

using sweeps::Column;

std::string sweep_text(const std::string& model, const std::vector<SweepRow>& rows) {
  const auto columns = sweeps::columns_of(rows);
  std::vector<std::size_t> widths;
  for (const Column* column : columns) {
    std::size_t width = column->title.size();
    for (const SweepRow& row : rows) width = std::max(width, column->shown(row).size());
    widths.push_back(width);
  }
  const auto line = [&](const std::string& mark, const auto& cell) {
    std::string text = mark;
    for (std::size_t i = 0; i < columns.size(); ++i)
      text += columns[i]->number ? fmt::format("  {:>{}}", cell(*columns[i]), widths[i])
                                 : fmt::format("  {:<{}}", cell(*columns[i]), widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = fmt::format("{}: {} programs\n", printable(model), rows.size());
  text += line(" ", [](const Column& column) { return column.title; });
  bool any_best = false;
  for (const SweepRow& row : rows) {
    text += line(row.best ? "*" : " ", [&](const Column& column) { return column.shown(row); });
    any_best |= row.best;
  }
  if (any_best) text += "  * no other is as good in size of the NPU, speed, SRAM and accuracy\n";
  return text;
}

std::string sweep_json(const std::string& model, const std::vector<SweepRow>& rows) {
  std::string list;
  for (const SweepRow& row : rows) {
    list += list.empty() ? "\n    {" : ",\n    {";
    for (const Column& column : sweeps::columns()) {
      const std::string value = column.exact(row);
      const bool is_number = column.number && column.key != "delegated";
      const bool infinite = value == "inf" || value == "-inf";
      list += fmt::format("{}: {}, ", json_quote(column.key),
                          value.empty() || (is_number && infinite) ? "null"
                          : is_number                              ? value
                                                                   : json_quote(value));
    }
    list += fmt::format("\"macs_per_cycle\": {}, \"seconds\": {:.4f}, \"best\": {}}}",
                        row.macs_per_cycle ? std::to_string(row.macs_per_cycle) : "null", row.seconds, row.best);
  }
  return fmt::format("{{\n  \"model\": {},\n  \"rows\": [{}\n  ]\n}}\n", json_quote(model), list);
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  // RFC 4180; what a spreadsheet would take for a formula is text.
  const auto quoted = [](std::string text) {
    if (!text.empty() && std::string_view("=+@").find(text[0]) != std::string_view::npos) text.insert(0, "'");
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string safe = "\"";
    for (const char c : text) safe += c == '"' ? "\"\"" : std::string(1, c);
    return safe + "\"";
  };
  std::string text;
  for (const Column& column : sweeps::columns()) text += column.key + ",";
  text += "best\n";
  for (const SweepRow& row : rows) {
    for (const Column& column : sweeps::columns()) text += quoted(column.exact(row)) + ",";
    text += row.best ? "1\n" : "0\n";
  }
  return text;
}

}  // namespace tosaic
