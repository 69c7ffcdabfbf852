// SPDX-License-Identifier: Apache-2.0
// The values of a program that is being packed: tensors and where they lie, numbers, and the calls that make them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/graph.h"
#include "plan/arena.h"

namespace tosaic::packing {

using Index = std::int32_t;  // of a value, operator or instruction of the plan
inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

class PlanValues {
 protected:
  explicit PlanValues(Graph graph) : g_(std::move(graph)) {}

  // The number of the next instruction.
  std::uint32_t now() const { return static_cast<std::uint32_t>(plan_.instructions.size()); }

  Index add(pte::Value value);
  // Equal numbers share one value.
  Index constant(pte::Value value);
  // The value of a tensor, made when first met; its memory is needed from here on.
  Result<Index> tensor(ValueId v);
  Result<Index> use(ValueId v);
  void call(const pte::OperatorName& name, std::vector<Index> args);
  // What a tensor of one element holds.
  Index number_in(Index tensor, DType type);

  // Plans the memory of all tensors, but of new contents that are written `in_place` of the old ones.
  void place(const std::set<ValueId>& in_place, bool states_apart);

  Graph g_;
  pte::Plan plan_;
  std::vector<Index> tensors_;           // by graph value: its index in the plan, -1 before it is met
  std::vector<plan::Buffer> lifetimes_;  // by graph value

 private:
  std::map<std::string, Index> constants_;
  std::map<std::pair<std::string, std::string>, Index> operators_;
};

}  // namespace tosaic::packing
