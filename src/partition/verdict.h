// SPDX-License-Identifier: Apache-2.0
// What became of each node of the exported program, by the name that it has in the user's `ep.graph`: stages fold,
// expand and recognise, and each node that they make says (Loc) which exported nodes it stands for.
#pragma once
#include <string>
#include <vector>

#include "ir/provenance.h"
#include "partition/partition.h"

namespace tosaic {

struct Verdict {
  ExportedNode node;
  // Everything that it became runs in delegates. So does what left nothing to run: constants, identities, assertions.
  bool taken = true;
  std::size_t pieces = 0;      // the nodes that it became, conversions at a delegate's boundary not counted
  std::vector<int> delegates;  // where pieces of it run, ascending
  Diagnostic reason;           // why the first piece that stays behind does
};
// `placements`: one per node of `graph`, which the stages made of the program.
std::vector<Verdict> verdicts(const std::vector<ExportedNode>& exported, const Graph& graph,
                              const std::vector<Placement>& placements);

}  // namespace tosaic
