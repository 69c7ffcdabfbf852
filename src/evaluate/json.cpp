// SPDX-License-Identifier: Apache-2.0
// An evaluation for other programs: the keys stay from version to version.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>

#include "base/diagnostic.h"
#include "tosaic/evaluation.hpp"

namespace tosaic {
namespace {

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }
bool equal(double db) { return std::isinf(db) && db > 0; }
std::string whole(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "null"; }
std::string text_or_null(const std::string& text) { return text.empty() ? "null" : json_quote(text); }

std::string share(const std::optional<RightShare>& right) {
  if (!right) return "null";
  return fmt::format(R"({{"labels": {}, "top1": {:.6g}, "top5": {:.6g}}})", right->labels, right->top1(),
                     right->top5());
}

std::string output_json(const EvaluatedOutput& output) {
  return fmt::format(R"({{"name": {}, "type": {}, "snr_db": {}, "exact": {}, "equal_share": {}}})",
                     json_quote(output.name), json_quote(output.type), output.db ? number(*output.db) : "null",
                     output.db ? equal(*output.db) : *output.equal == 1, output.equal ? number(*output.equal) : "null");
}

std::string worst_json(const WorstSample& w) {
  return fmt::format(
      R"({{"sample": {}, "name": {}, "snr_db": {}, "exact": {}, "label": {}, "said": {}, "floats_said": {}}})",
      w.sample, json_quote(w.name), number(w.db), equal(w.db), whole(w.label), whole(w.said), whole(w.floats_said));
}

template <class T, class F>
std::string list(const std::vector<T>& items, const F& one) {
  std::vector<std::string> texts;
  for (const T& item : items) texts.push_back("\n    " + one(item));
  return texts.empty() ? "[]" : fmt::format("[{}\n  ]", fmt::join(texts, ","));
}

}  // namespace

std::string evaluation_json(const Evaluated& e) {
  return fmt::format(
      "{{\n  \"program\": {},\n  \"device\": {},\n  \"floats\": {},\n  \"samples\": {},\n  \"skipped\": {},\n"
      "  \"classes\": {},\n  \"right\": {},\n  \"right_in_floats\": {},\n  \"agreement\": {},\n  \"outputs\": {},\n"
      "  \"confusion\": {},\n  \"worst\": {},\n  \"workers\": {},\n  \"seconds\": {:.6f},\n  \"run_seconds\": {:.9f},\n"
      "  \"floats_run_seconds\": {:.9f},\n  \"samples_per_second\": {:.6g}\n}}\n",
      json_quote(e.program), json_quote(e.device), text_or_null(e.floats), e.samples, e.skipped, e.classes,
      share(e.right), share(e.right_in_floats), e.agreement ? number(*e.agreement) : "null",
      list(e.outputs, output_json),
      list(e.confusion,
           [](const Confusion& c) {
             return fmt::format(R"({{"label": {}, "said": {}, "times": {}, "times_in_floats": {}}})", c.label, c.said,
                                c.times, c.times_in_floats);
           }),
      list(e.worst, worst_json), e.workers, e.seconds, e.run_seconds, e.floats_run_seconds, e.samples_per_second());
}

}  // namespace tosaic
