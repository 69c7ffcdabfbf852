// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "formats/pte/layout.h"
#include "ir/aten_operators.h"
#include "ir/dim_arithmetic.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"
#include "kernels/out_variant.h"
#include "ops/lowering/conversion.h"
#include "ops/operator_name.h"
#include "pack/core_form.h"
#include "pack/executorch_kernels.h"
#include "pack/in_place.h"
#include "pack/straight_line.h"
#include "plan/arena.h"

namespace tosaic {
namespace {

using Index = std::int32_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Kernels outside the delegates compute on real numbers: codes are converted before and after each call.
Status compute_on_reals(Graph& graph) {
  Rewriter out(graph);
  FloatCalls floats(graph, out);
  for (Node& node : out.nodes()) {
    for (Graph& body : node.regions) TOSAIC_CHECK(compute_on_reals(body));
    if (node.op == op::delegate || !node.regions.empty() || node.op.is_conversion()) {
      out.keep(std::move(node));
      continue;
    }
    for (ValueId v : node.inputs)
      if (v != no_value && graph[v].type.quantised() && !graph[v].type.scales->per_tensor() && !graph[v].is_constant())
        return located(
            error("pack.no-kernel",
                  fmt::format("{} reads '{}', which is quantised per channel and no constant", node.op, graph[v].name)),
            node.loc);
    floats.keep(std::move(node));
  }
  return {};
}

class Packer {
 public:
  Packer(Graph graph, const std::vector<DelegatePayload>& payloads, const std::string& delegate_id,
         const PackOptions& options)
      : g_(std::move(graph)), payloads_(payloads), delegate_id_(delegate_id), options_(options) {}

  Result<pte::Plan> run(const Signature& signature, const std::function<void(Diagnostic)>& sink) {
    keep_old_contents();
    TOSAIC_CHECK(compute_on_reals(g_));
    TOSAIC_CHECK(packing::use_executorch_kernels(g_, sink));
    packing::put_in_line(g_);
    tensors_.assign(g_.values.size(), -1);
    lifetimes_.resize(g_.values.size());
    for (ValueId v : g_.inputs) {
      TOSAIC_TRY(Index i, tensor(v));
      plan_.inputs.push_back(i);
    }
    for (const State& state : g_.states) TOSAIC_CHECK(buffer(state));
    if (options_.in_place)
      for (const State& state : g_.states)
        if (packing::may_write_in_place(g_, state)) {
          tensors_[state.output] = tensors_[state.input];
          in_place_.insert(state.output);
        }
    for (const Node& node : g_.nodes) {
      Status status = node.op == op::delegate                  ? delegate_call(node)
                      : node.op.same_space(program::op::label) ? step(node)
                                                               : kernel_call(node);
      if (!status.ok()) return located(std::move(status.error()), node.loc);
    }
    // Buffers take their new content when everything has read the old one.
    for (const State& state : g_.states) {
      if (state.input == state.output || in_place_.contains(state.output)) continue;
      TOSAIC_TRY(Index old_content, use(state.input));
      TOSAIC_TRY(Index new_content, use(state.output));
      call({"aten::copy_", ""}, {old_content, new_content, constant(false), old_content});
    }
    for (const auto& [instruction, to] : jumps_)
      std::get<pte::JumpFalseCall>(plan_.instructions[instruction]).destination = labels_.at(to);
    const auto end = static_cast<std::uint32_t>(plan_.instructions.size());
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const ValueId v = g_.outputs[k];
      const bool number = std::ranges::find(signature.numbers, k) != signature.numbers.end();
      TOSAIC_TRY(const Index i, number ? number_of(v) : use(v));
      plan_.outputs.push_back(i);
      lifetimes_[v].last = end;
    }
    for (const State& state : g_.states) lifetimes_[state.input].last = end;
    place();
    TOSAIC_CHECK(insert_fixed(signature.inputs, plan_.inputs, true));
    TOSAIC_CHECK(insert_fixed(signature.outputs, plan_.outputs, false));
    return std::move(plan_);
  }

