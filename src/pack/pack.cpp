// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "ir/aten_operators.h"
#include "ir/dim_arithmetic.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"
#include "ops/lowering/conversion.h"
#include "pack/core_form.h"
#include "pack/executorch_kernels.h"
#include "pack/in_place.h"
#include "pack/kernel_calls.h"
#include "pack/straight_line.h"

namespace tosaic {
namespace packing {
namespace {

// Kernels outside the delegates compute on real numbers: quantised values are converted before and after each call.
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

class Packer : KernelCalls {
 public:
  Packer(Graph graph, const std::vector<DelegatePayload>& payloads, const std::string& delegate_id,
         const PackOptions& options)
      : KernelCalls(std::move(graph)), payloads_(payloads), delegate_id_(delegate_id), options_(options) {}

  Result<pte::Plan> run(const Signature& signature, const std::function<void(Diagnostic)>& sink) {
    keep_old_contents();
    TOSAIC_CHECK(compute_on_reals(g_));
    TOSAIC_CHECK(use_executorch_kernels(g_, sink));
    put_in_line(g_);
    tensors_.assign(g_.values.size(), -1);
    lifetimes_.resize(g_.values.size());
    for (ValueId v : g_.inputs) {
      TOSAIC_TRY(Index i, tensor(v));
      plan_.inputs.push_back(i);
    }
    for (const State& state : g_.states) TOSAIC_CHECK(buffer(state));
    if (options_.in_place)
      for (const State& state : g_.states)
        if (may_write_in_place(g_, state)) {
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
      const bool number = std::ranges::find(signature.scalars, k) != signature.scalars.end();
      TOSAIC_TRY(const Index i, number ? number_of(v) : use(v));
      plan_.outputs.push_back(i);
      lifetimes_[v].last = end;
    }
    for (const State& state : g_.states) lifetimes_[state.input].last = end;
    place(in_place_, options_.states_apart);
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

  Status delegate_call(const Node& node) {
    const std::int64_t* marked = find_mark(node, mark::region);
    const std::int64_t region = marked ? *marked : -1;
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

  // See put_in_line.
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
    return error("pack.output", fmt::format("the program returns {}, which is no input's size", to_string(Dim(symbol))))
        .hint("choose the sizes: --sizes NAME=SIZE");
  }

  const std::vector<DelegatePayload>& payloads_;
  const std::string& delegate_id_;
  PackOptions options_;
  std::set<ValueId> in_place_;                               // new contents that are written where the old ones lie
  std::map<std::int64_t, Index> labels_;                     // the instruction that each stands before
  std::vector<std::pair<std::size_t, std::int64_t>> jumps_;  // instructions, and the labels that they jump to
};

}  // namespace
}  // namespace packing

Result<pte::Program> pack_program(const Graph& outer, const std::vector<DelegatePayload>& payloads,
                                  const std::string& delegate_id, const Signature& signature,
                                  const std::function<void(Diagnostic)>& sink, const PackOptions& options) {
  TOSAIC_CHECK(verify(outer));
  TOSAIC_TRY(pte::Plan plan, packing::Packer(outer, payloads, delegate_id, options).run(signature, sink));
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
