// SPDX-License-Identifier: Apache-2.0
// The samples' scores added up.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "evaluate/score.h"

namespace tosaic {

class ScoreSum {
 public:
  // In any order: the sums are made in the samples' order, so that they are the same whoever was faster.
  void add(std::size_t sample, const std::string& name, SampleScore score);
  std::size_t samples() const { return kept_.size(); }
  // What was added, with the `worst` samples. `outputs`: the program's.
  void write(Evaluated& to, std::span<const Argument> outputs, bool with_floats, std::size_t worst) const;

 private:
  struct Kept {
    std::string name;
    std::vector<OutputScore> outputs;
    std::optional<std::int64_t> label, said, floats_said;
  };
  std::map<std::size_t, Kept> kept_;
  Tally tally_;
  std::size_t classes_ = 0;
};

}  // namespace tosaic
