// SPDX-License-Identifier: Apache-2.0
#include "kernels/lowered_kernel.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "execute/executable.h"
#include "formats/pte/layout.h"
#include "ir/marks.h"
#include "kernels/out_variant.h"
#include "lower/lower.h"
#include "ops/op.h"
#include "ops/trial.h"

namespace tosaic::kernels {
namespace {

using runtime::Cell;
using runtime::Cells;
using runtime::Kernel;
using runtime::KernelContext;
using runtime::name_of;
using runtime::TensorCell;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct Port {
  std::int32_t cell = 0;
  std::vector<std::byte> space;  // where elements are brought into form
};

class LoweredKernel : public Kernel {
 public:
  LoweredKernel(execute::Executable executable, std::vector<Port> inputs, std::vector<Port> outputs)
      : executable_(std::move(executable)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  Status run(Cells& cells) override {
    std::vector<const void*> in;
    for (Port& port : inputs_) in.push_back(dense(cells[at(port.cell)].tensor, port.space));
    std::vector<void*> out;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const TensorCell& cell = cells[at(outputs_[i].cell)].tensor;
      if (cell.constant) return error("kernel.arguments", "a kernel would write to a constant");
      const bool staged = !cell.dim_order.empty() || overlaps(cell, cells);
      outputs_[i].space.resize(staged ? executable_.output_types()[i].storage_bytes() : 0);
      out.push_back(staged ? outputs_[i].space.data() : cell.data);
    }
    TOSAIC_CHECK(executable_.run(in, out));
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const TensorCell& cell = cells[at(outputs_[i].cell)].tensor;
      if (out[i] != cell.data) store_dense(cell, out[i]);
    }
    return {};
  }

  Result<std::unique_ptr<Kernel>> clone() const override {
    const auto bare = [](const std::vector<Port>& ports) {  // this one may be running: its space is left alone
      std::vector<Port> made;
      for (const Port& port : ports) made.push_back({port.cell, {}});
      return made;
    };
    TOSAIC_TRY(auto executable, executable_.clone());
    return std::unique_ptr<Kernel>(
        std::make_unique<LoweredKernel>(std::move(executable), bare(inputs_), bare(outputs_)));
  }

 private:
  // In-place calls, and programs that plan a result over an operand.
  bool overlaps(const TensorCell& out, const Cells& cells) const {
    const auto* first = static_cast<const std::byte*>(out.data);
    const auto* last = first + out.type.storage_bytes();
    for (const Port& port : inputs_) {
      const TensorCell& in = cells[at(port.cell)].tensor;
      const auto* begin = static_cast<const std::byte*>(in.data);
      if (std::less<>()(begin, last) && std::less<>()(first, begin + in.type.storage_bytes())) return true;
    }
    return false;
  }

  execute::Executable executable_;
  std::vector<Port> inputs_, outputs_;
};

// Results without elements need no work.
class EmptyKernel : public Kernel {
 public:
  Status run(Cells&) override { return {}; }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<EmptyKernel>());
  }
};

// Builds the graph of one call: its tensors as inputs or constants, its other arguments as attributes.
class CallGraph {
 public:
  CallGraph(const KernelContext& context, const pte::OperatorName& name, const pte::KernelCall& call,
            const Cells& cells)
      : context_(context), name_(name), call_(call), cells_(cells) {}

  Result<std::unique_ptr<Kernel>> make() {
    TOSAIC_CHECK(build());
    graph_.nodes.push_back(std::move(node_));
    return compile();
  }

  Result<std::vector<std::int32_t>> results() {
    TOSAIC_CHECK(build());
    return in_place_ ? std::vector<std::int32_t>() : results_;
  }

  Result<runtime::ResultShapes> shapes() {
    TOSAIC_CHECK(build());
    if (in_place_) return runtime::ResultShapes{};
    TOSAIC_TRY(const auto shapes, has_empty_operand() ? shapes_of_nothing() : shapes_at(0));
    runtime::ResultShapes found;
    for (std::size_t i = 0; i < results_.size() && i < shapes.size(); ++i) found.emplace_back(results_[i], shapes[i]);
    return found;
  }

 private:
  Status build() {
    const auto found = schema();
    if (!found)
      return error("kernel.unknown", fmt::format("{} with {} arguments is not a kernel that tosaic knows",
                                                 name_of(name_), call_.args.size()))
          .hint(
              "run the program with ExecuTorch, linked with that kernel, or save the model after "
              "ep = ep.run_decompositions() and compile it again");
    const Schema& schema = *found->schema;
    node_.op = Operator(schema.full_name());
    std::size_t next = 0;
    for (const SchemaArgument& a : schema.arguments) {
      if (!kept_by_out_variant(schema, a)) continue;
      Status status = argument(a, call_.args[next++]);
      if (!status.ok()) {
        status.error().notes.push_back(fmt::format("argument '{}' of {}", a.name, name_of(name_)));
        return std::move(status.error());
      }
    }
    if (in_place_) TOSAIC_CHECK(output(call_.args[0]));
    for (std::size_t i = 0; !in_place_ && i < schema.returns.size(); ++i) TOSAIC_CHECK(results(call_.args[next++]));
    if (!kept_by_out_variant(schema, {"dtype", "ScalarType?"}) && !node_.outputs.empty() && schema.argument("dtype"))
      node_.attrs.set("dtype", first_output_);
    if (found->op->has_exact_form) set_mark(node_, mark::exact, true);  // nothing is known of what reads the result
    return {};
  }