 private:
  // An output that is a buffer's old content must survive the buffer's update.
  void keep_old_contents() {
    for (ValueId& v : g_.outputs)
      for (const State& state : g_.states) {
        if (v != state.input || v == state.output) continue;
        const ValueId copy = g_.add_value(g_[v].name + ".old", g_[v].type);
        g_.nodes.push_back({aten::op::clone, {v}, {}, {copy}, nullptr, {}});
        v = copy;
        break;
      }
  }

  // Inputs and outputs that are no tensors take their places among those that are.
  Status insert_fixed(const FixedValues& fixed, std::vector<Index>& list, bool inputs) {
    for (const FixedValue& f : fixed) {
      pte::Value value;
      if (const auto* i = std::get_if<std::int64_t>(&f.value))
        value = *i;
      else if (const auto* d = std::get_if<double>(&f.value))
        value = *d;
      else if (const auto* b = std::get_if<bool>(&f.value))
        value = *b;
      else if (!std::holds_alternative<std::monostate>(f.value) && !(inputs && std::get_if<std::string>(&f.value)))
        return error("pack.output",
                     fmt::format("output {} is a string, which ExecuTorch's programs cannot return", f.position))
            .hint("return tensors, scalars and None from forward()");
      if (f.position > list.size()) return internal_error("a fixed value has a position beyond the others");
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(f.position), add(std::move(value)));
    }
    return {};
  }

  std::uint32_t now() const { return static_cast<std::uint32_t>(plan_.instructions.size()); }

  Index add(pte::Value value) {
    plan_.values.push_back(std::move(value));
    return static_cast<Index>(plan_.values.size() - 1);
  }

  // The value of a tensor, made when first met; its memory is needed from here on.
  Result<Index> tensor(ValueId v) {
    if (tensors_[v] >= 0) return tensors_[v];
    const Value& value = g_[v];
    pte::TensorValue t;
    t.dtype = value.type.dtype;
    if (!pte::scalar_type(t.dtype))
      return error("pack.dtype", fmt::format("'{}' is {}, which ExecuTorch's tensors cannot hold outside a delegate",
                                             value.name, to_string(value.type)));
    const auto largest = value.type.shape.upper();
    if (!largest)
      return error("pack.unbounded-size", fmt::format("'{}' is {}: nothing says how much memory it needs at most",
                                                      value.name, to_string(value.type)))
          .hint("give an upper bound when exporting: torch._check(size <= N)");
    for (std::int64_t d : largest->sizes()) {
      if (d > INT32_MAX)
        return error("pack.size",
                     fmt::format("'{}' is {}, too large for ExecuTorch", value.name, to_string(value.type)));
      t.sizes.push_back(static_cast<std::int32_t>(d));
    }
    if (!value.type.shape.is_static()) t.shape_dynamism = 1;
    t.constant = value.constant;
    t.is_planned = !value.is_constant();
    lifetimes_[v] = {value.type.with(*largest).storage_bytes(), now(), now()};
    return tensors_[v] = add(std::move(t));
  }
  Result<Index> use(ValueId v) {
    TOSAIC_TRY(Index i, tensor(v));
    lifetimes_[v].last = now();
    return i;
  }

  // A buffer that outlives the run: its memory belongs to it from beginning to end, and starts with its content.
  Status buffer(const State& state) {
    TOSAIC_TRY(Index i, tensor(state.input));
    auto& t = std::get<pte::TensorValue>(plan_.values[at(i)]);
    t.is_planned = true;
    t.state_name = state.name;
    t.constant = state.initial;
    if (t.constant.null()) t.constant = Bytes::of(std::vector<std::byte>(g_[state.input].type.storage_bytes()));
    return {};
  }

  void place() {
    std::vector<plan::Buffer> planned;
    std::vector<Index> which;
    for (ValueId v = 0; v < tensors_.size(); ++v) {
      if (in_place_.contains(v)) continue;
      const auto* tensor = tensors_[v] < 0 ? nullptr : std::get_if<pte::TensorValue>(&plan_.values[at(tensors_[v])]);
      if (!tensor || !tensor->is_planned || (options_.states_apart && !tensor->state_name.empty())) continue;
      planned.push_back(lifetimes_[v]);
      which.push_back(tensors_[v]);
    }
    plan_.arena_sizes = {static_cast<std::int64_t>(plan::place(planned, 16))};
    for (std::size_t k = 0; k < which.size(); ++k)
      std::get<pte::TensorValue>(plan_.values[at(which[k])]).planned = {1, planned[k].offset};
  }

