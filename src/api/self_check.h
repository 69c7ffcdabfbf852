// SPDX-License-Identifier: Apache-2.0
// The last stage where another compiler made the payloads (Vela): the finished program runs on one sample, its
// delegates in the simulator, and every delegate's output must be what its TOSA graph gives, bit for bit.
#pragma once
#include <string>
#include <vector>

#include "api/compile.h"

namespace tosaic {

struct SelfChecked {
  std::size_t delegates = 0;               // whose outputs were compared, and equal
  std::vector<Diagnostic> undecided = {};  // why the others could not be: the simulator knows no better
};

// `sample`: one tensor per tensor input of the model; where it does not fit, seeded codes take its place. Errors:
// self-check.differs, which names the operator and the user's line as far as the stream tells, and whatever the runtime
// refuses in a payload: vela.*, delegate.arguments, ethosu.*.
Result<SelfChecked> self_check(const Compiled& compiled, const std::vector<Tensor>& sample, int threads);

}  // namespace tosaic
