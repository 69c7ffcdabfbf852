// SPDX-License-Identifier: Apache-2.0
// What a program returns as numbers of Python's (x.shape[0], item()), of something that gives tensors.
#pragma once
#include "session/runnable.h"

namespace tosaic {

// `numbers`: which of `inner`'s outputs they are, ascending; each has one element. `fixed`: what stands beside all of
// these. They become other outputs, known behind the first run.
RunnablePtr numbers_apart(RunnablePtr inner, const std::vector<std::size_t>& numbers, const FixedValues& fixed);

}  // namespace tosaic
