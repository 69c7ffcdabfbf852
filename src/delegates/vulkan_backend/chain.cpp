// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_backend/chain.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "delegates/vulkan_backend/caches.h"
#include "delegates/vulkan_backend/operators.h"
#include "ir/aten_operators.h"
#include "ops/op.h"
#include "ops/trial.h"
#include "pipeline/in_floats/in_floats.h"

namespace tosaic::vulkan_backend {
namespace {

Diagnostic wrong(std::string message) { return error("vulkan-backend.arguments", std::move(message)); }

TensorType type_of(const Tensor& tensor) { return {tensor.dtype, tensor.shape, {}}; }

std::vector<std::uint32_t> results_of(const Call& call, const File& file) {
  if (call.args.empty()) return {};
  const std::uint32_t result = call.args.back();
  const auto* list = std::get_if<ValueList>(&file.values[result]);
  return list ? list->items : std::vector<std::uint32_t>{result};
}

// The flow's `alias_buffer_mutations`: a buffer's new content has the buffer's own value, a constant or what one is
// brought to the device as. It is computed into that, where the next run finds it.
std::vector<char> buffers_of(const File& file) {
  std::vector<char> kept(file.values.size()), holds(file.values.size());
  for (std::size_t id = 0; id < file.values.size(); ++id) {
    const auto* tensor = std::get_if<Tensor>(&file.values[id]);
    holds[id] = tensor && tensor->constant;
  }
  for (const Call& call : file.calls) {
    for (std::uint32_t id : results_of(call, file)) {
      if (holds[id])
        kept[id] = 1;
      else if (call.op == prepack)
        holds[id] = 1;
    }
    if (const CacheOperator* caches = cache_operator(call.op))
      for (std::size_t i : caches->written)
        if (i < call.args.size() && holds[call.args[i]]) kept[call.args[i]] = 1;
  }
  return kept;
}

class Chain {
 public:
  Chain(const File& file, const Lookup& data, const std::string& name, const std::vector<Shape>* inputs)
      : file_(file),
        data_(data),
        name_(name),
        sizes_given_(inputs),
        is_buffer_(buffers_of(file)),
        of_(file.values.size(), no_value) {}

  Result<Graph> graph() {
    for (std::uint32_t id : file_.inputs) TOSAIC_CHECK(input(id));
    for (const Call& call : file_.calls) {
      Status taken = take(call);
      if (!taken.ok()) return located(std::move(taken.error()), loc_);
    }
    loc_ = nullptr;
    for (std::uint32_t id : file_.outputs) TOSAIC_CHECK(output(id));
    TOSAIC_CHECK(buffers());
    make_names_unique(graph_);
    return std::move(graph_);
  }

 private:
  const Tensor* tensor(std::uint32_t id) const { return std::get_if<Tensor>(&file_.values[id]); }

  // ---- what the caller passes and gets

  Status input(std::uint32_t id) {
    const Tensor* t = tensor(id);
    if (!t)
      return error("vulkan-backend.symbolic", fmt::format("input {} is a scalar that the caller chooses", id))
          .hint("export the model with fixed sizes");
    if (of_[id] != no_value || t->constant) return wrong(fmt::format("value {} is an input twice, or a constant", id));
    TensorType type = type_of(*t).with(t->staging);
    if (sizes_given_) type.shape = sizes_given_->at(graph_.inputs.size());
    const ValueId v = graph_.add_value(fmt::format("input_{}", graph_.inputs.size()), type);
    graph_.inputs.push_back(v);
    of_[id] = converted(v, t->dtype);
    return {};
  }

  Status output(std::uint32_t id) {
    TOSAIC_TRY(const ValueId v, operand(id));
    if (v == no_value) return wrong(fmt::format("value {} is an output, and no tensor", id));
    if (sizes_given_ && !within(graph_[v].type.shape, tensor(id)->shape))
      return wrong(fmt::format("value {} is {} for these inputs, which the payload has no room for", id,
                               to_string(graph_[v].type)));
    graph_.outputs.push_back(converted(v, tensor(id)->staging));
    return {};
  }

  // What they hold after a run.
  Status buffers() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      State& state = graph_.states[i];
      state.output = of_[buffers_[i]];
      if (graph_[state.output].type != graph_[state.input].type)
        return wrong(fmt::format("buffer {} is {}, and what is written to it {}", buffers_[i],
                                 to_string(graph_[state.input].type), to_string(graph_[state.output].type)));
    }
    return {};
  }

