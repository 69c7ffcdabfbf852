// SPDX-License-Identifier: Apache-2.0
// Why floats of 16 bits lose accuracy. Rounded once, a tensor of f16 has about 75 dB, one of bf16 57.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "compare/reasons.h"
#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

constexpr double many = 0.5;  // of the elements that are not 0

// Of a call alone that rounds its operands, its weights and its result: nobody asks why it is not more.
double good_db(DType kept) { return kept == DType::bf16 ? 45 : 63; }

// What a tensor is kept in: narrower than the program says, or as it says.
DType kept_in(const LossEvidence& found, ValueId v) {
  return found.narrow->kept[v].value_or((*found.quantised)[v].type.dtype);
}

std::string keep_option(const LossEvidence& found, const std::string& node) {
  if (found.narrow->keep_option.empty() || node.empty()) return "";
  return fmt::format("--{} {}", found.narrow->keep_option, node);
}

std::string name_of_node(const LossEvidence& found, ValueId v) {
  for (const Node& node : found.quantised->nodes)
    if (std::ranges::find(node.outputs, v) != node.outputs.end()) return node.loc ? node.loc->name : "";
  return "";
}

std::optional<LossReason> overflow(const LossEvidence& found, DType kept) {
  const double share = found.accumulated->saturated().value_or(0);
  if (share == 0) return std::nullopt;
  return LossReason{
      "overflow",
      fmt::format("values reach {:.3g}, and {} has none beyond {}: they become infinite",
                  found.accumulated->largest_of_all(), name_of(kept), kept == DType::f16 ? "65504" : "3.39e38"),
      keep_option(found, found.node)};
}

// The result has nothing of what it should be though it could hold it: what a node computes on the way could not.
std::optional<LossReason> overflow_inside(const LossEvidence& found, DType narrow) {
  if (!std::isinf(*found.own_db) || *found.own_db > 0) return std::nullopt;
  return LossReason{"overflow", fmt::format("values that it computes on the way reach beyond {}", name_of(narrow)),
                    keep_option(found, found.node)};
}

std::optional<LossReason> denormal(const LossEvidence& found, DType kept) {
  const double share = found.accumulated->denormal();
  if (share < many) return std::nullopt;
  return LossReason{
      "denormal",
      fmt::format("{:.0f} % of its values are so small that {} has fewer digits for them", share * 100, name_of(kept)),
      keep_option(found, found.node)};
}

std::optional<LossReason> weights(const LossEvidence& found) {
  if (!found.weights_db || *found.weights_db - *found.own_db > as_much_db) return std::nullopt;
  return LossReason{"weights", "its weights in 16 bits lose as much alone", keep_option(found, found.node)};
}

// A small difference of large numbers: what they were rounded by is left.
std::optional<LossReason> operands(const LossEvidence& found) {
  for (std::size_t n : found.layer->calls) {
    const Node& call = found.quantised->nodes[n];
    for (ValueId v : call.inputs) {
      if (v == no_value || (*found.quantised)[v].is_constant() || !is_narrow_float(kept_in(found, v))) continue;
      return LossReason{"operands",
                        fmt::format("it makes the rounding of its operands to {} larger", name_of(kept_in(found, v))),
                        keep_option(found, name_of_node(found, v))};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<LossReason> loss_reasons_of_floats(const LossEvidence& found) {
  std::vector<LossReason> reasons;
  const auto add = [&](std::optional<LossReason> reason) {
    if (reason) reasons.push_back(*std::move(reason));
    return !reasons.empty();
  };
  const DType kept = kept_in(found, found.layer->result);
  if (is_narrow_float(kept) && add(overflow(found, kept))) return reasons;
  const DType narrow = is_narrow_float(kept) ? kept : found.narrow->weights;
  if (!found.own_db || *found.own_db >= good_db(narrow)) return reasons;
  if (!is_narrow_float(kept) && add(overflow_inside(found, narrow))) return reasons;
  if (is_narrow_float(kept) && add(denormal(found, kept))) return reasons;
  if (!add(weights(found))) add(operands(found));
  return reasons;
}

}  // namespace tosaic
