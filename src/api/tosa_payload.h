// SPDX-License-Identifier: Apache-2.0
// The graph of a TOSA delegate in a program, with the constants that the program or its data files keep next to it.
#pragma once
#include <map>
#include <string>

#include "formats/pte/pte_file.h"
#include "ir/graph.h"

namespace tosaic {

// Does the payload keep constants outside itself?
bool has_constants_outside(const pte::Delegate& delegate);
// Errors: tosa-file.*.
Result<Graph> tosa_graph(const pte::Delegate& delegate, const std::map<std::string, Bytes>& data,
                         const std::string& name);

}  // namespace tosaic
