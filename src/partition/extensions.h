// SPDX-License-Identifier: Apache-2.0
// Extensions of TOSA that a program's floats ask for.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

struct NeededExtension {
  tosa::Feature feature;
  DType dtype;  // which is why
};
// Those without which a target of this specification cannot hold floats of the program at all. Devices have what they
// have: for them there are none.
std::vector<NeededExtension> needed_extensions(const Graph& program, const tosa::Spec& spec);

}  // namespace tosaic
