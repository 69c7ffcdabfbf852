// SPDX-License-Identifier: Apache-2.0
#include "pack/kernel_calls.h"

#include <fmt/format.h>
#include <algorithm>

#include "formats/pte/layout.h"
#include "ir/marks.h"
#include "ir/tensor.h"
#include "kernels/out_variant.h"
#include "ops/operator_name.h"
#include "pack/executorch_kernels.h"

namespace tosaic::packing {
namespace {

SchemaArgument unknown_argument(const Node& node, const std::string& name) {
  const Attr* attr = node.attrs.find(name);
  const bool ints = attr && std::holds_alternative<std::vector<std::int64_t>>(*attr);
  const bool reals = attr && std::holds_alternative<std::vector<double>>(*attr);
  return {name, ints ? "int[]" : reals ? "float[]" : "Scalar?"};
}

}  // namespace

Status KernelCalls::kernel_call(const Node& node) {
  if (gives_scalar(node)) return number_call(node);
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

// item(): a number out of a tensor, for the program's user or as an argument of later calls.
Status KernelCalls::number_call(const Node& node) {
  const ValueId number = node.outputs.at(0);
  TOSAIC_TRY(const Index from, use(node.inputs.at(0)));
  tensors_[number] = number_in(from, g_[number].type.dtype);
  return {};
}

Status KernelCalls::call_with_results(const Node& node, const Schema& schema, pte::OperatorName kernel,
                                      std::vector<Index> args) {
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

Result<std::vector<Index>> KernelCalls::results_of(const Node& node) {
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

// See mark::argument_order.
Result<std::vector<KernelCalls::Written>> KernelCalls::arguments_as_written(const Node& node) {
  std::vector<Written> written;
  std::size_t operand = 0;
  const auto* order = find_mark(node, mark::argument_order);
  for (const std::string& entry : order ? *order : std::vector<std::string>{}) {
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

Result<Index> KernelCalls::written_tensors(const Written& written) {
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
Status KernelCalls::unknown_kernel_call(const Node& node) {
  TOSAIC_TRY(const std::vector<Written> written, arguments_as_written(node));
  std::vector<Index> args;
  if (const auto theirs = executorch_call(node.op)) {
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

// What a whole number is next to booleans: an integer, unless it was True or False, which the result tells.
static DType next_to_booleans(std::int64_t number, DType result) {
  if (result == DType::boolean) return number == 0 || number == 1 ? result : DType::i64;
  return is_integer(result) ? result : DType::i64;
}

// A tensor argument; a number in its place becomes a constant of the first operand's dtype, as PyTorch promotes it.
Result<Index> KernelCalls::single_tensor(const Node& node, const SchemaArgument& a, ValueId v) {
  if (v != no_value) return use(v);
  const Attr* attr = node.attrs.find(a.name);
  const auto* truth = attr ? std::get_if<bool>(attr) : nullptr;
  const Attr whole = truth ? Attr(std::int64_t{*truth}) : attr ? *attr : Attr();
  const auto* integer = std::get_if<std::int64_t>(&whole);
  const auto* real = std::get_if<double>(&whole);
  if (integer || real) {
    DType type = node.inputs.empty() || node.inputs[0] == no_value ? DType::f32 : g_[node.inputs[0]].type.dtype;
    if (real && !is_float(type)) type = DType::f32;
    if (integer && type == DType::boolean && !node.outputs.empty() && node.outputs[0] != no_value)
      type = next_to_booleans(*integer, g_[node.outputs[0]].type.dtype);
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
std::optional<Index> KernelCalls::computed(const SymbolicArgument& a) {
  if (a.name.empty()) return a.size && a.size->is_number() ? std::optional(constant(a.size->value())) : std::nullopt;
  const auto value = std::ranges::find(g_.values, a.name, &Value::name);
  if (value == g_.values.end()) return std::nullopt;
  const Index made = tensors_[static_cast<std::size_t>(value - g_.values.begin())];
  if (made < 0 || std::holds_alternative<pte::TensorValue>(plan_.values[at(made)])) return std::nullopt;
  return made;
}

// The same for an argument, which may be a list of them and of numbers.
std::optional<Index> KernelCalls::computed_argument(const Attr& value) {
  if (const auto* one = std::get_if<SymbolicArgument>(&value)) return computed(*one);
  pte::IntList items;
  for (const SymbolicArgument& a : std::get<std::vector<SymbolicArgument>>(value)) {
    const auto item = computed(a);
    if (!item) return std::nullopt;
    items.items.push_back(*item);
  }
  return add(std::move(items));
}

Result<Index> KernelCalls::argument(const Node& node, const SchemaArgument& a) {
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
  if (std::holds_alternative<SymbolicArgument>(value) || std::holds_alternative<std::vector<SymbolicArgument>>(value)) {
    if (const auto computed = computed_argument(value)) return *computed;
    return error("pack.symbolic-argument",
                 fmt::format("{}: argument '{}' is known only when the program runs", node.op, a.name))
        .hint("export the model with fixed input sizes; instead of a scalar that item() reads, use the tensor itself");
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

Result<Index> KernelCalls::list_argument(const SchemaArgument& a, const std::string& type, const Attr& value,
                                         Diagnostic wrong) {
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

}  // namespace tosaic::packing
