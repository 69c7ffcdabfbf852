// SPDX-License-Identifier: Apache-2.0
// Operators on shapes (TOSA 1.1). As all sizes in a file are fixed, what they compute is known where it is read: a
// constant, as that of CONST_SHAPE.
#pragma once
#include "ir/graph.h"

namespace tosaic::tosa_file {

bool computes_shape(const Node& node);
// Makes constants of the node's results, which are in the graph; the node itself is not. Errors: as verify_graph's, and
// "tosa.unpredictable" where the sizes are not allowed, or not those that the file asserts.
Status compute_shape(Graph& graph, const Node& node);

}  // namespace tosaic::tosa_file
