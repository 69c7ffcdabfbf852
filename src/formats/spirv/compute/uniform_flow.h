// SPDX-License-Identifier: Apache-2.0
// Which values are the same for all invocations of a work group, as far as can be told without running anything: a
// barrier that not all of them reach is a hang, or worse.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

class UniformFlow {
 public:
  // A value made of others: it varies where one of them does.
  void value(Id result, std::span<const Id> operands);
  // One that differs from invocation to invocation.
  void varying(Id result) { varying_.push_back(result); }
  void store(Id variable, Id value);
  // Blocks that run by a condition.
  void enter(Id condition) { conditions_.push_back(condition); }
  void leave() { conditions_.pop_back(); }
  void barrier();
  // Does every invocation reach every barrier as often as the others?
  bool barriers_are_uniform(Id bound) const;

 private:
  std::vector<std::pair<Id, Id>> edges_;  // what varies with what
  std::vector<Id> varying_, conditions_, around_barriers_;
};

}  // namespace tosaic::spirv
