// SPDX-License-Identifier: Apache-2.0
// What is compared with what: the calls of a quantised program, and the float tensors that their results stand for.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "quantise/float_program.h"

namespace tosaic {

// For the tensors of a quantised program, those of the float program.
class Counterparts {
 public:
  Counterparts(const Graph& quantised, const Graph& floats);
  // no_value: there is none.
  ValueId of(ValueId v) const { return v == no_value ? no_value : of_[v]; }
  // A call of our own: a conversion, or a copy in another width.
  bool is_ours(const Node& call) const;

 private:
  const Graph& quantised_;
  std::unordered_map<std::string, ValueId> by_name_;
  std::vector<ValueId> of_;
};

struct Layer {
  std::vector<std::size_t> calls;  // nodes of the quantised program, in order: the last one bounds what the others give
  ValueId result = no_value;       // of the last
  ValueId wanted = no_value;       // the same in floats
  int channel_dim = -1;            // of both; -1: there is none
};

// In the program's order. Results without a counterpart of floats are no layer's.
std::vector<Layer> layers_of(const Graph& quantised, const FloatProgram& floats, const Counterparts& counterparts);

}  // namespace tosaic
