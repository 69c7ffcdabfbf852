// SPDX-License-Identifier: Apache-2.0
// The one way from symbolic sizes to numbers: a graph at given sizes.
#pragma once
#include <map>
#include <span>

#include "ir/graph.h"

namespace tosaic {

using Sizes = std::map<std::string, std::int64_t, std::less<>>;  // by the symbol's name

// The dim where these symbols are numbers; others stay. Throws what arithmetic throws.
Dim at(const Dim& dim, const Sizes& sizes);

// The symbols that the shapes of inputs and states are made of, by name. What else a graph has for sizes follows from
// them, or depends on values.
std::vector<Symbol> input_symbols(const Graph& graph);

// The sizes at which inputs have these shapes. Error model.size: there are none.
Result<Sizes> sizes_of(const Graph& graph, std::span<const Shape> shapes);
// The value of the only symbol of a dim at which it has this size; nothing: it has another form than a*s + b, or no
// such value.
std::optional<std::int64_t> value_of_symbol(const Dim& dim, std::int64_t size);
// Each symbol at its upper bound. Error model.size: one has none.
Result<Sizes> largest_sizes(const std::vector<Symbol>& symbols);

// Those whose sizes are no numbers yet; the others hold. Error model.size: one does not; `graph` says which inputs have
// these sizes.
Result<std::vector<Guard>> open_guards(const std::vector<Guard>& guards, const Sizes& sizes,
                                       const Graph* graph = nullptr);

// The graph, its bodies of control flow included, where these symbols are numbers: in types, in arguments, and as the
// integers that were computed from sizes, which become constants. Symbols that are not given must be such as depend on
// values, and stay. Error model.size: an input's symbol is not given, a name is no symbol, a number is outside of its
// range, or makes a type that no tensor can have.
Result<Graph> specialise(Graph graph, const Sizes& sizes);

// The same for symbols that need not be an input's: sizes that turned out to be numbers when what they are computed
// from was known. On an error the graph is of no use any more.
Status replace_symbols(Graph& graph, const Sizes& sizes);

}  // namespace tosaic
