// SPDX-License-Identifier: Apache-2.0
// In-place calls become their functional forms. A tensor and its views are one memory: what is written to one of them
// is put back into the tensor that it looks at, and from there the other views are taken anew when they are read next.
#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/rewriter.h"
#include "normalise/dynamic_slices.h"
#include "normalise/normalise.h"
#include "normalise/out_form.h"
#include "normalise/views.h"
#include "ops/composer.h"
#include "ops/op.h"
#include "ops/operator_name.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

Operator functional(const Schema& schema) {
  return Operator(schema.ns + "." + schema.name.substr(0, schema.name.size() - 1) + "." + schema.overload);
}

// The view that a view in place is: PyTorch may give the two other overloads (transpose.int, transpose_).
Operator view_of(const FoundOp& found) {
  if (const Operator same = functional(*found.schema); find_aten(same).op) return same;
  const std::string name = found.schema->name.substr(0, found.schema->name.size() - 1);
  for (const auto text : found.op->schemas)
    if (auto schema = parse_schema(text); schema.ok() && schema->name == name && schema->view)
      return Operator(schema->full_name());
  return functional(*found.schema);
}

// `node` reads the values as PyTorch names them; what they hold at a time, Functionaliser knows.
struct ViewCall {
  Node node;
  const Schema* schema;
  std::optional<DynamicRows> rows = {};  // it begins where a tensor says
};

// One tensor of PyTorch's program: a memory of its own, or a look at another's.
struct TensorState {
  ValueId content = no_value;      // the pure value that it holds now
  std::shared_ptr<ViewCall> view;  // null: owns its memory
  std::size_t output = 0;          // which of the view's results
  std::uint64_t version = 0;       // owner: the number of writes; view: of the owner's writes, those in `content`
  bool dense = false;              // owner: certainly in row-major memory
  std::optional<Diagnostic> lost;  // its content cannot be said since a write
  ValueId anew = no_value;         // the view in place (unsqueeze_) that its names stand for since
};

class Functionaliser {
 public:
  explicit Functionaliser(Graph& graph) : graph_(graph), out_(graph), tensors_(graph.values.size()), slices_(graph_) {
    for (ValueId v = 0; v < tensors_.size(); ++v) tensors_[v].content = v;
  }

  Status run() {
    for (Node& node : out_.nodes()) TOSAIC_CHECK(add(std::move(node)));
    for (ValueId& v : graph_.outputs) TOSAIC_CHECK(read(named(v), v));
    for (State& state : graph_.states) TOSAIC_CHECK(read(state.output, state.output));
    return {};
  }

 private:
  // The result of an in-place call is the tensor that it wrote.
  ValueId tensor(ValueId v) const {
    for (auto it = same_.find(v); it != same_.end(); it = same_.find(v)) v = it->second;
    return v;
  }
  ValueId owner(ValueId v) const {
    while (tensors_[v].view) v = tensors_[v].view->node.inputs[0];
    return v;
  }
  // What the name v stands for at this place of the program: the tensor, as the last view in place shows it.
  ValueId named(ValueId v) const {
    for (v = tensor(v); v < tensors_.size() && tensors_[v].anew != no_value;) v = tensor(tensors_[v].anew);
    return v;
  }

  Status add(Node node) {
    for (ValueId& v : node.inputs)
      if (v != no_value) v = named(v);
    std::vector<ValueId> original = node.inputs;
    for (ValueId& v : node.inputs)
      if (v != no_value) TOSAIC_CHECK(read(v, v));
    if (has_mark(node, mark::effect)) {
      if (auto pure = without_out(graph_, node)) return write(std::move(*pure), nullptr, original.back());
      return write_all(std::move(node), original);
    }
    slices_.learn(node);
    const FoundOp found = find_aten(node.op);
    const bool first = !original.empty() && original[0] != no_value;
    const bool anew = first && found.op && found.schema->looks_anew;
    if (anew) TOSAIC_CHECK(out_of_place(node, view_of(found)));
    if (first && (found.op ? found.schema->in_place : name_says_in_place(node.op)))
      return write(std::move(node), found.schema, tensor(original[0]));
    const auto rows = first && found.op ? slices_.rows(node, *found.schema) : std::nullopt;
    if (rows && found.schema->view) {
      node = slices_.look(*rows, node);
      original.insert(original.end(), node.inputs.begin() + 1, node.inputs.end());
    } else if (rows) {
      node = slices_.put(*rows, node);
    }
    if (first && found.op && found.schema->view)
      note_views(node, anew ? *find_aten(node.op).schema : *found.schema, original, rows);
    else if (std::all_of(original.begin(), original.end(), [](ValueId v) { return v == no_value; }))
      for (ValueId v : node.outputs)
        if (v != no_value) tensors_[v].dense = true;
    if (anew) tensors_[original[0]].anew = node.outputs[0];
    out_.keep(std::move(node));
    return {};
  }