  static bool within(const Shape& shape, const Shape& most) {
    if (shape.rank() != most.rank()) return false;
    for (int i = 0; i < shape.rank(); ++i)
      if (shape.size(i) > most.size(i)) return false;
    return true;
  }

  ValueId converted(ValueId v, DType to) {
    if (graph_[v].type.dtype == to) return v;
    Composer c(graph_, [&](Operator) { return graph_[v].name + "." + std::string(name_of(to)); });
    c.set_loc(loc_);
    c.fold(false);
    return c.aten(aten::op::_to_copy, {c.value(v)}, {{"dtype", to}}).id();
  }

  // ---- operands

  Result<ValueId> constant(const Tensor& t, std::uint32_t id) {
    const Constant& from = file_.constants[*t.constant];
    const Bytes data = from.key.empty() ? from.data : data_(from.key);
    const TensorType type = type_of(t);
    if (data.null() && type.storage_bytes() > 0)
      return error("vulkan-backend.data", fmt::format("the constant '{}' is not in the program", from.key))
          .hint("give the .ptd file that belongs to it");
    if (data.size() != type.storage_bytes())
      return wrong(fmt::format("constant {} ({}) has {} bytes", id, to_string(type), data.size()));
    const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % storage_size(t.dtype) == 0;
    return graph_.add_value(fmt::format("constant_{}", *t.constant), type,
                            aligned && !data.null() ? data : Bytes::copy(data.data(), data.size()));
  }

  // From here on what an earlier run has left there; `from` is what the first one finds.
  ValueId buffer(std::uint32_t id, ValueId from) {
    State state;
    state.name = fmt::format("buffer_{}", buffers_.size());
    state.input = graph_.add_value(state.name, graph_[from].type);
    state.initial = graph_[from].constant;
    graph_.states.push_back(state);
    buffers_.push_back(id);
    return state.input;
  }

  // no_value: None.
  Result<ValueId> operand(std::uint32_t id) {
    if (std::holds_alternative<std::monostate>(file_.values[id])) return no_value;
    if (std::holds_alternative<SymbolicInt>(file_.values[id])) return symbolic(id);
    const Tensor* t = tensor(id);
    if (!t) return wrong(fmt::format("value {} is no tensor", id));
    if (of_[id] == no_value && t->constant) {
      TOSAIC_TRY(of_[id], constant(*t, id));
      if (is_buffer_[id]) of_[id] = buffer(id, of_[id]);
    }
    if (of_[id] == no_value) return wrong(fmt::format("value {} is read before it is computed", id));
    return of_[id];
  }

  static Diagnostic symbolic(std::uint32_t id) {
    return error("vulkan-backend.symbolic", fmt::format("value {} is a scalar computed while the program runs", id))
        .hint("export the model with fixed sizes");
  }

  // A size that follows from the others, all of which are known.
  Result<std::int64_t> integer(std::uint32_t id) const {
    const Value& value = file_.values[id];
    if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
    if (const auto* b = std::get_if<bool>(&value)) return std::int64_t{*b};
    if (const auto* d = std::get_if<double>(&value); d && *d == static_cast<double>(static_cast<std::int64_t>(*d)))
      return static_cast<std::int64_t>(*d);
    if (const auto known = sizes_.find(id); known != sizes_.end()) return known->second;
    if (std::holds_alternative<SymbolicInt>(value)) return symbolic(id);
    return wrong(fmt::format("value {} is no integer", id));
  }

  Status operands(Node& node, const SchemaArgument& argument, std::uint32_t id) {
    if (!argument.is_tensor_list()) {
      TOSAIC_TRY(const ValueId v, operand(id));
      if (v == no_value && !argument.is_optional()) return wrong("a tensor is expected");
      node.inputs.push_back(v);
      return {};
    }
    const auto* list = std::get_if<ValueList>(&file_.values[id]);
    if (!list) return wrong("a list of tensors is expected");
    for (std::uint32_t item : list->items) {
      TOSAIC_TRY(const ValueId v, operand(item));
      node.inputs.push_back(v);
    }
    return {};
  }

