// SPDX-License-Identifier: Apache-2.0
// What a program returns as Python scalars (x.shape[0], item()), of something that gives tensors.
#pragma once
#include "session/runnable.h"

namespace tosaic {

// `scalars`: which of `inner`'s outputs they are, ascending; each has one element. `fixed`: what stands next to all of
// these. They become other outputs, known after the first run.
RunnablePtr split_scalar_outputs(RunnablePtr inner, const std::vector<std::size_t>& scalars, const FixedValues& fixed);

}  // namespace tosaic
