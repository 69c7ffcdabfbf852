// SPDX-License-Identifier: Apache-2.0
#include "quantise/norms_anew.h"

#include <algorithm>

#include "quantise/norms_in_parts.h"

namespace tosaic {

RowScaling write_norms_anew(Graph& graph, std::vector<RowNorm> norms, const Calibrated& seen, const RowSizes& rows,
                            std::vector<char>& inner, CertainRanges& certain, ScaledRows& scaled,
                            std::set<ValueId>& refused, const QuantiseOptions& options) {
  std::vector<double> largest;
  for (const Range& range : seen.ranges) largest.push_back(std::max(-range.lowest, range.highest));
  // Those that can be held in parts wait for the others: indices of nodes are those of one graph.
  const auto in_parts = [&](const RowNorm& norm) {
    return !refused.contains(norm.size) && fits_parts(graph, norm, seen.plan.wide, inner, options);
  };
  if (std::ranges::all_of(norms, in_parts)) {
    std::vector<Ends> ends;
    for (const RowNorm& norm : norms)
      ends.push_back(parts_of(graph, norm, largest[norm.source] / 127, rows.largest(norm)));
    hold_in_parts(graph, norms, ends, inner, certain, refused);
    return {std::move(norms), std::move(ends), {}, {}, {}};
  }
  std::erase_if(norms, in_parts);
  scale_rows(graph, norms, largest, seen.plan.wide, inner, certain, scaled);
  std::vector<Ends> of_scaled;
  hold_scaled_in_parts(graph, scaled, options, inner, certain, of_scaled);
  return {std::move(norms), {}, std::move(largest), seen.plan.wide, std::move(of_scaled)};
}

void write_norms_as(const std::vector<RowScaling>& rounds, Graph& graph, std::vector<char>& inner,
                    CertainRanges& certain, ScaledRows& scaled, const QuantiseOptions& options) {
  std::set<ValueId> refused;
  for (const RowScaling& round : rounds)
    if (!round.only_parts()) {
      scale_rows(graph, round.norms, round.largest, round.wide, inner, certain, scaled);
      std::vector<Ends> of_scaled = round.of_scaled;
      hold_scaled_in_parts(graph, scaled, options, inner, certain, of_scaled);
    } else {
      hold_in_parts(graph, round.norms, round.ends, inner, certain, refused);
    }
}

}  // namespace tosaic
