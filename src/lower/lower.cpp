// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_set>

#include "ir/aten_operators.h"
#include "ir/states.h"
#include "ir/tosa_operators.h"
#include "lower/lower_node.h"
#include "lower/unsigned_bytes.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

LocRef located_op(const Node& node) {
  if (node.loc && node.loc->op == node.op.name()) return node.loc;
  auto loc = node.loc ? std::make_shared<Loc>(*node.loc) : std::make_shared<Loc>();
  loc->op = node.op.name();
  return loc;
}

std::vector<TensorType> output_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (ValueId v : node.outputs) types.push_back(v == no_value ? TensorType{} : graph[v].type);
  return types;
}

Diagnostic inconsistent(const Node& node, const TensorType& made, const TensorType& declared) {
  return error(std::string(inconsistent_model), fmt::format("{} gives {} for these operands, but the program says {}",
                                                            node.op, to_string(made.with(std::optional<Scales>{})),
                                                            to_string(declared.with(std::optional<Scales>{}))))
      .hint("the file is damaged or was changed by hand: save the program again (if PyTorch runs it, report a defect)");
}

std::string target_text(const tosa::Spec& spec) { return spec.product ? std::string(spec.product->name) : spec.text(); }

// What the caller of a delegate converts, because the delegate's types are others than the program's.
std::optional<Diagnostic> beyond_types(const Graph& aten, const Node& node, const std::vector<char>& used,
                                       const tosa::Spec& spec) {
  if (node.op.is_conversion() && !spec.has(tosa::Feature::pro_fp))
    return error("target.conversion", fmt::format("{} is the boundary between float and integer tensors", node.op))
        .note("conversion between float and integers, outside an integer delegate");
  auto wide = [&](ValueId v) { return v != no_value && aten[v].type.dtype == DType::i64; };
  if ((node.op == aten::op::_to_copy || saturates_to_i32(aten, node)) &&
      (wide(node.inputs[0]) || wide(node.outputs[0])))
    return error("target.conversion", "int64 inputs and outputs are int32 inside a delegate: TOSA has no int64")
        .note("conversion between int64 and int32, outside the delegate");
  auto real = [&](ValueId v) { return v != no_value && is_float(aten[v].type.dtype) && !aten[v].type.quantised(); };
  if (node.op == aten::op::_to_copy && !spec.has(tosa::Feature::pro_fp) && real(node.inputs[0]) &&
      real(node.outputs[0]))
    return error("target.conversion", "half precision is converted outside an integer delegate")
        .note("conversion between floats of 16 and 32 bits, outside the delegate");
  for (const auto* ids : {&node.inputs, &node.outputs})
    for (ValueId v : *ids) {
      const bool unread = ids == &node.outputs && v != no_value && !used[v];  // an inference's saved statistics
      if (v == no_value || unread) continue;
      if (aten[v].type.shape.is_empty())
        return error("target.empty-tensor",
                     fmt::format("{} has '{}' without elements, which TOSA lacks", node.op, aten[v].name));
      if (wide(v))
        return error("target.int64", fmt::format("{} needs more than 32 bits for '{}'", node.op, aten[v].name))
            .note("TOSA has no int64; what provably fits int32 would be taken");
    }
  return std::nullopt;
}

// Are the results that somebody reads what the program declares?
Status results_agree(const Graph& aten, const Node& node, const std::vector<char>& used, const Graph& made,
                     const std::vector<ValueId>& results) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId v = node.outputs[i];
    if (v == no_value || !used[v]) continue;
    const TensorType& declared = aten[v].type;
    if (i >= results.size())
      return located(
          error("lower.missing-result", fmt::format("result {} of {} cannot be expressed in TOSA", i, node.op)),
          node.loc);
    const TensorType& type = made[results[i]].type;
    if (type.shape != declared.shape) return located(inconsistent(node, type, declared), node.loc);
    if (type.dtype != declared.dtype)
      return located(error("lower.result-type", fmt::format("{} gives {} as result {}, the program says {}", node.op,
                                                            to_string(type), i, to_string(declared))),
                     node.loc);
  }
  return {};
}