  // Numbers that Python takes for equal (1 and 1.0) share a value, whose kind is that of the first: the schema knows.
  Status attribute(Node& node, const SchemaArgument& argument, std::uint32_t id) {
    const Value& value = file_.values[id];
    const std::string type = argument.type.substr(0, argument.type.find_first_of("?["));
    const bool list = argument.type.find('[') != std::string::npos;
    if (std::holds_alternative<std::monostate>(value) || type == "MemoryFormat" || type == "Layout" || type == "Device")
      return {};
    if (const auto* text = std::get_if<std::string>(&value)) {
      node.attrs.set(argument.name, *text);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
      node.attrs.set(argument.name, *reals);
    } else if (const auto* flags = std::get_if<std::vector<bool>>(&value)) {
      node.attrs.set(argument.name, std::vector<std::int64_t>(flags->begin(), flags->end()));
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
      if (type == "float")
        node.attrs.set(argument.name, std::vector<double>(ints->begin(), ints->end()));
      else
        node.attrs.set(argument.name, *ints);
    } else if (const auto* ids = std::get_if<ValueList>(&value)) {
      std::vector<std::int64_t> sizes;
      for (std::uint32_t item : ids->items) {
        TOSAIC_TRY(const std::int64_t size, integer(item));
        sizes.push_back(size);
      }
      node.attrs.set(argument.name, std::move(sizes));
    } else if (const auto* d = std::get_if<double>(&value); d && type != "int" && type != "SymInt" && type != "bool") {
      node.attrs.set(argument.name, *d);
    } else {
      TOSAIC_TRY(const std::int64_t i, integer(id));
      if (list)
        node.attrs.set(argument.name, std::vector<std::int64_t>{i});
      else if (type == "float")
        node.attrs.set(argument.name, static_cast<double>(i));
      else if (type == "bool" || std::holds_alternative<bool>(value))
        node.attrs.set(argument.name, i != 0);
      else
        node.attrs.set(argument.name, i);
    }
    return {};
  }

  // ---- calls

  Status take(const Call& call) {
    auto loc = std::make_shared<Loc>();
    loc->place.file = name_;
    loc->op = call.op;
    loc->name = fmt::format("{}_{}", short_name(call.op), call.node);
    loc_ = std::move(loc);
    if (call.args.empty()) return wrong(fmt::format("{} has no result", call.op));
    if (std::holds_alternative<SymbolicInt>(file_.values[call.args.back()])) return take_size(call);
    if (only_moves_memory(call.op)) return take_identity(call);
    if (const CacheOperator* caches = cache_operator(call.op)) return take_caches(call, *caches);
    const FoundOp found = operator_of(call.op);
    if (!found.op)
      return error("vulkan-backend.operator", fmt::format("'{}' is an operator that tosaic does not know", call.op))
          .hint(
              "keep it out of the Vulkan partition (VulkanPartitioner's operator_blocklist): it then runs as a kernel");
    return take_operator(call, *found.schema);
  }

  static std::string short_name(const std::string& op) {
    const std::size_t begin = op.find('.'), end = op.rfind('.');
    return begin == end || begin == op.npos ? op.substr(0, begin) : op.substr(begin + 1, end - begin - 1);
  }

  Status take_identity(const Call& call) {
    TOSAIC_TRY(const ValueId v, operand(call.args[0]));
    const std::uint32_t id = call.args.back();
    const Tensor* t = tensor(id);
    if (v == no_value || !t || graph_[v].type.dtype != t->dtype || (!sizes_given_ && graph_[v].type.shape != t->shape))
      return wrong(fmt::format("{} gives another type than that of its argument", call.op));
    if (is_buffer_[id] && call.op == prepack && of_[id] == no_value && !t->constant) {
      if (!graph_[v].is_constant()) return wrong(fmt::format("buffer {} begins as no constant", id));
      of_[id] = buffer(id, v);
      return {};
    }
    TOSAIC_CHECK(may_be_result(call, id));
    of_[id] = v;
    return {};
  }

  // Numbers that a program computes stay tensors; only indices in caches may be such.
  Result<ValueId> number(std::uint32_t id) {
    if (const auto made = numbers_.find(id); made != numbers_.end()) return made->second;
    TOSAIC_TRY(const std::int64_t known, integer(id));
    return graph_.add_value(fmt::format("number_{}", id), {DType::i32, Shape(), {}},
                            constant_bytes(DType::i32, std::vector<std::int64_t>{known}));
  }

  // A tensor (batch, positions, heads, size).
  Result<ValueId> heads(std::uint32_t id) {
    TOSAIC_TRY(const ValueId v, operand(id));
    if (v == no_value || graph_[v].type.rank() != 4) return wrong(fmt::format("value {} has no heads", id));
    return v;
  }