  Status delegate_call(const Node& node) {
    const auto region = node.attrs.get_or<std::int64_t>("region", -1);
    if (region < 0 || static_cast<std::size_t>(region) >= payloads_.size())
      return internal_error(fmt::format("a delegate call names region {} of {}", region, payloads_.size()));
    const DelegatePayload& payload = payloads_[static_cast<std::size_t>(region)];
    plan_.delegates.push_back({delegate_id_, payload.data, payload.specs});
    pte::DelegateCall c;
    c.delegate = static_cast<Index>(plan_.delegates.size() - 1);
    for (const auto* ids : {&node.inputs, &node.outputs})
      for (ValueId v : *ids) {
        TOSAIC_TRY(Index i, use(v));
        c.args.push_back(i);
      }
    plan_.instructions.push_back(std::move(c));
    return {};
  }

  // See packing::put_in_line.
  Status step(const Node& node) {
    std::vector<Index> values;
    for (const auto* ids : {&node.inputs, &node.outputs})
      for (ValueId v : *ids) {
        TOSAIC_TRY(Index i, use(v));
        values.push_back(i);
      }
    if (node.op == program::op::label) labels_[node.attrs.get<std::int64_t>("at")] = static_cast<Index>(now());
    if (node.op == program::op::copy) call({"aten::copy_", ""}, {values[1], values[0], constant(false), values[1]});
    if (node.op == program::op::jump) {
      jumps_.emplace_back(now(), node.attrs.get<std::int64_t>("to"));
      plan_.instructions.push_back(pte::JumpFalseCall{values.empty() ? constant(false) : values[0], 0});
    }
    return {};
  }

  void call(const pte::OperatorName& name, std::vector<Index> args) {
    auto [known, fresh] =
        operators_.try_emplace({name.name, name.overload}, static_cast<Index>(plan_.operators.size()));
    if (fresh) plan_.operators.push_back(name);
    plan_.instructions.push_back(pte::KernelCall{known->second, std::move(args)});
  }

  Index number_in(Index tensor, DType type) {
    const Index number = add(is_float(type)           ? pte::Value(0.0)
                             : type == DType::boolean ? pte::Value(false)
                                                      : pte::Value(std::int64_t{0}));
    call({"aten::_local_scalar_dense", ""}, {tensor, number});
    return number;
  }

  // item(): a number out of a tensor, for the program's user or as an argument of later calls.
  Status number_call(const Node& node) {
    const ValueId number = node.outputs.at(0);
    TOSAIC_TRY(const Index from, use(node.inputs.at(0)));
    tensors_[number] = number_in(from, g_[number].type.dtype);
    return {};
  }

  // What the graph holds as a tensor of one element, and the program's user gets as a number of Python's.
  Result<Index> number_of(ValueId v) {
    const Value& value = g_[v];
    if (value.is_constant()) {
      if (value.size && !value.size->is_number()) return number_from_sizes(*value.size);
      if (is_float(value.type.dtype)) return constant(element_as_double(value.type.dtype, value.constant.data(), 0));
      const std::int64_t integer = element_as_integer(value.type.dtype, value.constant.data(), 0);
      return value.type.dtype == DType::boolean ? constant(integer != 0) : constant(integer);
    }
    TOSAIC_TRY(const Index made, use(v));
    if (!std::holds_alternative<pte::TensorValue>(plan_.values[at(made)])) return made;  // item()
    return number_in(made, value.type.dtype);
  }

  Index arithmetic(const std::string& what, Index a, Index b) {
    const Index result = add(std::int64_t{0});
    call({"executorch_prim::" + what, "Scalar"}, {a, b, result});
    return result;
  }

