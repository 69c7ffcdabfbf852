// SPDX-License-Identifier: Apache-2.0
// Mixed precision within a budget: the entry, what users write of a budget, and the result as text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "base/printable.h"
#include "pipeline/tuned.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string without_blanks(std::string_view text) {
  std::string left;
  for (char c : text)
    if (c != ' ' && c != '\t') left += c;
  return left;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string db_text(double db) { return std::isinf(db) ? (db > 0 ? "equal" : "lost") : fmt::format("{:.1f}", db); }
std::string percent_text(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.2f}", *percent) : "";
}
std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }

// A comment ends with its line, and what follows is the user's own text.
std::string where_text(const TunedTensor& tensor) {
  if (tensor.where.empty()) return printable(tensor.op);
  return printable(fmt::format("the result of {}, {}", tensor.op, tensor.where));
}

std::string plan_text(const Tuning& tuning) {
  const TunedPoint& point = tuning.points[tuning.chosen];
  std::string text = fmt::format("# {} for {}: {} dB at {:.3f} times int8's {}\n", printable(tuning.model),
                                 tuning.target, db_text(point.db), point.ratio, tuning.unit);
  text += fmt::format("program {}\n", tuning.program);
  for (std::size_t i : point.tensors) {
    const TunedTensor& tensor = tuning.order[i];
    text += fmt::format("# for {}\n", where_text(tensor));
    for (const std::string& node : tensor.nodes) text += fmt::format("{}: int16x8\n", node);
  }
  return text;
}

}  // namespace

Result<Budget> read_budget(std::string_view written) {
  const std::string compact = without_blanks(written);
  std::string_view text = compact;
  Budget budget{.text = printable(written)};
  if (take(text, "accuracy:"); take(text, "snr")) {
    if (take(text, ">=") || take(text, "=")) budget.least_db = number(text);
  } else if (take(text, "top1")) {
    if (take(text, ">=") || take(text, "=")) {
      budget.below_floats = take(text, "float-");
      budget.least_top1 = number(text);
    }
  } else {
    for (std::string_view unit : {"cycles", "bytes"})
      if (take(text, unit)) {
        budget.unit = unit;
        if ((take(text, "<=") || take(text, "=")) && text.ends_with('x'))
          budget.most_ratio = number(text.substr(0, text.size() - 1));
        break;
      }
  }
  if (budget.least_db || budget.least_top1 || (budget.most_ratio && *budget.most_ratio >= 1)) return budget;
  if (budget.most_ratio && *budget.most_ratio > 0)
    return error("tune.budget",
                 fmt::format("'{}' asks for less than int8 takes, and no plan is cheaper", printable(written)))
        .hint(fmt::format("'{}<=1x' is the least that can be met", budget.unit));
  return error("tune.budget", fmt::format("'{}' is no budget", printable(written)))
      .hint(
          "say how accurate, 'snr>=30' (dB of the worst output) or 'top1>=float-0.5' (percent of the labels), or how "
          "expensive, 'cycles<=1.15x' of int8's cycles");
}

Result<Tuning> tune(const Program& given, const std::string& target, const Options& options,
                    const std::optional<Budget>& budget, const Callbacks& callbacks, const SampleSource& samples,
                    const Evaluation& shown) {
  return guarded(given.name(), [&]() -> Result<Tuning> {
    TOSAIC_TRY(const CompileOptions how, compile_options_for(target, options));
    TOSAIC_TRY(const Program program, given.with_input_layout(how.input_layout));
    TOSAIC_TRY(const CompileCallbacks calls, callbacks_of(program, callbacks, samples));
    TOSAIC_TRY(Tuning found,
               tune_model(program.impl().exported, how, calls, {samples_from(shown.samples), shown.labels}, budget));
    if (budget && !found.met) calls.sink(told(found, *budget));
    found.model = std::filesystem::path(program.name()).filename().string();
    found.plan = plan_text(found);
    return found;
  });
}

std::string tuning_text(const Tuning& tuning) {
  std::string text = fmt::format("{} for {}, on {} sample{}\n", printable(tuning.model), tuning.target, tuning.samples,
                                 tuning.samples == 1 ? "" : "s");
  const bool labels = tuning.top1_of_floats.has_value();
  if (labels) text += fmt::format("  floats: {:.2f} % of the labels right\n", *tuning.top1_of_floats);
  const auto right = [&](std::string_view cell) { return labels ? fmt::format("  {:>8}", cell) : ""; };
  text += fmt::format("  {:>12}{}  {:>8}  {:>14}  {:>8}\n", "16-bit calls", right("right, %"), "SNR, dB", tuning.unit,
                      "to int8");
  for (std::size_t i = 0; i < tuning.points.size(); ++i) {
    const TunedPoint& p = tuning.points[i];
    text += fmt::format("{} {:>12}{}  {:>8}  {:>14.0f}  {:>7.3f}x\n", i == tuning.chosen ? '>' : ' ', p.calls,
                        right(percent_text(p.top1)), db_text(p.db), p.cost, p.ratio);
  }
  const std::vector<std::size_t>& wide = tuning.points[tuning.chosen].tensors;
  if (!wide.empty()) text += "\n  noise %  cost %  in 16 bits, for\n";
  for (std::size_t i : wide)
    text +=
        fmt::format("  {:>7.1f}  {:>6.1f}  {} for {}\n", 100 * tuning.order[i].noise, 100 * tuning.order[i].cost,
                    printable(fmt::format("{}", fmt::join(tuning.order[i].nodes, ", "))), where_text(tuning.order[i]));
  return text;
}

std::string tuning_json(const Tuning& tuning) {
  std::string out = fmt::format(
      "{{\n  \"tosaic\": {},\n  \"command\": \"tune\",\n  \"model\": {},\n  \"target\": {},\n  \"unit\": {},\n"
      "  \"samples\": {},\n  \"top1_of_floats\": {},\n  \"met\": {},\n  \"chosen\": {},\n  \"plan\": {},\n  "
      "\"points\": [",
      json_quote(version()), json_quote(tuning.model), json_quote(tuning.target), json_quote(tuning.unit),
      tuning.samples, json_number(tuning.top1_of_floats.value_or(NAN)), tuning.met, tuning.chosen,
      json_quote(tuning.plan));
  const char* before = "\n    ";
  for (const TunedPoint& p : tuning.points) {
    out += fmt::format(R"({}{{"tensors": [{}], "calls": {}, "snr_db": {}, "top1": {}, "cost": {}, "ratio": {}}})",
                       before, fmt::join(p.tensors, ", "), p.calls, json_number(p.db),
                       json_number(p.top1.value_or(NAN)), json_number(p.cost), json_number(p.ratio));
    before = ",\n    ";
  }
  out += "\n  ],\n  \"order\": [";
  before = "\n    ";
  for (const TunedTensor& tensor : tuning.order) {
    std::vector<std::string> nodes;
    for (const std::string& node : tensor.nodes) nodes.push_back(json_quote(node));
    out += fmt::format(R"({}{{"nodes": [{}], "op": {}, "where": {}, "noise": {}, "cost": {}}})", before,
                       fmt::join(nodes, ", "), json_quote(tensor.op), json_quote(tensor.where),
                       json_number(tensor.noise), json_number(tensor.cost));
    before = ",\n    ";
  }
  return out + "\n  ]\n}\n";
}

}  // namespace tosaic
