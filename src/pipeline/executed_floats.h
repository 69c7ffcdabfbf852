// SPDX-License-Identifier: Apache-2.0
// A program of floats as its delegates and the host compute it together, for who compares it.
#pragma once
#include "compare/narrow_floats.h"
#include "pipeline/context.h"

namespace tosaic {

// Of a program that was split for a target whose device keeps floats in its own way (Target::kept). Errors:
// compare.control-flow, those of lowering.
Result<NarrowFloats> executed_floats(const Split& split, const Context& c);

}  // namespace tosaic
