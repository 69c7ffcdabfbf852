// SPDX-License-Identifier: Apache-2.0
// TOSA -> TOSA, equal bit for bit: forms that Vela 5.1.0 turns into fewer or cheaper NPU commands. The measurements
// behind each rewrite are in docs/benchmarks/ethos-u.md.
#include "targets/ethos_u/express.h"
#include "targets/ethos_u/products.h"
#include "targets/ethos_u/rewrites.h"
#include "tidy/tidy.h"

namespace tosaic::ethos_u {
namespace {

// A RESCALE is fused into its reader only where it has one: each reader gets a RESCALE of its own.
void one_rescale_per_reader(Graph& graph) {
  const auto made_by = producers(graph);
  std::vector<Node> rescales(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == tosa::op::rescale && graph[graph.nodes[n].outputs[0]].type.dtype == DType::i32)
      rescales[n] = graph.nodes[n];
  std::vector<char> taken(graph.values.size(), 0);
  for (ValueId v : graph.outputs) taken[v] = 1;
  Rewriter out(graph);
  out.each([&](Node& node) {
    for (ValueId& v : node.inputs) {
      if (v == no_value || v >= made_by.size() || made_by[v] < 0) continue;
      const Node& rescale = rescales[static_cast<std::size_t>(made_by[v])];
      if (rescale.op.none()) continue;
      if (!taken[v]) {
        taken[v] = 1;
        continue;
      }
      v = out.add(rescale.op, rescale.inputs, rescale.attrs, graph[v].type, rescale.loc);
    }
    out.keep(std::move(node));
  });
}

// The maximum along the last dim runs over channels, element by element; along the one before it is a pooling window.
void maximum_along_width(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    const bool reduction = node.op == tosa::op::reduce_max || node.op == tosa::op::reduce_min;
    const Shape shape = reduction ? graph[node.inputs[0]].type.shape : Shape{};
    const int rank = shape.rank();
    if (!reduction || rank < 2 || node.attrs.get<std::int64_t>("axis") != rank - 1 || shape.size(rank - 2) == 1)
      return out.keep(std::move(node));
    // Leading dims as one: Vela has one command for a transpose of (1, A, B, C) only where the leading dim is 1.
    std::int64_t leading = 1;
    for (int i = 0; i + 2 < rank; ++i) leading *= shape.size(i);
    const LocRef loc = node.loc;
    const ValueId flat = out.reshape(node.inputs[0], {1, leading, shape.size(rank - 2), shape.size(rank - 1)}, loc);
    const ValueId turned = out.transpose(flat, {0, 1, 3, 2}, loc);
    Attrs attrs = node.attrs;
    attrs.set("axis", std::int64_t{2});
    const ValueId highest = out.add(node.op, {turned}, std::move(attrs),
                                    graph[turned].type.with(Shape{1, leading, 1, shape.size(rank - 2)}), loc);
    out.reshape(highest, graph[node.outputs[0]].type.shape.sizes(), loc, node.outputs[0]);
  });
}

// A minimum that a view follows gets that view's shape on the way (Vela computes it from a maximum): said as one here.
//   min(x) = -1 - max(-1 - x)
void minima_as_maxima(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (node.op != tosa::op::reduce_min) return out.keep(std::move(node));
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const LocRef loc = node.loc;
    const TensorType type{graph[x].type.dtype, Shape{}, {}};
    const auto rescaled = [&](ValueId v, DType to, ValueId as) {
      return out.rescaled_by_one(v, TensorType{to, graph[v].type.shape, {}}, loc, as);
    };
    const auto inverted = [&](ValueId v, ValueId as) {
      const TensorType one{type.dtype, Shape(Ints(static_cast<std::size_t>(graph[v].type.rank()), 1)), {}};
      const ValueId ones = graph.add_value("one", one, constant_bytes(type.dtype, Ints{-1}));
      const ValueId left = rescaled(ones, DType::i32, no_value), right = rescaled(v, DType::i32, no_value);
      const TensorType wide{DType::i32, graph[v].type.shape, {}};
      return rescaled(out.add(tosa::op::sub, {left, right}, {}, wide, loc), type.dtype, as);
    };
    const ValueId highest = out.add(tosa::op::reduce_max, {inverted(x, no_value)}, node.attrs,
                                    TensorType{type.dtype, graph[y].type.shape, {}}, loc);
    inverted(highest, y);
  });
}

