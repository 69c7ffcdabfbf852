// SPDX-License-Identifier: Apache-2.0
// What an argument that is no tensor may be.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "ir/dtype.h"

namespace tosaic {

// An argument whose value is known only when the program runs ("sym_size_int_1"), and what it is if it follows from
// sizes. In a list of arguments a number has no name, and is a size that is a number.
struct SymbolicArgument {
  std::string name;
  std::optional<Dim> size = std::nullopt;
  bool operator==(const SymbolicArgument&) const = default;
};

// monostate is Python's None.
using Attr =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>, DType, SymbolicArgument, std::vector<SymbolicArgument>>;

}  // namespace tosaic
