// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decided.h"

#include <fmt/format.h>

namespace tosaic {

void say_decided(const Graph& graph, const Deciding& decided, const tosa::Spec& spec,
                 std::vector<Placement>& placements) {
  for (std::size_t n = 0; n < graph.nodes.size() && !spec.has(tosa::Feature::pro_fp); ++n) {
    const Node& node = graph.nodes[n];
    const Override* given = placements[n].region < 0 ? deciding_of(node, decided) : nullptr;
    if (given && given->form == Form::floating && placements[n].reason.code == "target.unsupported")
      placements[n].reason = located(
          error("target.float-by-plan", fmt::format("{} is to be float ('{}')", node.op, given->text())), node.loc);
  }
}

}  // namespace tosaic
