// SPDX-License-Identifier: Apache-2.0
// The last stage where another compiler made the payloads (Vela): the finished program runs on one sample, its
// delegates in the simulator, and every delegate's output must be what its TOSA graph gives, bit for bit.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stages.h"

namespace tosaic {

struct SelfChecked {
  std::size_t delegates = 0;               // whose outputs were compared, and equal
  std::vector<Diagnostic> undecided = {};  // why the others could not be: the simulator knows no better
  std::vector<Fault> faults = {};
};

// `sample`: one tensor per tensor input of the model; where it does not fit, seeded quantised values take its place.
// What is found is self-check.differs, which names the operator and the user's line as far as the stream tells, and
// whatever the runtime refuses in a payload: vela.*, delegate.arguments, ethosu.*.
SelfChecked self_check(const Compiled& compiled, const std::vector<Tensor>& sample, int threads);
// One delegate alone, on these inputs and seeded quantised values for the others. Nothing: it gave what its graph
// gives, or the simulator cannot tell.
std::optional<Fault> self_check_alone(const Target& target, const Graph& lowered, const Emitted& emitted,
                                      const GivenInputs& inputs, int threads);

}  // namespace tosaic
