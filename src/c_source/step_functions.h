// SPDX-License-Identifier: Apache-2.0
// Steps as C functions of pointers to their operands. Steps that differ only in which operands these are, as in the
// blocks that a net repeats, share one. Private to src/c_source.
#pragma once
#include <map>
#include <string>

#include "c_source/step.h"

namespace tosaic::c_source {

class StepFunctions {
 public:
  explicit StepFunctions(const Planning& planning) : planning_(planning) {}
  // The name of the function of a step: its arguments are what the step reads, then what it writes, then
  // its scratch memory, if it has any.
  std::string of(const Step& step, const std::string& operators);
  const std::string& code() const { return code_; }

 private:
  const Planning& planning_;
  std::map<std::string, std::string> names_;  // by parameters and body
  std::string code_;
};

}  // namespace tosaic::c_source
