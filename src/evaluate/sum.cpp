// SPDX-License-Identifier: Apache-2.0
#include "evaluate/sum.h"

#include <algorithm>
#include <limits>

#include "compare/difference.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

bool is_real(const TensorInfo& info) { return is_float(info.dtype) || !info.scale.empty(); }

std::vector<Confusion> confusion_of(const Tally& tally) {
  std::map<std::pair<std::int64_t, std::int64_t>, Confusion> all;
  for (const auto& [pair, times] : tally.pairs) all[pair] = {pair.first, pair.second, times, 0};
  for (const auto& [pair, times] : tally.pairs_in_floats) {
    Confusion& one = all.try_emplace(pair, Confusion{pair.first, pair.second, 0, 0}).first->second;
    one.times_in_floats = times;
  }
  std::vector<Confusion> list;
  for (const auto& [pair, one] : all) list.push_back(one);
  std::ranges::stable_sort(list, [](const Confusion& a, const Confusion& b) {
    const bool mistaken = a.label != a.said, other = b.label != b.said;
    return mistaken != other ? mistaken : a.times > b.times;
  });
  return list;
}

}  // namespace

void ScoreSum::add(std::size_t sample, const std::string& name, SampleScore score) {
  tally_.add(score.tally);
  classes_ = std::max(classes_, score.classes);
  kept_[sample] = {name, std::move(score.outputs), score.label, score.said, score.floats_said};
}

void ScoreSum::write(Evaluated& to, std::span<const Argument> outputs, bool with_floats, std::size_t worst) const {
  to.samples = kept_.size();
  to.classes = classes_;
  if (tally_.right.labels) to.right = tally_.right;
  if (tally_.right_in_floats.labels) to.right_in_floats = tally_.right_in_floats;
  if (tally_.rows) to.agreement = 100.0 * static_cast<double>(tally_.agreed) / static_cast<double>(tally_.rows);
  to.confusion = confusion_of(tally_);
  if (!with_floats) return;
  std::vector<OutputScore> sums(outputs.size());
  for (const auto& [sample, kept] : kept_) {
    WorstSample row{sample,     kept.name, std::numeric_limits<double>::infinity(),
                    kept.label, kept.said, kept.floats_said};
    for (std::size_t i = 0; i < kept.outputs.size() && i < sums.size(); ++i) {
      const OutputScore& one = kept.outputs[i];
      sums[i].signal += one.signal;
      sums[i].noise += one.noise;
      sums[i].elements += one.elements;
      sums[i].equal += one.equal;
      if (outputs[i].tensor && is_real(*outputs[i].tensor))
        row.db = std::min(row.db, signal_to_noise_db(one.signal, one.noise));
    }
    to.worst.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!outputs[i].tensor || sums[i].elements == 0) continue;
    EvaluatedOutput output{outputs[i].name, to_string(*outputs[i].tensor), {}, {}};
    if (is_real(*outputs[i].tensor))
      output.db = signal_to_noise_db(sums[i].signal, sums[i].noise);
    else
      output.equal = static_cast<double>(sums[i].equal) / static_cast<double>(sums[i].elements);
    to.outputs.push_back(std::move(output));
  }
  std::ranges::stable_sort(to.worst, {}, &WorstSample::db);
  if (to.worst.size() > worst) to.worst.resize(worst);
}

}  // namespace tosaic
