// SPDX-License-Identifier: Apache-2.0
// One argument of a node, by the tag of its JSON union. Private to read/.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "read/json.h"

namespace tosaic {

// The names of the tensors in an argument, an empty one for None; nothing when the argument holds no tensors.
std::optional<std::vector<std::string_view>> tensor_names(std::string_view tag, const Json& value);

// The name in as_sym_int{as_name}, as_sym_bool{..}, as_sym_float{..}.
std::optional<std::string_view> symbol_name(std::string_view tag, const Json& value);

// Any argument but tensors and graphs. `resolve` says what a name is that stands for an integer made of sizes.
using SymbolResolver = std::function<std::optional<Dim>(std::string_view name)>;
Attr read_attribute(std::string_view tag, const Json& value, const SymbolResolver& resolve);

}  // namespace tosaic
