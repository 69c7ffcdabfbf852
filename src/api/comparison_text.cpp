// SPDX-License-Identifier: Apache-2.0
// A comparison as a table for people.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string db_text(double db) {
  if (std::isinf(db)) return db > 0 ? "equal" : "lost";
  return fmt::format("{:.1f}", db);
}

std::string channel_text(const TensorError& error) {
  if (!error.worst_channel) return "";
  return fmt::format(", channel {} {} dB", error.worst_channel->channel, db_text(error.worst_channel->db));
}

using Cells = std::vector<std::string>;

// The columns of figures stand at the right, the others at the left.
std::string table(const std::vector<Cells>& rows, std::size_t figures, const std::vector<std::string>& notes) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i)
      line +=
          i < figures ? fmt::format("  {:>{}}", rows[r][i], widths[i]) : fmt::format("  {:<{}}", rows[r][i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n" + notes[r];
  }
  return text;
}

// A norm of scaled rows has twenty.
std::string operators_of(const ComparedLayer& layer) {
  constexpr std::size_t most = 3;
  const auto& ops = layer.ops;
  return ops.size() > most ? fmt::format("{} + {} more + {}", ops.front(), ops.size() - 2, ops.back())
                           : fmt::format("{}", fmt::join(ops, " + "));
}

Cells cells(const ComparedLayer& layer) {
  const double saturated = layer.saturated.value_or(0) * 100;
  return {layer.own_db ? db_text(*layer.own_db) : "-",
          db_text(layer.accumulated.db),
          saturated == 0 ? "" : fmt::format("{:.{}f}", saturated, saturated < 0.05 ? 2 : 1),
          layer.type,
          printable(operators_of(layer)),
          printable(layer.node.empty() ? layer.value : layer.node),
          printable(layer.where)};
}

std::string reasons_of(const ComparedLayer& layer) {
  std::string text;
  for (const LossReason& reason : layer.reasons)
    text += fmt::format("      {}{}\n", printable(reason.sentence),
                        reason.remedy.empty() ? "" : ": " + printable(reason.remedy));
  return text;
}

}  // namespace

std::string comparison_text(const Comparison& comparison, std::size_t limit) {
  std::string text = fmt::format("{} for {}, {}, on {} sample{}\n", printable(comparison.model), comparison.target,
                                 comparison.scheme, comparison.samples, comparison.samples == 1 ? "" : "s");
  if (!comparison.device.empty()) text += fmt::format("  device: {}\n", printable(comparison.device));
  if (const auto& right = comparison.right)
    text += fmt::format("  right: {:.2f} % of {} labels, in floats {:.2f} %\n", right->percent(), right->labels,
                        right->percent_in_floats());
  for (const ComparedOutput& output : comparison.outputs)
    text += fmt::format("  output {}: {} dB, cosine {:.5f}{}{}\n", printable(output.name), db_text(output.error.db),
                        output.error.cosine, channel_text(output.error),
                        output.on_device ? fmt::format("; on the device {} dB", db_text(output.on_device->db)) : "");
  if (comparison.layers.empty()) return text;
  const std::size_t shown = limit == 0 ? comparison.layers.size() : std::min(limit, comparison.layers.size());
  std::vector<Cells> rows{{"own dB", "all dB", "clip %", "type", "operator", "node", "module and line"}};
  std::vector<std::string> notes{""};
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(cells(comparison.layers[i]));
    notes.push_back(reasons_of(comparison.layers[i]));
  }
  text += "\n" + table(rows, 3, notes);
  if (shown < comparison.layers.size())
    text += fmt::format("  and {} more: --limit 0 shows all\n", comparison.layers.size() - shown);
  return text;
}

}  // namespace tosaic
