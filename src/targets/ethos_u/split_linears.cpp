// SPDX-License-Identifier: Apache-2.0
// A packed linear (query, key and value in one) whose channels are cut apart and then turned: every cut is a copy.
// One convolution per part, with its part of the weights, writes what the copies would.
#include <algorithm>
#include <optional>

#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

struct Part {
  std::uint32_t slice;  // its node
  std::int64_t start, size;
};

// A slice of a range of channels, all of every other dim.
std::optional<Part> part_of_channels(const Graph& graph, std::uint32_t n) {
  const Node& node = graph.nodes[n];
  const auto cut = node.op == tosa::op::slice ? constant_cut(graph, node) : std::nullopt;
  if (!cut) return std::nullopt;
  const Shape& shape = graph[node.inputs[0]].type.shape;
  for (int d = 0; d + 1 < shape.rank(); ++d)
    if (cut->size[static_cast<std::size_t>(d)] != shape.size(d)) return std::nullopt;
  return Part{n, cut->start.back(), cut->size.back()};
}

struct Packed {
  std::uint32_t convolution;
  std::vector<Part> parts;
};

// The convolution of rescale `n`, and the parts, if nothing else reads either and the parts do not overlap.
std::optional<Packed> packed(const Graph& graph, const std::vector<std::int32_t>& made_by,
                             const std::vector<std::vector<std::uint32_t>>& read_by, std::uint32_t n) {
  const Node& rescale = graph.nodes[n];
  if (rescale.op != tosa::op::rescale || made_by[rescale.inputs[0]] < 0) return std::nullopt;
  Packed p{static_cast<std::uint32_t>(made_by[rescale.inputs[0]]), {}};
  const Node& conv = graph.nodes[p.convolution];
  const ValueId y = rescale.outputs[0];
  if (conv.op != tosa::op::conv2d || read_by[rescale.inputs[0]].size() != 1 || read_by[y].size() < 2 ||
      std::count(graph.outputs.begin(), graph.outputs.end(), y) ||
      std::count(graph.outputs.begin(), graph.outputs.end(), rescale.inputs[0]))
    return std::nullopt;
  for (ValueId v : {conv.inputs[1], conv.inputs[2], rescale.inputs[1], rescale.inputs[2]})
    if (!graph[v].is_constant()) return std::nullopt;
  std::int64_t all = 0;
  bool copied = false;  // a cut that a command reads directly costs nothing where it is
  for (std::uint32_t reader : read_by[y]) {
    const auto part = part_of_channels(graph, reader);
    if (!part) return std::nullopt;
    for (std::uint32_t after : read_by[graph.nodes[reader].outputs[0]])
      copied |= graph.nodes[after].op == tosa::op::reshape || graph.nodes[after].op == tosa::op::transpose;
    all += part->size;
    p.parts.push_back(*part);
  }
  if (!copied || all > graph[y].type.shape.size(graph[y].type.rank() - 1)) return std::nullopt;
  return p;
}

// Elements [start, start + size) of the first dim; a constant with one element for all channels stays.
ValueId rows_of(Graph& graph, ValueId v, const Part& part) {
  const Value whole = graph[v];
  if (whole.type.shape.size(0) == 1) return v;
  const std::int64_t row = whole.type.shape.elements() / whole.type.shape.size(0);
  Ints integers;
  for (std::int64_t i = part.start * row; i < (part.start + part.size) * row; ++i)
    integers.push_back(element_as_integer(whole.type.dtype, whole.constant.data(), static_cast<std::size_t>(i)));
  Ints dims = whole.type.shape.sizes();
  dims[0] = part.size;
  return graph.add_value(whole.name, {whole.type.dtype, Shape(dims), {}}, constant_bytes(whole.type.dtype, integers));
}

}  // namespace

void split_linears(Graph& graph) {
  const auto made_by = producers(graph);
  const auto read_by = consumers(graph);
  std::vector<Packed> found;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n)
    if (auto p = packed(graph, made_by, read_by, n)) found.push_back(*std::move(p));
  if (found.empty()) return;
  const std::vector<Node> before = graph.nodes;
  std::vector<const Packed*> of(before.size(), nullptr);
  for (const Packed& p : found)
    for (const Part& part : p.parts) of[part.slice] = &p;
  Rewriter out(graph);
  for (std::size_t n = 0; n < before.size(); ++n) {
    Node node = std::move(out.nodes()[n]);
    if (!of[n]) {
      out.keep(std::move(node));
      continue;
    }
    Node conv = before[of[n]->convolution];
    const Part part =
        *std::find_if(of[n]->parts.begin(), of[n]->parts.end(), [&](const Part& p) { return p.slice == n; });
    const auto r = static_cast<std::size_t>(made_by[node.inputs[0]]);
    const DType sums = graph[conv.outputs[0]].type.dtype;
    Ints dims = graph[conv.outputs[0]].type.shape.sizes();
    dims.back() = part.size;
    for (std::size_t i : {std::size_t{1}, std::size_t{2}}) conv.inputs[i] = rows_of(graph, conv.inputs[i], part);
    conv.outputs[0] = out.add(conv.op, conv.inputs, conv.attrs, {sums, Shape(dims), {}}, conv.loc);
    Node rescale = before[r];
    rescale.inputs[0] = conv.outputs[0];
    for (std::size_t i : {std::size_t{1}, std::size_t{2}}) rescale.inputs[i] = rows_of(graph, rescale.inputs[i], part);
    rescale.outputs = {node.outputs[0]};
    out.keep(std::move(rescale));
  }
  drop_dead(graph);
}

}  // namespace tosaic::ethos_u