// An operand that is handed back costs a device nothing, but where it leaves a region its type has to be TOSA's.
Status handed_back(const Node& node, const std::vector<char>& used, const Trial& trial, tosa::Spec spec) {
  spec.product = nullptr;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value || !used[node.outputs[i]] ||
        std::find(trial.operands.begin(), trial.operands.end(), trial.results[i]) == trial.operands.end())
      continue;
    Graph alone;
    const TensorType& type = trial.graph[trial.results[i]].type;
    Node identity;
    identity.op = tosa::op::identity;
    identity.inputs = {alone.add_value("x", type)};
    identity.outputs = {alone.add_value("y", type)};
    if (auto broken = tosa::verify_node(tosa::View(alone, identity), spec))
      return located(
          error("target.unsupported", fmt::format("{} hands back {}", node.op, to_string(type))).note(broken->message),
          node.loc);
  }
  return {};
}

// The option that admits what one extension of TOSA would. A device has none but its own.
std::string admitting_option(const tosa::View& view, const tosa::Spec& spec) {
  if (spec.product) return "";
  for (auto f = tosa::Feature::int4; f < tosa::Feature::dynamic;
       f = static_cast<tosa::Feature>(static_cast<int>(f) + 1)) {
    tosa::Spec more = spec;
    more.add(f);
    if (!spec.has(f) && !tosa::verify_node(view, more))
      return fmt::format("; --tosa-spec {} admits it, where what runs the program has {}", more.text(), name_of(f));
  }
  return "";
}

}  // namespace

Status within_types(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec& spec) {
  auto beyond = beyond_types(aten, node, used, spec);
  return beyond ? Status(located(*std::move(beyond), node.loc)) : Status();
}

bool saturates_to_i32(const Graph& graph, const Node& node) {
  return node.op == aten::op::clamp && graph[node.inputs[0]].type.dtype == DType::i64 &&
         node.attrs.get_or<std::int64_t>("min", 0) == INT32_MIN &&
         node.attrs.get_or<std::int64_t>("max", 0) == INT32_MAX;
}

std::vector<char> used_values(const Graph& graph) {
  std::vector<char> used(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value) used[v] = 1;
  for (ValueId v : graph.outputs) used[v] = 1;
  for (const State& s : graph.states) used[s.output] = 1;
  return used;
}

// What nothing but results that nobody reads is made of: a target need not take it.
static void drop_unread(Lowered& lowered) {
  Graph& graph = lowered.graph;
  const std::size_t outputs = graph.outputs.size();
  for (ValueId v : lowered.of)
    if (v != no_value) graph.outputs.push_back(v);
  drop_dead(graph);
  for (std::size_t next = outputs; ValueId & v : lowered.of)
    if (v != no_value) v = graph.outputs[next++];
  graph.outputs.resize(outputs);
}

