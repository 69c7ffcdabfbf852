// SPDX-License-Identifier: Apache-2.0
// Numbers of a list attribute that follow from sizes: Dims, which stand next to those of the largest sizes.
#pragma once
#include <string>

#include "ir/graph.h"

namespace tosaic {

inline std::string sized_name(std::string_view attribute) { return "symbolic_" + std::string(attribute); }

// Number i; nothing: the attribute is as it stands for all sizes.
inline std::optional<Dim> sized_attribute(const Attrs& attrs, std::string_view attribute, std::size_t i) {
  const Attr* attr = attrs.find(sized_name(attribute));
  return attr ? std::get<std::vector<SymbolicArgument>>(*attr).at(i).size : std::nullopt;
}

}  // namespace tosaic
