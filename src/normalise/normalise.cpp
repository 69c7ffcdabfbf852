// SPDX-License-Identifier: Apache-2.0
#include "normalise/normalise.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/marks.h"
#include "ir/states.h"
#include "normalise/complex_pairs.h"
#include "normalise/known_scalars.h"
#include "normalise/out_form.h"
#include "ops/inconsistent.h"
#include "ops/op.h"
#include "ops/operator_name.h"

namespace tosaic {

Status runs_as_it_stands(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!node.regions.empty() && !has_mark(node, mark::kept))
      return located(error("model.control-flow", fmt::format("{} cannot be compiled yet", node.op))
                         .hint("export the model with the branch or the loop resolved"),
                     node.loc);
    for (const Graph& body : node.regions) TOSAIC_CHECK(runs_as_it_stands(body));
  }
  return {};
}

Status acts_on_operands(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (has_mark(node, mark::effect) && !without_out(graph, node))
      return located(
          error("model.effect",
                fmt::format("{} {}, and what it does to its operands is not known to tosaic", node.op,
                            name_says_out(node.op) ? "writes into a tensor that it is given" : "has no results"))
              .hint("use a form that returns a new tensor"),
          node.loc);
    for (const Graph& body : node.regions) TOSAIC_CHECK(acts_on_operands(body));
  }
  return {};
}

// Sizes are numbers from here on, but for those that depend on values.
static Status specialised(const Graph& graph) {
  for (ValueId v : graph.inputs)
    if (!graph[v].type.shape.is_static())
      return error("model.dynamic-shape", fmt::format("input '{}' has the shape {}, and fixed sizes are needed there",
                                                      graph[v].name, to_string(graph[v].type.shape)))
          .hint(
              "choose the sizes: --sizes NAME=SIZE, in Python sizes=[...]; or export the model without dynamic_shapes, "
              "at the size that you deploy");
  return {};
}

// The next run reads what this one wrote: the same type, and the same scale where PT2E says one.
static Status states_agree(const Graph& graph) {
  for (const State& s : graph.states)
    if (const TensorType& read = graph[s.input].type, &written = graph[s.output].type; read != written)
      return error("model.state-type", fmt::format("buffer '{}' is read as {}, but written as {}", s.name,
                                                   to_string(read), to_string(written)))
          .hint("give the buffer one shape, and quantise it by one scale wherever it is read and written");
  return {};
}

// As many tensors and results as the operator has: a file that was damaged may say otherwise.
static Status fits_schema(const Node& node, const Schema& schema) {
  std::size_t singles = 0, lists = 0;
  for (const SchemaArgument& a : schema.arguments)
    if (a.is_tensor()) ++(a.is_tensor_list() ? lists : singles);
  auto inconsistent = [&](std::string what) {
    return located(error(std::string(inconsistent_model), node.op.text() + " " + std::move(what))
                       .hint("the file is damaged or was changed by hand: save the program again"),
                   node.loc);
  };
  if (lists == 0 && node.inputs.size() > singles)
    return inconsistent(fmt::format("is given {} tensors, and takes {}", node.inputs.size(), singles));
  const bool gives_list = std::any_of(schema.returns.begin(), schema.returns.end(),
                                      [](const std::string& type) { return type.ends_with("[]"); });
  if (!gives_list && node.outputs.size() > schema.returns.size())
    return inconsistent(fmt::format("has {} results, and gives {}", node.outputs.size(), schema.returns.size()));
  std::size_t position = 0;
  for (const SchemaArgument& a : schema.arguments) {
    if (!a.is_tensor() || lists > 0) continue;
    const bool given = position < node.inputs.size() && node.inputs[position] != no_value;
    ++position;
    if (!given && !a.is_optional() && !node.attrs.find(a.name))
      return inconsistent(fmt::format("lacks its tensor '{}'", a.name));
  }
  return {};
}

// Their inputs are nothing that the user knows.
static Status normalise_bodies(Graph& graph, const NormaliseOptions& options, const Sink& sink) {
  options.rewrite("name_bodies_apart", graph, name_bodies_apart, options.is_body);
  NormaliseOptions inside = options;
  inside.is_body = true;
  const Sink heard = [&](Diagnostic d) {
    if (sink && d.code != "model.int64-input") sink(std::move(d));
  };
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) { TOSAIC_TRY(body, normalise(std::move(body), inside, heard)); }
  return {};
}

Result<Graph> normalise(Graph graph, const NormaliseOptions& options, const Sink& sink) {
  TOSAIC_CHECK(specialised(graph));
  for (const Node& node : graph.nodes)
    if (const FoundOp found = find_aten(node.op); found.op) TOSAIC_CHECK(fits_schema(node, *found.schema));
  const Rewrites& rewrite = options.rewrite;
  TOSAIC_CHECK(rewrite("say_complex_in_pairs", graph, say_complex_in_pairs));
  const StatesAsTensors states(graph);
  TOSAIC_CHECK(rewrite("functionalise", graph, functionalise));
  rewrite("compute_masked_wholes", graph, compute_masked_wholes);
  if (rewrite("take_scalars_as_tensors", graph, take_scalars_as_tensors))
    // Before what only an argument names is dropped as unread.
    rewrite("fold_constants", graph, fold_constants, options.keep_quantised_weights);
  rewrite("drop_identities", graph, drop_identities);
  rewrite("fold_constants", graph, fold_constants, options.keep_quantised_weights);
  if (options.inline_bodies) {
    TOSAIC_TRY(const bool inlined, rewrite("inline_bodies", graph, inline_bodies));
    if (inlined) {  // the bodies have been through neither
      rewrite("drop_identities", graph, drop_identities);
      rewrite("fold_constants", graph, fold_constants, options.keep_quantised_weights);
    }
  }
  const NarrowOptions narrow{.single_stay = options.is_body && !options.narrow_loops,
                             .bodies = options.narrow_loops,
                             .all_inside = options.all_inside || options.narrow_loops};
  TOSAIC_CHECK(rewrite("narrow_integers", graph, narrow_integers, sink, options.narrowed, narrow));
  rewrite("drop_identities", graph, drop_identities);  // a conversion to 32 bits of what has 32 bits now
  if (options.inline_bodies) TOSAIC_CHECK(normalise_bodies(graph, options, sink));
  rewrite("signed_products", graph, signed_products);
  rewrite("drop_dynamic_scales", graph, drop_dynamic_scales, sink, options.keep_quantised_weights);
  rewrite("recognise_linear", graph, recognise_linear);
  rewrite("fold_batch_norm", graph, fold_batch_norm, !options.fold_as_pytorch);
  if (!options.fold_as_pytorch)
    rewrite("fold_batch_norm_ahead", graph, fold_batch_norm_ahead, options.most_unlike_gains);
  if (options.fold_quantisation) TOSAIC_CHECK(rewrite("fold_quantisation", graph, fold_quantisation));
  if (rewrite("drop_unread_rows", graph, drop_unread_rows)) {
    rewrite("drop_identities", graph, drop_identities);
    rewrite("fold_constants", graph, fold_constants, options.keep_quantised_weights);
  }
  rewrite("drop_dead", graph, drop_dead);
  rewrite("make_names_unique", graph, make_names_unique);
  states.restore(graph);
  rewrite("mark_distinct_indices", graph, mark_distinct_indices);
  rewrite("mark_seen_rounding", graph, mark_seen_rounding, options.is_body);
  TOSAIC_CHECK(states_agree(graph));
  return graph;
}

}  // namespace tosaic
