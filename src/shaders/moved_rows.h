// SPDX-License-Identifier: Apache-2.0
// Data layout operators that put whole rows of one tensor elsewhere, one after the other: windows of an image that is
// rolled before, neighbours that become channels. Together they are one GATHER with constant indices. So is a TRANSPOSE
// whose result an elementwise node reads in a shape with fewer dims: no strides say where it reads, and a GATHER is
// followed by that node in one dispatch.
#pragma once
#include "ir/graph.h"

namespace tosaic::shaders {

// A row has as many elements as the tensor's last dim.
void gather_moved_rows(Graph& graph);

}  // namespace tosaic::shaders
