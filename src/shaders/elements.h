// SPDX-License-Identifier: Apache-2.0
// Elementwise operators as shaders: one function each, on numbers that are loaded already; and expressions of them.
#pragma once
#include <functional>
#include <map>
#include <span>

#include "plan/expression.h"
#include "shaders/kernel.h"

namespace tosaic::shaders {

// The place of the element, or of the first of four: what an operator needs that does not treat all alike.
class ElementIndex {
 public:
  // `index` in row-major order; `last`: size of the last dim, that of channels.
  ElementIndex(Value index, Dim last, bool quads = false) : index_(index), last_(last), quads_(quads) {}
  // The channel's number of a list, for element `lane` of four; of each of several lists, which are one constant.
  Value of_channel(Kernel& kernel, const std::vector<std::int32_t>& list) const;
  std::vector<Value> of_channels(Kernel& kernel, const std::vector<std::vector<std::int32_t>>& lists) const;
  mutable int lane = 0;

 private:
  Value index_;
  Dim last_;
  bool quads_;
  mutable std::map<std::pair<Id, std::size_t>, Quad> loaded_;  // of lists, by their buffer and number
};

// Is there a shader for this elementwise node?
bool has_element_shader(const tosa::View& view);
// What the node makes of the elements of its walked operands.
Value element(Kernel& kernel, const tosa::View& view, const std::vector<Value>& operands,
              const ElementIndex& element_index);

// The element at `index` of the expression's result. `known`: operands that were computed already, and their elements.
using Known = std::map<ValueId, Value>;
Value evaluate(Kernel& kernel, const plan::Expression& expression, Value index, const Known& known = {});

// The same of several results: of the last call's, and of those of `others`, which go on as they are stored. `known`:
// elements of inputs that are at hand already, by their number.
std::vector<Value> evaluate(Kernel& kernel, const plan::Expression& expression, Value index,
                            std::span<const ValueId> others, const std::map<std::size_t, Value>& known = {});

// Does it treat elements by where they stand: reads another tensor there, or has numbers of its own for each channel?
bool depends_on_places(const Graph& graph, const plan::Expression& expression);

// Four elements at once, of which `index`, a multiple of four, is the first.
bool has_quads(const Graph& graph, const plan::Expression& expression);
bool walks_by_quads(const Graph& graph, const plan::Expression& expression);
Quad evaluate_quad(Kernel& kernel, const plan::Expression& expression, Value index,
                   const std::map<ValueId, Quad>& known = {});
std::vector<Quad> evaluate_quads(Kernel& kernel, const plan::Expression& expression, Value index,
                                 std::span<const ValueId> others);

}  // namespace tosaic::shaders
