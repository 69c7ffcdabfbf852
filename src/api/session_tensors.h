// SPDX-License-Identifier: Apache-2.0
// A session run on tensors of our own.
#pragma once
#include <vector>

#include "ir/tensor.h"
#include "tosaic/session.hpp"

namespace tosaic {

// What the session makes of them; results that are no tensors are left out. Errors: those of Session::run.
Result<std::vector<Tensor>> results_of(Session& session, const std::vector<Tensor>& inputs);

}  // namespace tosaic