  // x.unsqueeze_(0) as the view that x stands for afterwards: who reads x by its old name needs it, too.
  Status out_of_place(Node& node, Operator view) {
    node.op = view;
    if (!node.outputs.empty() && node.outputs[0] != no_value) return {};
    auto trial = try_node(graph_, undeclared(node));
    if (!trial.ok()) return trial.error();
    node.outputs = {fresh(node.inputs[0])};
    graph_[node.outputs[0]].type = trial->graph[trial->results.at(0)].type;
    for (ValueId v = static_cast<ValueId>(tensors_.size()); v < graph_.values.size(); ++v)
      tensors_.emplace_back().content = v;
    return {};
  }

  void note_views(const Node& node, const Schema& schema, const std::vector<ValueId>& original,
                  const std::optional<DynamicRows>& rows) {
    if (schema.argument("copy") && node.attrs.get_or("copy", false)) return;
    auto view = std::make_shared<ViewCall>(ViewCall{node, &schema, rows});
    view->node.inputs = original;
    for (ValueId& v : view->node.inputs)
      if (v != no_value) v = tensor(v);
    const ValueId base = view->node.inputs[0];
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId v = node.outputs[k];
      if (v == no_value || graph_[v].type.dtype != graph_[base].type.dtype) continue;  // converted: a copy
      tensors_[v].view = view;
      tensors_[v].output = k;
      tensors_[v].version = tensors_[owner(base)].version;
    }
  }

  // What tensor v holds now, as a pure value.
  Status read(ValueId v, ValueId& content) {
    v = tensor(v);
    if (v >= tensors_.size()) {  // the indices of a slice: added here, and pure
      content = v;
      return {};
    }
    if (tensors_[v].lost) return *tensors_[v].lost;
    if (tensors_[v].view && tensors_[v].version != tensors_[owner(v)].version) TOSAIC_CHECK(look_again(v));
    content = tensors_[v].content;
    return {};
  }

  // What it looks at was written meanwhile: the view is called once more.
  Status look_again(ValueId v) {
    const std::shared_ptr<ViewCall> call = tensors_[v].view;
    Node node = call->node;
    const ValueId base = node.inputs[0];
    auto shared = shares_memory(v);
    if (!shared.ok()) return shared.error();
    if (!*shared)
      return unknown_sharing("model.write-under-view",
                             fmt::format("'{}' is read after '{}' was changed", graph_[v].name, graph_[base].name),
                             *call);
    for (ValueId& input : node.inputs)
      if (input != no_value) TOSAIC_CHECK(read(input, input));
    for (ValueId& output : node.outputs) {
      if (output == no_value) continue;
      const ValueId original = output;
      output = fresh(original);
      if (tensors_[original].view != call) continue;
      tensors_[original].content = output;
      tensors_[original].version = tensors_[owner(base)].version;
    }
    out_.keep(std::move(node));
    return {};
  }

  // `schema`: null for an operator that only its name tells of.
  Status write(Node node, const Schema* schema, ValueId target) {
    if (schema && find_aten(functional(*schema)).op) node.op = functional(*schema);
    if (node.outputs.empty()) node.outputs.push_back(no_value);
    if (node.outputs[0] == no_value)
      node.outputs[0] = fresh(target);
    else
      same_.emplace(node.outputs[0], target);
    const ValueId result = node.outputs[0];
    const LocRef loc = node.loc;
    Operator op = node.op;
    out_.keep(std::move(node));
    hold(target, result, op, loc);
    return {};
  }

  // An operator that may have written any of its operands: each is read anew from here on.
  Status write_all(Node node, std::vector<ValueId> targets) {
    std::erase(targets, no_value);
    for (ValueId& v : targets) v = tensor(v);
    std::ranges::sort(targets);
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    const std::size_t first = node.outputs.size();
    for (ValueId v : targets) node.outputs.push_back(fresh(v));
    const std::vector<ValueId> written(node.outputs.begin() + static_cast<std::ptrdiff_t>(first), node.outputs.end());
    const LocRef loc = node.loc;
    Operator op = node.op;
    out_.keep(std::move(node));
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i] < tensors_.size()) hold(targets[i], written[i], op, loc);
    return {};
  }

  // Tensor v holds `content` from now on, and so does that part of everything that it looks at.
  void hold(ValueId v, ValueId content, Operator op, const LocRef& loc) {
    std::vector<ValueId> current{v};
    const ValueId root = owner(v);
    tensors_[v].content = content;
    while (tensors_[v].view) {
      const ValueId base = tensors_[v].view->node.inputs[0];
      auto whole = written_base(v, content, op, loc);
      if (!whole.ok()) {  // an error only if somebody reads it
        for (ValueId b = base;; b = tensors_[b].view->node.inputs[0]) {
          tensors_[b].lost = whole.error();
          if (!tensors_[b].view) break;
        }
        break;
      }
      content = *whole;
      tensors_[base].content = content;
      current.push_back(base);
      v = base;
    }
    const std::uint64_t version = ++tensors_[root].version;
    for (ValueId c : current) tensors_[c].version = version;
  }

  Result<ValueId> written_base(ValueId v, ValueId content, Operator op, const LocRef& loc) {
    const ViewCall& call = *tensors_[v].view;
    const ValueId base = call.node.inputs[0];
    ValueId whole = no_value;
    TOSAIC_CHECK(read(base, whole));
    if (call.rows) return slices_.put(*call.rows, whole, content, loc);
    auto positions = places(v);
    if (!positions.ok()) return positions.error();
    auto shared = shares_memory(v);
    if (!shared.ok()) return shared.error();
    if (!*shared)
      return located(
          unknown_sharing("model.write-through-view",
                          fmt::format("{} changes '{}', and '{}' is read later", op, graph_[v].name, graph_[base].name),
                          call),
          loc);
    return put_back(graph_, whole, content, *positions, loc);
  }

  Result<Positions> places(ValueId v) const {
    const ViewCall& call = *tensors_[v].view;
    if (graph_[v].type.shape.is_empty()) return Positions();
    if (!call.schema->argument("copy")) return view_positions(graph_, call.node, tensors_[v].output);
    Positions all(static_cast<std::size_t>(graph_[v].type.shape.elements()));  // `to` the dtype that it has
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Views by name do. A reshape that joins dims, and what asks for a memory format, copy where the strides do not fit,
  // which are known only of memory that the program has just made.
  Result<bool> shares_memory(ValueId v) const {
    const ViewCall& call = *tensors_[v].view;
    if (call.rows || graph_[v].type.shape.is_empty()) return true;  // what has no elements lies nowhere
    const ValueId base = call.node.inputs[0];
    if (const SchemaArgument* format = call.schema->argument("memory_format")) {
      const Attr* asked = call.node.attrs.find("memory_format");
      if (!std::holds_alternative<std::monostate>(asked ? *asked : format->default_value)) return in_row_major(base);
    }
    const Shape &from = graph_[base].type.shape, &to = graph_[v].type.shape;
    if (call.node.op == aten::op::view || only_splits(from, to)) return true;
    auto positions = places(v);
    if (!positions.ok()) return positions.error();
    return all_in_order(*positions, from) ? in_row_major(base) : true;
  }
  Result<bool> in_row_major(ValueId v) const {
    if (!tensors_[v].view) return tensors_[v].dense;
    if (tensors_[v].view->rows) return false;
    auto positions = places(v);
    if (!positions.ok()) return positions.error();
    const ValueId base = tensors_[v].view->node.inputs[0];
    return all_in_order(*positions, graph_[base].type.shape) ? in_row_major(base) : false;
  }

  Diagnostic unknown_sharing(const char* code, const std::string& what, const ViewCall& call) const {
    return located(
        error(code, fmt::format(
                        "{}, but whether {} gives a view or a copy depends on strides that the program does not state",
                        what, call.node.op))
            .hint("use view() where you want one memory, clone() where you want two"),
        call.node.loc);
  }

  // Values are never taken away, so their number makes a name that no other has.
  ValueId fresh(ValueId like) {
    return graph_.add_value(fmt::format("{}.{}", graph_[like].name, graph_.values.size()), graph_[like].type);
  }

  Graph& graph_;
  Rewriter out_;
  std::vector<TensorState> tensors_;
  DynamicSlices slices_;
  std::unordered_map<ValueId, ValueId> same_;
};

}  // namespace

Status functionalise(Graph& graph) {
  return unless_refused([&] { return Functionaliser(graph).run(); });
}

}  // namespace tosaic
