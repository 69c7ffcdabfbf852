// SPDX-License-Identifier: Apache-2.0
// What PyTorch's naming says of an operator that we have no schema of: "aten.relu_.default" writes to its first
// tensor, "aten.add.out" to one that it is given.
#pragma once
#include <string_view>

namespace tosaic {

inline std::string_view overload_in(std::string_view op) { return op.substr(op.rfind('.') + 1); }

inline bool name_says_in_place(std::string_view op) {
  const auto name = op.substr(0, op.rfind('.'));
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

inline bool name_says_out(std::string_view op) { return overload_in(op) == "out" || overload_in(op).ends_with("_out"); }

}  // namespace tosaic
