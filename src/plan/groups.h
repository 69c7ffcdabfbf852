// SPDX-License-Identifier: Apache-2.0
// Which nodes an executor computes together: elementwise nodes that serve only each other, alone or as the epilogue of
// a convolution, a matrix product, ... whose sums they finish while these are still close.
#pragma once
#include <functional>
#include <vector>

#include "plan/uses.h"

namespace tosaic::plan {

// What an executor answers about elementwise nodes.
struct Fusing {
  std::function<bool(std::uint32_t node)> can;  // is it free, and has the executor arithmetic for it?
  std::size_t max_nodes;                        // in one group
  bool joins = false;  // may an epilogue be read more than once on its way, if it comes together?
};

// The members and all nodes that serve only them and that `takes` accepts, at most so many, ascending.
std::vector<std::uint32_t> with_producers(const Uses& uses, std::vector<std::uint32_t> members, std::size_t most,
                                          const std::function<bool(std::uint32_t node)>& takes);

// Node `last` and all elementwise nodes that serve only it, ascending. `stop` is not looked through.
std::vector<std::uint32_t> elementwise_group(const Uses& uses, const Fusing& fusing, std::uint32_t last,
                                             ValueId stop = no_value);

// Such a group with elementwise nodes whose results it reads though others read them, too, and with what then serves
// only it: where all those others, and who reads views of them, come after the group's last node. A step that stores
// these results as well can stand where that node stands: what others make of them does not come back into it.
// `takes`: may these nodes, ascending, be one group? It is asked for each that the group grows to.
std::vector<std::uint32_t> with_shared_results(
    const Uses& uses, const Fusing& fusing, std::vector<std::uint32_t> group,
    const std::function<bool(const std::vector<std::uint32_t>& nodes)>& takes);

// The longest run of elementwise nodes behind `value`, each the only reader of the one before (or where all that read
// it have come together), with what serves only them: a group that `take` accepts. Shorter ones are offered until it
// does; false: none.
bool longest_epilogue(const Uses& uses, const Fusing& fusing, ValueId value,
                      const std::function<bool(const std::vector<std::uint32_t>& nodes)>& take);

}  // namespace tosaic::plan