  // "aten::index_put_" changes its first argument: the functional operator, stored over it.
  std::optional<FoundOp> schema() {
    if (auto found = functional(name_, call_.args.size())) return found;
    if (!name_.name.ends_with("_") || call_.args.empty()) return std::nullopt;
    const std::string bare = name_.name.substr(0, name_.name.size() - 1);
    const auto colons = bare.find("::");
    if (colons == std::string::npos) return std::nullopt;
    const FoundOp found = find_aten(Operator(bare.substr(0, colons) + "." + bare.substr(colons + 2) + "." +
                                             (name_.overload.empty() ? "default" : name_.overload)));
    if (!found.op || found.schema->arguments.size() + 1 != call_.args.size()) return std::nullopt;
    in_place_ = true;
    return found;
  }

  bool has_empty_operand() const {
    return std::ranges::any_of(node_.inputs,
                               [&](ValueId v) { return v != no_value && graph_[v].type.shape.is_empty(); });
  }
  // The shapes of the results; `size` in place of sizes of zero.
  Result<std::vector<Shape>> shapes_at(std::int64_t size) const {
    const auto some = [&](std::size_t, TensorType& type, Bytes& elements) {
      if (!type.shape.is_empty()) return;
      for (int d = 0; d < type.rank(); ++d)
        if (type.shape.size(d) == 0) type.shape.set(d, size);
      elements = {};
    };
    TOSAIC_TRY(const Trial trial, try_node(graph_, undeclared(node_), {.operand = some}));
    std::vector<Shape> shapes;
    for (ValueId v : trial.results) shapes.push_back(trial.graph[v].type.shape);
    return shapes;
  }
  // TOSA has no tensors without elements: what two sizes give tells what none gives.
  Result<std::vector<Shape>> shapes_of_nothing() const {
    TOSAIC_TRY(std::vector<Shape> shapes, shapes_at(2));
    TOSAIC_TRY(const std::vector<Shape> larger, shapes_at(3));
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (int d = 0; d < shapes[i].rank(); ++d) {
        const std::int64_t two = shapes[i].size(d), three = larger[i].size(d);
        shapes[i].set(d, std::max<std::int64_t>(0, two - 2 * (three - two)));
      }
    return shapes;
  }

  const Cell& cell(std::int32_t i) const { return cells_[at(i)]; }
  bool changes(std::int32_t i) const { return context_.changing[at(i)] && !context_.now; }
  static Diagnostic wrong(std::string message) { return error("kernel.arguments", std::move(message)); }