  // A number that follows from the sizes of inputs, computed from what these are when the program runs.
  Result<Index> number_from_sizes(const Dim& dim) {
    std::map<std::string, Index> sizes;
    for (const Symbol& symbol : dim.symbols()) { TOSAIC_TRY(sizes[symbol.name], size_of(symbol)); }
    static const char* const names[] = {"add", "mul", "floordiv", "mod", "sym_max", "sym_min"};  // by DimOperator
    return evaluate(
        dim,
        {[this](std::int64_t n) { return constant(n); }, [&](const Symbol& symbol) { return sizes.at(symbol.name); },
         [this](DimOperator op, Index a, Index b) { return arithmetic(names[static_cast<std::size_t>(op)], a, b); }});
  }

  // From an input's dimension that is factor * symbol + constant.
  Result<Index> size_of(const Symbol& symbol) {
    for (ValueId v : g_.inputs)
      for (int d = 0; d < g_[v].type.rank(); ++d) {
        const Dim dim = g_[v].type.shape[d];
        if (dim.symbols() != std::vector{symbol}) continue;
        const auto at_symbol = [&](std::int64_t n) { return dim.with([n](const Symbol&) { return Dim(n); }).value(); };
        const std::int64_t offset = at_symbol(0), factor = at_symbol(1) - offset;
        if (factor < 1 || dim != Dim(symbol) * Dim(factor) + Dim(offset)) continue;
        TOSAIC_TRY(const Index tensor, use(v));
        Index size = add(std::int64_t{0});
        call({"aten::sym_size", "int"}, {tensor, constant(std::int64_t{d}), size});
        if (offset != 0) size = arithmetic("sub", size, constant(offset));
        return factor == 1 ? size : arithmetic("floordiv", size, constant(factor));
      }
    return unknown_number(Dim(symbol));
  }

  static Diagnostic unknown_number(const Dim& dim) {
    return error("pack.output", fmt::format("the program returns {}, which is no input's size", to_string(dim)))
        .hint("choose the sizes: --sizes NAME=SIZE");
  }

  Status kernel_call(const Node& node) {
    if (gives_number(node)) return number_call(node);
    const FoundOp found = find_aten(node.op);
    if (!found.op) return unknown_kernel_call(node);
    const Schema& schema = *found.schema;
    std::vector<Index> args;
    std::size_t operand = 0, singles = 0;
    std::size_t lists = 0;
    for (const SchemaArgument& a : schema.arguments) {
      singles += a.is_tensor() && !a.is_tensor_list();
      lists += a.is_tensor_list();
    }
    if (lists > 1)
      return error("pack.no-kernel",
                   fmt::format("{} stays outside the delegate, and ExecuTorch has no kernel of it", node.op))
          .hint("compile for a target that takes it, or save the program after ep = ep.run_decompositions()");
    for (const SchemaArgument& a : schema.arguments) {
      if (a.is_tensor_list()) {  // takes what the single tensors leave
        const std::size_t count = node.inputs.size() - std::min(singles, node.inputs.size());
        pte::TensorList list{{}, a.type == "Tensor?[]"};
        for (std::size_t k = 0; k < count; ++k) {
          const ValueId v = node.inputs[operand++];
          Index item = -1;
          if (v != no_value) {
            TOSAIC_TRY(item, use(v));
          } else if (!list.optional) {
            return error("pack.argument", fmt::format("{} lacks a tensor of its list '{}'", node.op, a.name));
          }
          list.items.push_back(item);
        }
        args.push_back(add(std::move(list)));
      } else if (a.is_tensor()) {
        const ValueId v = operand < node.inputs.size() ? node.inputs[operand] : no_value;
        ++operand;
        TOSAIC_TRY(Index i, single_tensor(node, a, v));
        args.push_back(i);
      } else if (kernels::kept_by_out_variant(schema, a)) {
        TOSAIC_TRY(Index i, argument(node, a));
        args.push_back(i);
      }
    }
    return call_with_results(node, schema, kernels::out_variant(schema), std::move(args));
  }

