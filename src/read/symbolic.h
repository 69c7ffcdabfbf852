// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: sympy's srepr text, "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))",
// as the short text that people read, "2*s77 + 1", and its bounds by interval arithmetic. Private to read/.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tosaic {

// Inclusive; no bound on a side where there is none or where it would not fit 64 bits.
struct Bounds {
  std::optional<std::int64_t> lowest, highest;
};

struct SymbolicExpression {
  std::string text;
  Bounds bounds;
};

using SymbolBounds = std::function<Bounds(std::string_view symbol)>;

// Never fails: text that is not understood is kept as it is, without bounds.
SymbolicExpression read_symbolic(std::string_view srepr, const SymbolBounds& bounds_of);

}  // namespace tosaic
