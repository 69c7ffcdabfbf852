// SPDX-License-Identifier: Apache-2.0
// One graph for many sizes. Lowering computes with numbers; so a program is lowered at several sizes, and what these
// graphs have in common is the graph of all of them: the same nodes, in whose types and shapes a number that differs is
// the Dim that gives it at every one of the sizes. What is no such Dim is refused, never guessed.
#pragma once
#include <span>
#include <vector>

#include "ir/specialise.h"

namespace tosaic {

struct AtSizes {
  Sizes sizes;
  Graph graph;
};

// Symbols as tensors with elements have them (at least 1). Error model.size: one has no upper bound.
Result<std::vector<Symbol>> bounded(std::vector<Symbol> symbols);
// Where to look at a program: the upper bounds first, then the lowest ones, those around which min, max and comparisons
// of its sizes change sides, and others, spread and unlike each other; all there are, if they are few. Its guards hold
// at each. Error lower.sizes: at the upper bounds they do not.
Result<std::vector<Sizes>> looked_at(std::span<const Symbol> symbols, const Graph& program);

// `given` are what one program became at those sizes. RESHAPE, TILE and SLICE keep the shape operands of the first;
// their result's type says the size, and symbolic_start (ir/extent.h) where a SLICE begins. A constant that is smaller
// at smaller sizes is a SLICE of the largest; one number for an elementwise operator that is a size, or in f32 1 /
// size, has that size as its Value::size; one that is its root, or 1 / root, is computed from it. Error lower.sizes:
// something else depends on a size, with its location. `program`: the exported one, whose own sizes (x.shape[0] // 2)
// may be met again. `delegate`: what the graphs call as such, over sizes already.
Result<Graph> over_sizes(std::vector<AtSizes> given, std::span<const Symbol> symbols, const Graph& program,
                         const Graph* delegate = nullptr);

}  // namespace tosaic