  Status take_caches(const Call& call, const CacheOperator& known) {
    if (call.args.size() != known.arguments + 1)
      return wrong(
          fmt::format("{} is given {} arguments, and takes {}", call.op, call.args.size() - 1, known.arguments));
    for (std::size_t i : known.written)
      if (!is_buffer_[call.args[i]]) return writes_argument(call);
    Caches caches(graph_, loc_);
    const bool whole = known.written.size() == 2, attends = known.written.size() != 1;
    // In the order of the schemas: what is new, then caches, then the index.
    const std::size_t first = whole ? 3 : 1, start = whole ? 5 : attends ? 3 : 2, mask = start + (whole ? 2 : 1);
    TOSAIC_TRY(const ValueId place, number(call.args[start]));
    for (std::size_t i = 0; i < known.written.size(); ++i) {
      const std::uint32_t cache = call.args[known.written[i]];
      TOSAIC_TRY(const ValueId before, heads(cache));
      TOSAIC_TRY(const ValueId value, heads(call.args[whole ? i + 1 : 0]));
      of_[cache] = caches.updated(before, value, place);
    }
    if (!attends) return {};
    TOSAIC_TRY(const std::int64_t causal, integer(call.args[mask + 2]));
    TOSAIC_TRY(const std::int64_t dropout, integer(call.args[mask + 1]));
    if (!std::holds_alternative<std::monostate>(file_.values[call.args[mask]]) || !causal || dropout != 0)
      return error("vulkan-backend.operator",
                   fmt::format("{} with a mask, without is_causal, or with dropout", call.op))
          .hint("export the model with is_causal=True and no mask");
    std::optional<double> scale;
    if (const auto* given = std::get_if<double>(&file_.values[call.args[mask + 3]])) scale = *given;
    TOSAIC_TRY(const ValueId query, heads(call.args[0]));
    TOSAIC_TRY(const ValueId keys, heads(call.args[first]));
    TOSAIC_TRY(const ValueId values, heads(call.args[first + 1]));
    const ValueId seen = caches.attention(query, keys, values, place, scale);
    const std::uint32_t result = call.args.back();
    const Tensor* t = tensor(result);
    if (!t || (!sizes_given_ && graph_[seen].type != type_of(*t)))
      return wrong(fmt::format("{} gives {}", call.op, to_string(graph_[seen].type)));
    TOSAIC_CHECK(may_be_result(call, result));
    of_[result] = seen;
    return {};
  }

  // Sizes are numbers: those of tensors are, as the payload states them.
  Status take_size(const Call& call) {
    const std::uint32_t result = call.args.back();
    const auto at = [&](std::size_t i) { return integer(call.args[i]); };
    if (call.op == number_of_tensor && call.args.size() == 4) {
      TOSAIC_TRY(const ValueId v, operand(call.args[0]));
      TOSAIC_TRY(const std::int64_t dim, at(1));
      TOSAIC_TRY(const std::int64_t index, at(2));
      if (v == no_value) return wrong(fmt::format("{} is given no tensor", call.op));
      numbers_[result] = Caches(graph_, loc_).number(v, dim, index);
      return {};
    }
    std::int64_t size = 0;
    if ((call.op == "sym_size.int" || call.op == "aten.sym_size.int") && call.args.size() == 3) {
      TOSAIC_TRY(const ValueId v, operand(call.args[0]));
      TOSAIC_TRY(std::int64_t dim, at(1));
      const Shape shape = v == no_value ? Shape() : graph_[v].type.shape;
      if (dim < 0) dim += shape.rank();
      if (dim < 0 || dim >= shape.rank()) return wrong("sym_size of a dim that the tensor has not");
      size = shape.size(static_cast<int>(dim));
    } else if (call.args.size() == 3 &&
               (call.op == "add" || call.op == "sub" || call.op == "mul" || call.op == "floordiv")) {
      TOSAIC_TRY(const std::int64_t a, at(0));
      TOSAIC_TRY(const std::int64_t b, at(1));
      bool over = call.op == "floordiv" && (b == 0 || (a == INT64_MIN && b == -1));
      if (call.op == "add") over = __builtin_add_overflow(a, b, &size);
      if (call.op == "sub") over = __builtin_sub_overflow(a, b, &size);
      if (call.op == "mul") over = __builtin_mul_overflow(a, b, &size);
      if (over) return wrong(fmt::format("{} of {} and {} is no size", call.op, a, b));
      if (call.op == "floordiv") size = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    } else {
      return error("vulkan-backend.symbolic",
                   fmt::format("{} gives a scalar that is known only while the program runs", call.op))
          .hint("export the model so that sizes do not depend on values");
    }
    sizes_[result] = size;
    return {};
  }

