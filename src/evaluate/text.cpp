// SPDX-License-Identifier: Apache-2.0
// An evaluation as a table for people.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "tosaic/evaluation.hpp"

namespace tosaic {
namespace {

constexpr std::size_t shown_mistakes = 8;

std::string db_text(double db) {
  if (std::isinf(db)) return db > 0 ? "equal" : "lost";
  return fmt::format("{:.1f} dB", db);
}
std::string ms(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

// A line of the table whose columns are the program, and floats where there are some.
std::string line(const std::string& what, const std::string& value, const std::string& in_floats = "") {
  std::string text = fmt::format("  {:<10} {:>10}", what, value);
  if (!in_floats.empty()) text += fmt::format("  {:>10}", in_floats);
  return text + "\n";
}

std::string right_text(const Evaluated& e) {
  if (!e.right) return "";
  const auto floats = [&](double (RightShare::*share)() const) {
    return e.right_in_floats ? fmt::format("{:.2f} %", ((*e.right_in_floats).*share)()) : "";
  };
  std::string text = line("top-1", fmt::format("{:.2f} %", e.right->top1()), floats(&RightShare::top1));
  if (e.classes > 5) text += line("top-5", fmt::format("{:.2f} %", e.right->top5()), floats(&RightShare::top5));
  return text;
}

std::string mistakes_text(const Evaluated& e) {
  std::string text;
  std::size_t shown = 0;
  for (const Confusion& c : e.confusion) {
    if (c.label == c.said || c.times == 0 || shown == shown_mistakes) break;
    if (shown++ == 0) text += "\n  most frequent mistakes\n";
    text += fmt::format("    label {:>4}, says {:>4}: {} time{}", c.label, c.said, c.times, c.times == 1 ? "" : "s");
    text += e.floats.empty() ? "\n" : fmt::format(", floats {}\n", c.times_in_floats);
  }
  return text;
}

std::string worst_text(const Evaluated& e) {
  if (e.worst.empty() || std::isinf(e.worst[0].db)) return "";
  std::string text = "\n  farthest from floats\n";
  std::size_t width = 0;
  for (const WorstSample& w : e.worst) width = std::max(width, printable(w.name).size());
  for (const WorstSample& w : e.worst) {
    text += fmt::format("    {:<{}}  {:>8}", printable(w.name), width, db_text(w.db));
    if (w.label) text += fmt::format("  label {}", *w.label);
    if (e.classes > 0 && w.said) text += fmt::format("  says {}", *w.said);
    if (e.classes > 0 && w.floats_said && w.floats_said != w.said)
      text += fmt::format(", floats say {}", *w.floats_said);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string evaluation_text(const Evaluated& e) {
  std::string text = fmt::format(
      "{} on {}: {} sample{}{}\n", printable(e.program), printable(e.device), e.samples, e.samples == 1 ? "" : "s",
      e.skipped ? fmt::format(", {} file{} left out", e.skipped, e.skipped == 1 ? "" : "s") : "");
  if (!e.floats.empty()) text += line("", "program", "floats");
  text += right_text(e);
  if (e.agreement) text += line("agreement", fmt::format("{:.2f} %", *e.agreement));
  for (const EvaluatedOutput& output : e.outputs) {
    const std::string about = printable(output.name) + (output.db ? "" : " (equal elements)");
    text += line("SNR", output.db ? db_text(*output.db) : fmt::format("{:.2f} %", *output.equal * 100), about);
  }
  text += line("one run", ms(e.run_seconds), e.floats.empty() ? "" : ms(e.floats_run_seconds));
  text += fmt::format("  {:<10} {:>10.1f}   samples/s{}, {} at once\n", "throughput", e.samples_per_second(),
                      e.floats.empty() ? "" : ", floats included", e.workers);
  return text + mistakes_text(e) + worst_text(e);
}

}  // namespace tosaic
