// SPDX-License-Identifier: Apache-2.0
// Elementwise operators as shaders: one function each, on numbers that are loaded already; and expressions of them.
#pragma once
#include <functional>

#include "plan/expression.h"
#include "shaders/kernel.h"

namespace tosaic::shaders {

// The place of the element: what an operator needs that does not treat all alike.
struct Place {
  Value index;            // in row-major order
  std::int64_t last = 1;  // size of the last dim: that of channels
};

// Is there a shader for this elementwise node?
bool has_element_shader(const tosa::View& view);
// What the node makes of the elements of its walked operands.
Value element(Kernel& kernel, const tosa::View& view, const std::vector<Value>& operands, const Place& place);

// The element at `index` of the expression's result. `known`: an operand that was computed already, and its element.
Value evaluate(Kernel& kernel, const plan::Expression& expression, Value index, ValueId known = no_value,
               Value known_element = {});

}  // namespace tosaic::shaders