  Status call_with_results(const Node& node, const Schema& schema, pte::OperatorName kernel, std::vector<Index> args) {
    TOSAIC_TRY(std::vector<Index> results, results_of(node));
    if (kernels::gives_list(schema)) {
      const Index list = add(pte::TensorList{results, false});
      args.insert(args.end(), {list, list});
    } else if (results.size() != schema.returns.size()) {
      return error("pack.no-kernel", fmt::format("{} has {} results here, and its kernel gives {}", node.op,
                                                 results.size(), schema.returns.size()));
    } else {
      args.insert(args.end(), results.begin(), results.end());
      args.push_back(results.size() == 1 ? results[0] : add(pte::TensorList{results, false}));
    }
    call(kernel, std::move(args));
    return {};
  }

  Result<std::vector<Index>> results_of(const Node& node) {
    std::vector<Index> results;
    for (ValueId v : node.outputs) {
      if (v == no_value)
        return error("pack.no-kernel",
                     fmt::format("{} stays outside the delegate, and the type of a result is not known", node.op));
      TOSAIC_TRY(Index i, use(v));
      results.push_back(i);
    }
    return results;
  }

  // An argument of an operator that tosaic does not know: the tensors that the program gives for it, if it gives any.
  struct Written {
    std::string name;
    bool tensors = false, list = false;
    std::vector<ValueId> values;
  };
  // See the reader's "argument_order".
  static Result<std::vector<Written>> arguments_as_written(const Node& node) {
    std::vector<Written> written;
    std::size_t operand = 0;
    for (const std::string& entry : node.attrs.get_or<std::vector<std::string>>("argument_order", {})) {
      Written w{entry.substr(entry.rfind(' ') + 1), entry.starts_with("Tensor?"), entry.starts_with("Tensor?[] "), {}};
      for (int k = w.list ? std::atoi(entry.c_str() + 10) : w.tensors ? 1 : 0; k > 0; --k) {
        if (operand >= node.inputs.size())
          return error("pack.argument", fmt::format("{} has fewer tensors than its arguments say", node.op));
        w.values.push_back(node.inputs[operand++]);
      }
      written.push_back(std::move(w));
    }
    return written;
  }

  Result<Index> written_tensors(const Written& written) {
    if (!written.list) return written.values[0] == no_value ? constant(pte::None{}) : use(written.values[0]);
    pte::TensorList list{{}, false};
    for (ValueId v : written.values) {
      Index item = -1;
      if (v != no_value) { TOSAIC_TRY(item, use(v)); }
      list.items.push_back(item);
      list.optional |= item < 0;
    }
    return add(std::move(list));
  }

  // An operator that tosaic does not know. ExecuTorch's own are called as their schemas want it, others with the
  // arguments as they stand in the program.
  Status unknown_kernel_call(const Node& node) {
    TOSAIC_TRY(const std::vector<Written> written, arguments_as_written(node));
    std::vector<Index> args;
    if (const auto theirs = packing::executorch_call(node.op)) {
      for (const Written& w : written)
        if (!theirs->schema.argument(w.name))
          return error("pack.argument", fmt::format("{} has no argument '{}' in ExecuTorch", node.op, w.name));
      for (const SchemaArgument& a : theirs->schema.arguments) {
        if (!kernels::kept_by_out_variant(theirs->schema, a)) continue;
        const auto w = std::find_if(written.begin(), written.end(), [&](const Written& x) { return x.name == a.name; });
        const bool tensors = w != written.end() && w->tensors;
        TOSAIC_TRY(Index i, tensors                                ? written_tensors(*w)
                            : a.is_tensor() && !a.is_tensor_list() ? single_tensor(node, a, no_value)
                                                                   : argument(node, a));
        args.push_back(i);
      }
      return call_with_results(node, theirs->schema, theirs->kernel, std::move(args));
    }
    for (const Written& w : written) {
      TOSAIC_TRY(Index i, w.tensors ? written_tensors(w) : argument(node, unknown_argument(node, w.name)));
      args.push_back(i);
    }
    TOSAIC_TRY(const std::vector<Index> results, results_of(node));
    args.insert(args.end(), results.begin(), results.end());
    args.push_back(results.size() == 1 ? results[0] : add(pte::TensorList{results, false}));
    call(*kernels::out_variant_by_name(node.op), std::move(args));
    return {};
  }

