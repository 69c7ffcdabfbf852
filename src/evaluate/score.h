// SPDX-License-Identifier: Apache-2.0
// What one sample of a data set tells about a program, and the sum over all of them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tosaic/evaluation.hpp"

namespace tosaic {

// Counts of rows: they may be added in any order.
struct Tally {
  using Pairs = std::map<std::pair<std::int64_t, std::int64_t>, std::size_t>;  // (label, said)
  RightShare right, right_in_floats;
  Pairs pairs, pairs_in_floats;
  std::size_t rows = 0, agreed = 0;  // with floats
  void add(const Tally& other);
};

struct OutputScore {
  double signal = 0, noise = 0;
  std::size_t elements = 0, equal = 0;
};

struct SampleScore {
  Tally tally;
  std::vector<OutputScore> outputs;                      // with floats; of outputs that are no tensors empty
  std::optional<std::int64_t> label, said, floats_said;  // of the first row
  std::size_t classes = 0;
};

// Results with what their integers stand for, by the program's description of them.
struct Results {
  std::span<const Output> values;
  std::span<const Argument> described;
};
// `floats` is empty where there are none. Errors: evaluate.labels (they do not fit the first output's rows or classes),
// evaluate.outputs (the two programs give unlike results).
Result<SampleScore> score_of(const Results& got, const std::optional<Results>& floats, const LabelledSample& sample);

}  // namespace tosaic