  Status take_operator(const Call& call, const Schema& schema) {
    if (call.args.size() != schema.arguments.size() + 1)
      return wrong(fmt::format("{} is given {} arguments, and takes {}", call.op, call.args.size() - 1,
                               schema.arguments.size()));
    Node node;
    node.op = Operator(schema.full_name());
    node.loc = loc_;
    for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
      const SchemaArgument& argument = schema.arguments[i];
      if (argument.written) return writes_argument(call);
      Status taken =
          argument.is_tensor() ? operands(node, argument, call.args[i]) : attribute(node, argument, call.args[i]);
      if (!taken.ok()) return std::move(taken.error()).note(fmt::format("argument '{}' of {}", argument.name, call.op));
    }
    const std::vector<std::uint32_t> results = results_of(call, file_);
    for (std::uint32_t id : results) {
      const Tensor* t = tensor(id);
      if (!t) return wrong(fmt::format("a result of {} is no tensor", call.op));
      TOSAIC_CHECK(may_be_result(call, id));
      // A dtype is no value of a payload: it is the result's.
      const SchemaArgument* dtype = schema.argument("dtype");
      if (dtype && dtype->type.starts_with("ScalarType") && !node.attrs.find("dtype"))
        node.attrs.set("dtype", t->dtype);
    }
    return append(std::move(node), results);
  }

  static Diagnostic writes_argument(const Call& call) {
    return error("vulkan-backend.state", fmt::format("{} writes to one of its arguments", call.op))
        .hint("pass the buffer as an input and return its new content as an output");
  }

  // A value is computed once, unless it is a buffer: then it is one before anything is written to it.
  Status may_be_result(const Call& call, std::uint32_t id) {
    if (is_buffer_[id]) {
      TOSAIC_TRY(const ValueId before, operand(id));
      if (before != no_value && call.op != prepack) return {};
    }
    if (of_[id] == no_value && !tensor(id)->constant) return {};
    return wrong(fmt::format("{} writes to value {}, which is computed already", call.op, id));
  }

  // Payloads have 32 bits where PyTorch gives 64 (positions of maxima), and one number for 1 and 1.0.
  Status append(Node node, const std::vector<std::uint32_t>& results) {
    const auto trial = try_node(graph_, node);
    if (!trial.ok() && sizes_given_) return trial.error();  // where nothing else tells the sizes
    std::vector<ValueId> made;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Tensor& t = *tensor(results[i]);
      TensorType type = type_of(t);
      if (trial.ok() && i < trial->results.size()) {
        const TensorType& found = trial->graph[trial->results[i]].type;
        type.dtype = found.dtype;
        if (sizes_given_) type.shape = found.shape;
      }
      made.push_back(graph_.add_value(results.size() == 1 ? loc_->name : fmt::format("{}_{}", loc_->name, i), type));
    }
    node.outputs = made;
    graph_.nodes.push_back(std::move(node));
    for (std::size_t i = 0; i < results.size(); ++i) of_[results[i]] = converted(made[i], tensor(results[i])->dtype);
    return {};
  }

  const File& file_;
  const Lookup& data_;
  const std::string& name_;
  const std::vector<Shape>* sizes_given_;  // the inputs'; null: the payload's
  Graph graph_;
  std::vector<char> is_buffer_;                  // by value of the payload
  std::vector<ValueId> of_;                      // likewise, what it is now
  std::vector<std::uint32_t> buffers_;           // values, in the order of graph_.states
  std::map<std::uint32_t, std::int64_t> sizes_;  // numbers that follow from sizes
  std::map<std::uint32_t, ValueId> numbers_;     // numbers that follow from what tensors hold
  LocRef loc_;                                   // of the call that is being taken
};

}  // namespace

Result<Graph> aten_graph(const File& file, const Lookup& data, const std::string& name,
                         const std::vector<Shape>* inputs) {
  auto graph = unless_refused([&] { return Chain(file, data, name, inputs).graph(); });
  if (!graph.ok() && graph.error().place.file.empty()) graph.error().place.file = name;
  return graph;
}

Result<Graph> tosa_graph(const File& file, const Lookup& data, const std::string& name,
                         const std::vector<Shape>* inputs) {
  TOSAIC_TRY(Graph graph, aten_graph(file, data, name, inputs));
  TOSAIC_TRY(const Graph normal, normal_in_floats(std::move(graph)));
  return tosa_in_floats(normal);
}

}  // namespace tosaic::vulkan_backend