  static SchemaArgument unknown_argument(const Node& node, const std::string& name) {
    const Attr* attr = node.attrs.find(name);
    const bool ints = attr && std::holds_alternative<std::vector<std::int64_t>>(*attr);
    const bool reals = attr && std::holds_alternative<std::vector<double>>(*attr);
    return {name, ints ? "int[]" : reals ? "float[]" : "Scalar?"};
  }

  // A tensor argument; a number in its place becomes a constant of the first operand's dtype, as PyTorch promotes it.
  Result<Index> single_tensor(const Node& node, const SchemaArgument& a, ValueId v) {
    if (v != no_value) return use(v);
    const Attr* attr = node.attrs.find(a.name);
    const auto* integer = attr ? std::get_if<std::int64_t>(attr) : nullptr;
    const auto* real = attr ? std::get_if<double>(attr) : nullptr;
    if (integer || real) {
      DType type = node.inputs.empty() || node.inputs[0] == no_value ? DType::f32 : g_[node.inputs[0]].type.dtype;
      if (real && !is_float(type)) type = DType::f32;
      pte::TensorValue t{type, {}};
      t.constant = integer && !is_float(type)
                       ? constant_bytes(type, std::vector<std::int64_t>{*integer})
                       : constant_bytes(type, std::vector<double>{real ? *real : static_cast<double>(*integer)});
      return add(std::move(t));
    }
    if (!a.is_optional()) return error("pack.argument", fmt::format("{} lacks its tensor '{}'", node.op, a.name));
    return constant(pte::None{});
  }

  // A number that item() took out before, by its name.
  std::optional<Index> computed(const SymbolicArgument& a) {
    if (a.name.empty()) return a.size && a.size->is_number() ? std::optional(constant(a.size->value())) : std::nullopt;
    const auto value = std::ranges::find(g_.values, a.name, &Value::name);
    if (value == g_.values.end()) return std::nullopt;
    const Index made = tensors_[static_cast<std::size_t>(value - g_.values.begin())];
    if (made < 0 || std::holds_alternative<pte::TensorValue>(plan_.values[at(made)])) return std::nullopt;
    return made;
  }
  // The same for an argument, which may be a list of them and of numbers.
  std::optional<Index> computed_argument(const Attr& value) {
    if (const auto* one = std::get_if<SymbolicArgument>(&value)) return computed(*one);
    pte::IntList items;
    for (const SymbolicArgument& a : std::get<std::vector<SymbolicArgument>>(value)) {
      const auto item = computed(a);
      if (!item) return std::nullopt;
      items.items.push_back(*item);
    }
    return add(std::move(items));
  }

