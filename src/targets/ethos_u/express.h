// SPDX-License-Identifier: Apache-2.0
// What a device has no command for, said in operators that it has, bit for bit equal. The rules of products.cpp ask
// here before they refuse a node, so what can be lowered around is not listed anywhere: it is tried.
#pragma once
#include <optional>

#include "targets/ethos_u/rewrites.h"

namespace tosaic::ethos_u {

using NativeCheck = tosa::Check (*)(const tosa::View&);  // what the device has a command for

tosa::Check native_u55(const tosa::View& view);  // U65 too
tosa::Check native_u85(const tosa::View& view);

// Rewrites the nodes that are not native, again and again until no rewrite applies.
void express(Graph& graph, NativeCheck native);
// Nothing when the node is native or becomes so, else why it is not.
tosa::Check expressible(const tosa::View& view, NativeCheck native);
// Whether an operand is made of constants alone: a constant, or a large one on its way there.
bool will_be_constant(const tosa::View& view, std::size_t operand);

// A RESCALE is fused into a convolution only right after it: views, cuts and concatenations that a rewrite put between
// the two go behind the RESCALE.
void results_before_views(Graph& graph);

// One rewrite: writes other nodes for `node` and says so, or leaves everything as it is.
using Rewrite = bool (*)(Rewriter& out, Graph& graph, const Node& node);
bool conv3d_by_slices(Rewriter& out, Graph& graph, const Node& node);
bool long_stride_into_channels(Rewriter& out, Graph& graph, const Node& node);
bool long_stride_in_two_steps(Rewriter& out, Graph& graph, const Node& node);
bool tall_kernel_into_channels(Rewriter& out, Graph& graph, const Node& node);
bool depthwise_as_dense(Rewriter& out, Graph& graph, const Node& node);
bool transposed_by_phases(Rewriter& out, Graph& graph, const Node& node);
bool average_as_sums(Rewriter& out, Graph& graph, const Node& node);
bool average_by_zones(Rewriter& out, Graph& graph, const Node& node);
bool long_sum_in_two_steps(Rewriter& out, Graph& graph, const Node& node);
bool split_long_transpose(Rewriter& out, Graph& graph, const Node& node);
bool nearest_by_copies(Rewriter& out, Graph& graph, const Node& node);
bool bilinear_by_phases(Rewriter& out, Graph& graph, const Node& node);
bool select_by_bounds(Rewriter& out, Graph& graph, const Node& node);

// Convolutions that have a command, said in one that is cheaper.
// Depthwise ones with a multiplier, on up to so many channels, as dense ones.
void multipliers_as_dense(Graph& graph, std::int64_t most_channels);
// Transposed ones as plain ones, those whose results must be cut too, or not.
void transposed_as_convolutions(Graph& graph, bool cuts_too);

// More words for rewrites, all of one location in the user's source.
struct Words {
  Rewriter& out;
  Graph& graph;
  LocRef loc;

  const TensorType& type(ValueId v) const { return graph[v].type; }
  ValueId reshape(ValueId x, const Ints& dims, ValueId to = no_value) { return out.reshape(x, dims, loc, to); }
  ValueId slice(ValueId x, int axis, std::int64_t start, std::int64_t size);
  ValueId concat(const std::vector<ValueId>& parts, int axis, ValueId to = no_value);
  // Rows before and after along one axis; `value` is a constant of one element. Nothing to pad: x.
  ValueId pad(ValueId x, int axis, std::int64_t before, std::int64_t after, ValueId value);
  ValueId integers(DType type, const Ints& values);
  ValueId rescale(ValueId x, DType to, std::int64_t multiplier, std::int64_t shift, ValueId input_zp, ValueId output_zp,
                  ValueId result = no_value);
  ValueId sum(ValueId x, int axis);
  // Elements 0, step, 2 * step ... of `axis` of a tensor of four dims whose size there is a multiple of `step`.
  ValueId every(ValueId x, int axis, std::int64_t step);
};

// Elements of constant weights, for rewrites that lay them out anew.
std::optional<Ints> weights_of(const Graph& graph, const Node& node);

}  // namespace tosaic::ethos_u
