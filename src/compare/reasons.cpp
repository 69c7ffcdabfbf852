// SPDX-License-Identifier: Apache-2.0
#include "compare/reasons.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/median.h"
#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

constexpr double good_db = 30;  // of a call alone: what 8 bits usually give. Nobody asks why it is not more.
constexpr double poor_db = 20;  // of a channel
constexpr double much_cut_off = 0.01;
constexpr double far = 8;           // times as far as others
constexpr double hardly = 1 / 8.0;  // of the range

std::string override_option(const LossEvidence& found, bool wider) {
  if (found.node.empty()) return "";
  return fmt::format("--override '{}: {}'", found.node, wider && found.takes_int16 ? "int16x8" : "float");
}

bool is_wide(const LossEvidence& found) { return (*found.quantised)[found.layer->result].type.dtype == DType::i16; }

std::optional<LossReason> clipped(const LossEvidence& found) {
  const double share = found.accumulated->saturated().value_or(0);
  if (!(share > much_cut_off)) return std::nullopt;
  return LossReason{"clipped", fmt::format("{:.1f} % of the elements lie beyond the range", share * 100),
                    found.other_samples ? "--calibrate FILE with samples like these" : "--observer minmax"};
}

std::optional<LossReason> outlier_channel(const LossEvidence& found) {
  const std::vector<double>& largest = found.accumulated->largest();
  if (largest.size() < 4) return std::nullopt;
  const auto most = std::ranges::max_element(largest);
  std::vector<double> others = largest;
  others.erase(others.begin() + (most - largest.begin()));
  const double middle = median(std::move(others));
  if (!(middle > 0) || *most < far * middle) return std::nullopt;
  return LossReason{"outlier-channel",
                    fmt::format("channel {} reaches {:.0f} times as far as the median of the others",
                                most - largest.begin(), *most / middle),
                    override_option(found, !is_wide(found))};
}

std::optional<LossReason> unused_range(const LossEvidence& found) {
  const double used = found.accumulated->range_used().value_or(1);
  if (!(used < hardly) || found.largest_of_group.empty()) return std::nullopt;
  return LossReason{"unused-range",
                    fmt::format("its values use {:.1f} % of the range: it shares the scale of '{}', which is larger",
                                used * 100, found.largest_of_group),
                    override_option(found, !is_wide(found))};
}

// Products spread further than their operands do: small ones are left few quantised values.
std::optional<LossReason> product(const LossEvidence& found) {
  if (is_wide(found)) return std::nullopt;
  for (std::size_t n : found.layer->calls) {
    const Node& call = found.quantised->nodes[n];
    const Rule rule = find_aten(call.op).rule;
    if (!rule->is_linear || rule->adds || rule->accumulates || rule->shares_scale()) continue;
    const bool computed = call.inputs.size() >= 2 && std::ranges::none_of(call.inputs, [&](ValueId v) {
                            return v == no_value || (*found.quantised)[v].is_constant();
                          });
    if (!computed) continue;
    return LossReason{"product",
                      call.inputs[0] == call.inputs[1] ? "a square has 8 bits" : "a product of two tensors has 8 bits",
                      override_option(found, true)};
  }
  return std::nullopt;
}

std::optional<LossReason> weights(const LossEvidence& found) {
  if (!found.weights_db || *found.weights_db - *found.own_db > as_much_db) return std::nullopt;
  bool four_bits = false;
  for (std::size_t n : found.layer->calls)
    for (ValueId w : found.quantised->nodes[n].inputs)
      if (w != no_value && (*found.quantised)[w].is_constant() && (*found.quantised)[w].type.quantised())
        four_bits |= (*found.quantised)[w].type.scales->highest == 7;
  const bool of_16_bits = std::ranges::any_of(found.layer->calls, [&](std::size_t n) {
    const ValueId x = found.quantised->nodes[n].inputs[0];
    return x != no_value && (*found.quantised)[x].type.dtype == DType::i16;
  });
  return LossReason{"weights", fmt::format("its weights in {} bits lose as much alone", four_bits ? 4 : 8),
                    four_bits                      ? "--weights per-channel"
                    : of_16_bits && is_wide(found) ? "--weights int16"
                                                   : override_option(found, false)};
}

}  // namespace

std::vector<LossReason> loss_reasons(const LossEvidence& found) {
  if (found.narrow) return loss_reasons_of_floats(found);
  std::vector<LossReason> reasons;
  const auto add = [&](std::optional<LossReason> reason) {
    if (reason) reasons.push_back(*std::move(reason));
  };
  add(clipped(found));
  if (!found.own_db) return reasons;
  // An outlier is most of the signal: what it costs shows in the other channels.
  const double worst = found.worst_channel ? found.worst_channel->db : *found.own_db;
  if (worst < poor_db || *found.own_db < good_db) add(outlier_channel(found));
  if (*found.own_db >= good_db) return reasons;
  add(unused_range(found));
  add(product(found));
  add(weights(found));
  return reasons;
}

}  // namespace tosaic
