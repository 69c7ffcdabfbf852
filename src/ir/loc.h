// SPDX-License-Identifier: Apache-2.0
// Where a node comes from in the user's own program. Shared by all nodes of one call, kept through lowering.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace tosaic {

struct Loc {
  Place place;                 // innermost stack frame outside torch
  std::string module_path;     // "features.3.conv"
  std::string module_type;     // "torch.nn.modules.conv.Conv2d"
  std::string torch_function;  // "conv2d_4"
  std::string op;              // the ATen operator that this became a node from: "aten.conv2d.default"
  std::string name;            // the node's name in the exported graph
  // The names of further nodes of that graph that were folded into it or recognised with it (ir/provenance.h).
  std::vector<std::string> also;
};
using LocRef = std::shared_ptr<const Loc>;

// Fills the location and "in module features.3.conv (Conv2d), node conv2d_4" into the diagnostic; a null loc changes
// nothing.
Diagnostic located(Diagnostic diagnostic, const LocRef& loc);
// "model.py:6", or the file alone where no line is known, or nothing.
std::string place_text(const LocRef& loc);
// "features.3.conv, model.py:6" without the file's folder, for what leaves this machine; what is not known is left out.
std::string layer_text(const LocRef& loc);

}  // namespace tosaic