  Status argument(const SchemaArgument& a, std::int32_t index) {
    const pte::Value& value = cell(index).value;
    if (a.is_tensor_list()) {
      const auto* list = std::get_if<pte::TensorList>(&value);
      if (!list) return wrong("a list of tensors is expected");
      for (std::int32_t i : list->items) TOSAIC_CHECK(operand(i));
      return {};
    }
    if (a.is_tensor()) {
      if (!cell(index).is_tensor && std::holds_alternative<pte::None>(value) && a.is_optional()) return operand(-1);
      return operand(index);
    }
    if (changes(index)) return dynamic();
    if (std::holds_alternative<pte::None>(value)) return {};
    const std::string type = a.type.substr(0, a.type.find_first_of("?["));
    if (type == "MemoryFormat" || type == "Layout" || type == "Device") return {};
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      if (type == "ScalarType") {
        const auto dtype = *i >= 0 && *i < 64 ? pte::dtype_of(static_cast<pte_schema::ScalarType>(*i)) : std::nullopt;
        if (!dtype) return wrong(fmt::format("there is no dtype numbered {}", *i));
        node_.attrs.set(a.name, *dtype);
      } else if (type == "float") {
        node_.attrs.set(a.name, static_cast<double>(*i));
      } else {
        node_.attrs.set(a.name, *i);
      }
    } else if (const auto* b = std::get_if<bool>(&value)) {
      node_.attrs.set(a.name, *b);
    } else if (const auto* d = std::get_if<double>(&value)) {
      node_.attrs.set(a.name, *d);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      node_.attrs.set(a.name, *s);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
      node_.attrs.set(a.name, *reals);
    } else if (const auto* flags = std::get_if<std::vector<bool>>(&value)) {
      node_.attrs.set(a.name, std::vector<std::int64_t>(flags->begin(), flags->end()));
    } else if (const auto* ints = std::get_if<pte::IntList>(&value)) {
      std::vector<std::int64_t> items;
      for (std::int32_t item : ints->items) {
        if (changes(item)) return dynamic();
        items.push_back(std::get<std::int64_t>(cell(item).value));
      }
      node_.attrs.set(a.name, std::move(items));
    } else {
      return wrong("a number, a string or a list is expected");
    }
    return {};
  }

  static Diagnostic dynamic() {
    return error("kernel.unsupported", "a size that is computed while the program runs is used as an argument")
        .hint("export the model with fixed input sizes");
  }

  Status operand(std::int32_t index) {
    if (index < 0) {
      node_.inputs.push_back(no_value);
      return {};
    }
    if (!cell(index).is_tensor) return wrong("a tensor is expected");
    auto [known, fresh] = operands_.try_emplace(index, no_value);
    if (fresh) {
      const TensorCell& tensor = cell(index).tensor;
      const std::string name = fmt::format("in{}", operands_.size());
      if (tensor.constant && !context_.changing[at(index)]) {
        known->second = graph_.add_value(name, tensor.type, constant(index));
      } else {
        known->second = graph_.add_value(name, tensor.type);
        graph_.inputs.push_back(known->second);
        inputs_.push_back({index, {}});
      }
    }
    node_.inputs.push_back(known->second);
    return {};
  }

  // The program's own memory, where it is in row-major order: a kernel of other sizes has the same.
  Bytes constant(std::int32_t index) const {
    const TensorCell& tensor = cell(index).tensor;
    const auto* planned = std::get_if<pte::TensorValue>(&context_.plan.values[at(index)]);
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    if (planned && aligned && planned->constant.data() == tensor.data && tensor.dim_order.empty())
      return planned->constant;
    std::vector<std::byte> space;
    const void* elements = dense(tensor, space);
    return Bytes::copy(elements, tensor.type.storage_bytes());
  }

  // One result, or a list of them.
  Status results(std::int32_t index) {
    if (const auto* list = std::get_if<pte::TensorList>(&cell(index).value)) {
      for (std::int32_t i : list->items) TOSAIC_CHECK(output(i));
      return {};
    }
    return output(index);
  }

  Status output(std::int32_t index) {
    if (index < 0 || !cell(index).is_tensor || cell(index).tensor.constant)
      return wrong("the result needs a tensor that can be written");
    const TensorCell& tensor = cell(index).tensor;
    results_.push_back(index);
    if (node_.outputs.empty()) first_output_ = tensor.type.dtype;
    if (!context_.used[at(index)]) {  // lowerings need not give what nobody reads (the indices of a pooling)
      node_.outputs.push_back(no_value);
      return {};
    }
    const ValueId v = graph_.add_value(fmt::format("out{}", graph_.values.size()), tensor.type);
    node_.outputs.push_back(v);
    graph_.outputs.push_back(v);
    outputs_.push_back({index, {}});
    return {};
  }

  Result<std::unique_ptr<Kernel>> compile() {
    const bool nothing = std::all_of(graph_.outputs.begin(), graph_.outputs.end(),
                                     [&](ValueId v) { return graph_[v].type.shape.elements() == 0; });
    if (nothing) return std::unique_ptr<Kernel>(std::make_unique<EmptyKernel>());
    auto lowered = lower(graph_);
    auto executable =
        lowered.ok() ? execute::Executable::of_lowering(
                           std::move(lowered->graph),
                           {.threads = context_.threads, .interpret = context_.interpret, .memory = context_.memory})
                     : Result<execute::Executable>(lowered.error());
    if (!executable.ok()) {
      Diagnostic why =
          error("kernel.unsupported", fmt::format("{} cannot be run: {}", name_of(name_), executable.error().message));
      why.notes = executable.error().notes;
      why.help = "delegate this operator, or run the program with ExecuTorch";
      return why;
    }
    return std::unique_ptr<Kernel>(
        std::make_unique<LoweredKernel>(std::move(*executable), std::move(inputs_), std::move(outputs_)));
  }

  const KernelContext& context_;
  const pte::OperatorName& name_;
  const pte::KernelCall& call_;
  const Cells& cells_;
  bool in_place_ = false;
  Graph graph_;
  Node node_;
  DType first_output_ = DType::f32;
  std::map<std::int32_t, ValueId> operands_;
  std::vector<std::int32_t> results_;  // the cells of all of them
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

runtime::KernelFactory lowered_kernels() {
  const auto graph_of = [](const KernelContext& context, const pte::KernelCall& call, const Cells& cells) {
    return CallGraph(context, context.plan.operators[at(call.op)], call, cells);
  };
  return {.make = [=](const auto& context, const auto& call,
                      const auto& cells) { return graph_of(context, call, cells).make(); },
          .shapes = [=](const auto& context, const auto& call,
                        const auto& cells) { return graph_of(context, call, cells).shapes(); },
          .results = [=](const auto& context, const auto& call,
                         const auto& cells) { return graph_of(context, call, cells).results(); }};
}

}  // namespace tosaic::kernels
