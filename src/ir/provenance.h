// SPDX-License-Identifier: Apache-2.0
// Which nodes of the exported graph a node stands for. Stages fold and recognise: a Loc has the name of the call
// itself, and those of the others.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

std::vector<std::string_view> exported_names(const Loc& loc);
// `first`, which now stands for the exported nodes of `second`, too.
LocRef joined(const LocRef& first, const LocRef& second);

struct ExportedNode {
  std::string name, op;  // "conv2d_4", "aten.conv2d.default"
  LocRef loc;
};
// Of a program as it was read.
std::vector<ExportedNode> exported_nodes(const Graph& program);
// Of the nodes' names and operators, 16 digits: another one for another program.
std::string fingerprint(const std::vector<ExportedNode>& nodes);

}  // namespace tosaic
