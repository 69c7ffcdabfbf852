// SPDX-License-Identifier: Apache-2.0
// Marks: what tosaic itself notes on a node. They stand among its attributes, so that graph text shows and keeps them;
// their names and types stand here alone, and `verify` holds nodes to them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

template <class T>
struct Mark {
  std::string_view name;
};

namespace mark {
// Of control flow.
inline constexpr Mark<std::string> kept{"kept"};                        // why its subgraphs are not inlined
inline constexpr Mark<std::string> floats{"floats"};                    // why they compute floats in an integer program
inline constexpr Mark<std::vector<std::int64_t>> operands{"operands"};  // tensors of each argument
// Of the call of a delegate: its number among the regions.
inline constexpr Mark<std::int64_t> region{"region"};
// Of operators that tosaic does not know: their arguments in the program's order, "NAME", "Tensor? NAME" or
// "Tensor?[] COUNT NAME"; that they act on operands or on the outside; that PyTorch decomposes them no further.
inline constexpr Mark<std::vector<std::string>> argument_order{"argument_order"};
inline constexpr Mark<bool> effect{"effect"}, undecomposed{"undecomposed"};
inline constexpr Mark<bool> complex_results{"complex_results"};  // real and imaginary parts, not yet pairs of floats
inline constexpr Mark<bool> exact{"exact"};  // its rounding shows: the nearest float (normalise/seen_rounding.cpp)
// How a function of 16 bits is computed (quantise/function_forms.h): with knots next to 0 that lie so many times closer
// to each other; without a table.
inline constexpr Mark<std::int64_t> finer{"finer"};
inline constexpr Mark<bool> integers{"integers"};
inline constexpr Mark<bool> distinct{"distinct"};  // its indices name no element twice: one SCATTER
// Of each constant operand that grows with the sizes: its largest magnitude at any of them; else 0.
inline constexpr Mark<std::vector<double>> largest{"largest"};
// Of the partitioner: why it stays outside every delegate; that no neighbour shares its delegate.
inline constexpr Mark<std::string> set_aside{"set_aside"};
inline constexpr Mark<bool> own_delegate{"own_delegate"};
}  // namespace mark

// The mark; nullptr: the node has none.
template <class T>
const T* find_mark(const Attrs& attrs, Mark<T> mark) {
  const Attr* attr = attrs.find(mark.name);
  return attr ? std::get_if<T>(attr) : nullptr;
}
template <class T>
const T* find_mark(const Node& node, Mark<T> mark) {
  return find_mark(node.attrs, mark);
}
template <class T>
bool has_mark(const Node& node, Mark<T> mark) {
  return find_mark(node, mark) != nullptr;
}
template <class T>
void set_mark(Node& node, Mark<T> mark, T value) {
  node.attrs.set(std::string(mark.name), std::move(value));
}

// What is wrong with the marks of control flow, delegates' calls and PyTorch's operators (others may have arguments of
// these names); nullopt: nothing.
std::optional<std::string> marks_problem(const Node& node);

}  // namespace tosaic