Result<Lowered> lower(const Graph& aten, const LowerOptions& options) {
  if (!aten.states.empty()) {
    Graph tensors = aten;
    const StatesAsTensors states(tensors);
    TOSAIC_TRY(Lowered lowered, lower(tensors, options));
    states.restore(lowered.graph);
    return lowered;
  }
  const std::vector<char> used = used_values(aten);
  Lowered lowered;
  Graph& out = lowered.graph;
  out.name = aten.name;
  lowered.of.assign(aten.values.size(), no_value);
  auto carried = [&](ValueId v) {  // inputs and constants come over as they are, when first used
    if (lowered.of[v] == no_value) lowered.of[v] = out.add_value(aten[v].name, aten[v].type, aten[v].constant);
    return lowered.of[v];
  };
  for (ValueId v : aten.inputs) out.inputs.push_back(carried(v));
  const std::unordered_set<ValueId> taken(out.inputs.begin(), out.inputs.end());
  const std::unordered_set<ValueId> given(aten.outputs.begin(), aten.outputs.end());
  Builder inside(out, options.spec), outside(out);
  inside.fold(options.fold);
  outside.fold(options.fold);
  bool any_unread = false;
  for (std::size_t n = 0; n < aten.nodes.size(); ++n) {
    const Node& node = aten.nodes[n];
    Builder& builder = n < options.outside.size() && options.outside[n] ? outside : inside;
    builder.set_loc(located_op(node));
    std::vector<std::optional<Val>> operands;
    for (ValueId v : node.inputs)
      operands.push_back(v == no_value ? std::nullopt : std::optional(Val(&builder, carried(v))));
    try {
      std::vector<ValueId> results;
      for (Val v : lower_node(builder, node, std::move(operands), output_types(aten, node))) results.push_back(v.id());
      TOSAIC_CHECK(results_agree(aten, node, used, out, results));
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == no_value || !used[node.outputs[i]]) {
          any_unread = true;
          continue;
        }
        const Value& declared = aten[node.outputs[i]];
        ValueId made = results[i];
        // What quantises floats computes plain integers; what reads them needs to know their scale.
        if (declared.type.quantised() && !out[made].type.quantised() && !out[made].is_constant())
          out[made].type.scales = declared.type.scales;
        // An operand that is handed back (torch.cat of one tensor) is no output of a network until something writes it.
        if (given.contains(node.outputs[i]) && taken.contains(made))
          made = builder.relabelled(Val(&builder, made), out[made].type).id();
        lowered.of[node.outputs[i]] = made;
      }
    } catch (Refusal& refusal) { return std::move(refusal.why); } catch (const UnknownSize& unknown) {
      return unknown_size(node, unknown);
    }
  }
  // The user's names go to the values that are the user's tensors.
  std::unordered_set<ValueId> named(out.inputs.begin(), out.inputs.end());
  for (const Node& node : aten.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value && lowered.of[v] != no_value && !out[lowered.of[v]].is_constant() &&
          named.insert(lowered.of[v]).second)
        out[lowered.of[v]].name = aten[v].name;
  for (ValueId v : aten.outputs) out.outputs.push_back(carried(v));
  if (any_unread) drop_unread(lowered);
  // Next to a target, PyTorch's types stay what they are.
  if (options.spec && options.outside.empty())
    options.rewrite("take_unsigned_as_bytes", out, take_unsigned_as_bytes, *options.spec);
  options.rewrite("make_names_unique", out, make_names_unique);
  return lowered;
}

Status shapes_agree(const Graph& aten, const Node& node) {
  const auto trial = try_node(aten, node);
  if (!trial.ok()) return {};  // nothing is known of the shapes then
  for (std::size_t i = 0; i < node.outputs.size() && i < trial->results.size(); ++i) {
    const ValueId v = node.outputs[i];
    if (v == no_value) continue;
    const Shape &made = trial->graph[trial->results[i]].type.shape, &declared = aten[v].type.shape;
    // Symbolic ones may be said in two ways that nobody knows to be the same.
    if (made.is_static() && declared.is_static() && made != declared)
      return located(inconsistent(node, trial->graph[trial->results[i]].type, real_type(aten[v].type)), node.loc);
  }
  return {};
}

Result<Trial> try_lowering(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec* spec) {
  TOSAIC_TRY(Trial trial, try_node(aten, node, {.spec = spec, .lowering = lower_node}));
  TOSAIC_CHECK(results_agree(aten, node, used, trial.graph, trial.results));
  std::vector<char> read;
  for (ValueId v : node.outputs) read.push_back(v != no_value && used[v]);
  leave_results(trial, read);
  if (spec) take_unsigned_as_bytes(trial.graph, *spec);
  return trial;
}

Status holds_to(const Node& node, const std::vector<char>& used, const Trial& trial, const tosa::Spec& spec) {
  TOSAIC_CHECK(handed_back(node, used, trial, spec));
  for (const Node& made : trial.graph.nodes) {
    const tosa::View view(trial.graph, made);
    if (auto broken = tosa::verify_node(view, spec))
      return located(
          error("target.unsupported", fmt::format("{} cannot run on {}", node.op, target_text(spec)))
              .note(fmt::format("it lowers to {}: {}{}", made.op, broken->message, admitting_option(view, spec))),
          node.loc);
    if (made.regions.empty()) continue;
    if (const Status bodies = tosa::verify_graph(trial.graph, spec); !bodies.ok())
      return located(error("target.unsupported", fmt::format("{} cannot run on {}", node.op, target_text(spec)))
                         .note(fmt::format("of its subgraphs: {}", bodies.error().message)),
                     node.loc);
  }
  return {};
}

Status can_lower(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec& spec) {
  TOSAIC_CHECK(within_types(aten, node, used, spec));
  TOSAIC_TRY(const Trial trial, try_lowering(aten, node, used, &spec));
  return holds_to(node, used, trial, spec);
}

}  // namespace tosaic
