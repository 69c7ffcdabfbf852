// SPDX-License-Identifier: Apache-2.0
// How factors of a tensor's channels go through TOSA operators: relu(s x) = s relu(x) for s > 0, and the like. Private
// to quantise/.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Positive numbers that are to be chosen, some of which have to be the same.
class Factors {
 public:
  using Id = std::uint32_t;
  static constexpr Id one = 0;  // the number 1
  Id fresh();
  void tie(Id a, Id b);
  // Ids that are tied have one root; that of `one` is itself.
  Id root(Id id) const;
  bool is_one(Id id) const { return root(id) == one; }
  std::size_t count() const { return above_.size(); }

 private:
  std::vector<Id> above_{one};
};

// A tensor whose elements at index i of `dim` have the factor by_index[i], to the given power.
struct ChannelFactors {
  int dim = 0;
  std::vector<Factors::Id> by_index;
  int power = 1;
};
using FactorsOfValues = std::vector<std::optional<ChannelFactors>>;  // per value

// May any of them be other than 1?
bool varies(const std::optional<ChannelFactors>& channels, const Factors& factors);

// All of them become 1.
void make_one(const std::optional<ChannelFactors>& channels, Factors& factors);

// `of` has those of the graph's inputs. Each result gets what its operands' factors make of it; where they make nothing
// of the kind, they become 1. Through a clamp that is right for factors of at least 1, as long as what they make larger
// stays within its bounds.
void spread_factors(const Graph& tosa, FactorsOfValues& of, Factors& factors);

}  // namespace tosaic
