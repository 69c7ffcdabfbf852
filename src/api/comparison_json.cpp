// SPDX-License-Identifier: Apache-2.0
// A comparison for other programs: the keys stay from version to version.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>

#include "base/diagnostic.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }
bool equal(double db) { return std::isinf(db) && db > 0; }

std::string error_json(const TensorError& error) {
  std::string channel = "null";
  if (error.worst_channel)
    channel = fmt::format(R"({{"dim": {}, "channel": {}, "snr_db": {}}})", error.worst_channel->dim,
                          error.worst_channel->channel, number(error.worst_channel->db));
  return fmt::format(R"({{"snr_db": {}, "exact": {}, "cosine": {:.9g}, "worst_channel": {}}})", number(error.db),
                     equal(error.db), error.cosine, channel);
}

std::string own_json(const ComparedLayer& layer) {
  if (!layer.own_db) return "null";
  return fmt::format(R"({{"snr_db": {}, "exact": {}, "weights_snr_db": {}}})", number(*layer.own_db),
                     equal(*layer.own_db), number(layer.weights_db));
}

std::string layer_json(const ComparedLayer& layer) {
  std::vector<std::string> ops, reasons;
  for (const std::string& op : layer.ops) ops.push_back(json_quote(op));
  for (const LossReason& reason : layer.reasons)
    reasons.push_back(fmt::format(R"({{"kind": {}, "sentence": {}, "remedy": {}}})", json_quote(reason.kind),
                                  json_quote(reason.sentence), json_quote(reason.remedy)));
  return fmt::format(
      R"({{"value": {}, "node": {}, "ops": [{}], "module": {}, "place": {}, "type": {}, "shape": [{}], )"
      R"("delegated": {}, "own": {}, "accumulated": {}, "saturated": {}, "range_used": {}, "reasons": [{}]}})",
      json_quote(layer.value), json_quote(layer.node), fmt::join(ops, ", "), json_quote(layer.module),
      json_quote(layer.place), json_quote(layer.type), fmt::join(layer.shape, ", "), layer.delegated, own_json(layer),
      error_json(layer.accumulated), number(layer.saturated), number(layer.range_used), fmt::join(reasons, ", "));
}

std::string right_json(const std::optional<RightAnswers>& right) {
  if (!right) return "null";
  return fmt::format(R"({{"labels": {}, "percent": {:.6g}, "percent_in_floats": {:.6g}}})", right->labels,
                     right->percent(), right->percent_in_floats());
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  std::string out = fmt::format(
      "{{\n  \"tosaic\": {},\n  \"command\": \"compare\",\n  \"model\": {},\n  \"target\": {},\n  \"scheme\": {},\n"
      "  \"device\": {},\n  \"samples\": {},\n  \"top1\": {},\n  \"outputs\": [",
      json_quote(version()), json_quote(comparison.model), json_quote(comparison.target), json_quote(comparison.scheme),
      comparison.device.empty() ? "null" : json_quote(comparison.device), comparison.samples,
      right_json(comparison.right));
  const char* before = "\n    ";
  for (const ComparedOutput& output : comparison.outputs) {
    out += fmt::format(R"({}{{"name": {}, "type": {}, "accumulated": {}, "on_device": {}}})", before,
                       json_quote(output.name), json_quote(output.type), error_json(output.error),
                       output.on_device ? error_json(*output.on_device) : "null");
    before = ",\n    ";
  }
  out += "\n  ],\n  \"layers\": [";
  before = "\n    ";
  for (const ComparedLayer& layer : comparison.layers) {
    out += before + layer_json(layer);
    before = ",\n    ";
  }
  return out + "\n  ]\n}\n";
}

}  // namespace tosaic