  Result<Index> argument(const Node& node, const SchemaArgument& a) {
    const Attr* attr = node.attrs.find(a.name);
    if (!attr && !a.has_default && !a.is_optional())
      return error("pack.argument", fmt::format("{} lacks its argument '{}'", node.op, a.name));
    const Attr value = attr ? *attr : a.default_value;
    const std::string type = a.type.substr(0, a.type.find_first_of("?["));
    const bool list = a.type.find('[') != std::string::npos;
    auto wrong = [&] {
      return error("pack.argument", fmt::format("{}: argument '{}' cannot be stored as {}", node.op, a.name, a.type));
    };
    if (std::holds_alternative<std::monostate>(value)) return constant(pte::None{});
    if (std::holds_alternative<SymbolicArgument>(value) ||
        std::holds_alternative<std::vector<SymbolicArgument>>(value)) {
      if (const auto computed = computed_argument(value)) return *computed;
      return error("pack.symbolic-argument",
                   fmt::format("{}: argument '{}' is known only when the program runs", node.op, a.name))
          .hint(
              "export the model with fixed input sizes; instead of a scalar that item() reads, use the tensor itself");
    }
    if (type == "Layout" || type == "Device" || type == "MemoryFormat") return constant(pte::None{});
    if (const auto* dtype = std::get_if<DType>(&value)) {
      const auto number = pte::scalar_type(*dtype);
      if (!number) return wrong();
      return constant(static_cast<std::int64_t>(*number));
    }
    if (const auto* text = std::get_if<std::string>(&value)) return constant(*text);
    if (list) return list_argument(a, type, value, wrong());
    if (const auto* b = std::get_if<bool>(&value)) return type == "float" ? constant(*b ? 1.0 : 0.0) : constant(*b);
    if (const auto* d = std::get_if<double>(&value))
      return type == "int" || type == "SymInt" ? Result<Index>(wrong()) : constant(*d);
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      if (type == "float") return constant(static_cast<double>(*i));
      return type == "bool" ? constant(*i != 0) : constant(*i);
    }
    return wrong();
  }

  Result<Index> list_argument(const SchemaArgument& a, const std::string& type, const Attr& value, Diagnostic wrong) {
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value))
      integers = *l;
    else if (const auto* i = std::get_if<std::int64_t>(&value))
      integers = {*i};
    else if (const auto* d = std::get_if<std::vector<double>>(&value))
      reals = *d;
    else
      return wrong;
    if (type == "float") {
      if (reals.empty()) reals.assign(integers.begin(), integers.end());
      return add(std::move(reals));
    }
    if (!reals.empty()) return wrong;
    if (type == "bool") return add(std::vector<bool>(integers.begin(), integers.end()));
    // One number stands for all: SymInt[2] padding=0
    const auto open = a.type.find('[');
    const int wanted = std::atoi(a.type.c_str() + open + 1);
    if (integers.size() == 1 && wanted > 1) integers.resize(static_cast<std::size_t>(wanted), integers[0]);
    pte::IntList items;
    for (std::int64_t v : integers) items.items.push_back(constant(v));
    return add(std::move(items));
  }

  // Equal numbers share one value.
  Index constant(pte::Value value) {
    std::string key = fmt::format("{}:", value.index());
    if (const auto* i = std::get_if<std::int64_t>(&value))
      key += std::to_string(*i);
    else if (const auto* d = std::get_if<double>(&value))
      key += fmt::format("{:a}", *d);
    else if (const auto* b = std::get_if<bool>(&value))
      key += *b ? "1" : "0";
    else if (const auto* s = std::get_if<std::string>(&value))
      key += *s;
    auto [known, fresh] = constants_.try_emplace(std::move(key), 0);
    if (fresh) known->second = add(std::move(value));
    return known->second;
  }

  Graph g_;
  const std::vector<DelegatePayload>& payloads_;
  const std::string& delegate_id_;
  PackOptions options_;
  pte::Plan plan_;
  std::vector<Index> tensors_;           // by graph value: its index in the plan, -1 before it is met
  std::vector<plan::Buffer> lifetimes_;  // by graph value
  std::set<ValueId> in_place_;           // new contents that are written where the old ones lie
  std::map<std::string, Index> constants_;
  std::map<std::int64_t, Index> labels_;                     // the instruction that each stands before
  std::vector<std::pair<std::size_t, std::int64_t>> jumps_;  // instructions, and the labels that they jump to
  std::map<std::pair<std::string, std::string>, Index> operators_;
};

}  // namespace

Result<pte::Program> pack_program(const Graph& outer, const std::vector<DelegatePayload>& payloads,
                                  const std::string& delegate_id, const Signature& signature,
                                  const std::function<void(Diagnostic)>& sink, const PackOptions& options) {
  TOSAIC_CHECK(verify(outer));
  TOSAIC_TRY(pte::Plan plan, Packer(outer, payloads, delegate_id, options).run(signature, sink));
  plan.input_spec = signature.input_spec;
  plan.output_spec = signature.output_spec;
  pte::Program program;
  program.plans.push_back(std::move(plan));
  return program;
}

Result<Rope> pack(const Graph& outer, const std::vector<DelegatePayload>& payloads, const std::string& delegate_id,
                  const Signature& signature, const std::function<void(Diagnostic)>& sink) {
  TOSAIC_TRY(pte::Program program, pack_program(outer, payloads, delegate_id, signature, sink));
  return pte::write(program);
}

}  // namespace tosaic