// An image from channels first to channels last is one command with its pixels in one dim, two otherwise (U55, U65).
void images_as_rows(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    const auto x = turned_image(graph, node);
    if (!x || x->size(2) * x->size(3) > longest_axis) return out.keep(std::move(node));
    const ValueId rows = out.reshape(node.inputs[0], {1, x->size(1), x->size(2) * x->size(3)}, node.loc);
    const ValueId turned = out.transpose(rows, {0, 2, 1}, node.loc);
    out.reshape(turned, {1, x->size(2), x->size(3), x->size(1)}, node.loc, node.outputs[0]);
  });
}

void shape_for_all(Graph& graph, const Rewrites& rewrite, bool little_memory = false) {
  rewrite("slices_before_transposes", graph, slices_before_transposes);
  rewrite("at_most_four_dims", graph, at_most_four_dims);
  rewrite("merge_neighbouring_reductions", graph, merge_neighbouring_reductions);
  rewrite("maximum_along_width", graph, maximum_along_width);
  rewrite("activations_before_views", graph, activations_before_views, little_memory);
  rewrite("merge_reshapes", graph, merge_reshapes);
  rewrite("drop_identity", graph, drop_identity);
  rewrite("views_of_their_own", graph, views_of_their_own);
  rewrite("move_rescales_after_views", graph, move_rescales_after_views);
  rewrite("split_linears", graph, split_linears);
  rewrite("narrow_constants", graph, narrow_constants);
  rewrite("one_rescale_per_reader", graph, one_rescale_per_reader);
  rewrite("make_names_unique", graph, make_names_unique);
}

// Before anything else: what stood between two transposes may not any more.
void activations_first(Graph& graph, const Rewrites& rewrite, bool inputs_too) {
  rewrite("activations_before_views", graph, activations_before_views, inputs_too);
  tidy(graph, {.keep_activations = true, .rewrite = rewrite});
}

struct Small {
  bool little_memory = false;
  bool slow_transposes = false;  // eight cycles and more for a pixel
};

void shape_for_u55_of(Graph& graph, const Rewrites& rewrite, const Small& npu) {
  activations_first(graph, rewrite, npu.little_memory);
  rewrite("windows_into_channels", graph, windows_into_channels);
  rewrite("multipliers_as_dense", graph, multipliers_as_dense, 32);
  rewrite("transposed_as_convolutions", graph, transposed_as_convolutions, false);
  rewrite("express", graph, express, native_u55);
  rewrite("strides_into_channels", graph, strides_into_channels);
  if (npu.slow_transposes) rewrite("images_by_convolution", graph, images_by_convolution);
  rewrite("images_as_rows", graph, images_as_rows);
  rewrite("minima_as_maxima", graph, minima_as_maxima);
  shape_for_all(graph, rewrite, npu.little_memory);
  rewrite("copy_shared_operands", graph, copy_shared_operands);
  rewrite("separate_lone_rescales", graph, separate_lone_rescales);
  rewrite("make_names_unique", graph, make_names_unique);
}

}  // namespace

void shape_for_u55(Graph& graph, const Rewrites& rewrite) { shape_for_u55_of(graph, rewrite, {}); }
// Up to 64 MACs: 16 KB of shared memory.
void shape_for_small_u55(Graph& graph, const Rewrites& rewrite) {
  shape_for_u55_of(graph, rewrite, {.little_memory = true});
}
void shape_for_u65(Graph& graph, const Rewrites& rewrite) {
  shape_for_u55_of(graph, rewrite, {.slow_transposes = true});
}

// U85 fills its multipliers in other ways, and turns images of few channels by multiplying.
void shape_for_u85(Graph& graph, const Rewrites& rewrite) {
  activations_first(graph, rewrite, false);
  rewrite("windows_into_channels", graph, windows_into_channels);
  rewrite("multipliers_as_dense", graph, multipliers_as_dense, 64);
  rewrite("transposed_as_convolutions", graph, transposed_as_convolutions, true);
  rewrite("express", graph, express, native_u85);
  rewrite("turn_images_one_by_one", graph, turn_images_one_by_one);
  rewrite("images_by_convolution", graph, images_by_convolution);
  rewrite("separate_chains", graph, separate_chains);
  rewrite("rescales_before_views", graph, rescales_before_views);
  shape_for_all(graph, rewrite);
  rewrite("booleans_of_their_own", graph, booleans_of_their_own);
  rewrite("copy_selected_operands", graph, copy_selected_operands);
  rewrite("separate_chained_views", graph, separate_chained_views);
  rewrite("merge_reshapes", graph, merge_reshapes);
  rewrite("make_names_unique", graph, make_names_unique);
}

void shape_for_small_u85(Graph& graph, const Rewrites& rewrite) {
  rewrite("images_as_single_rows", graph, images_as_single_rows);
  shape_for_u85(graph, rewrite);
}

}  // namespace tosaic::ethos_u
