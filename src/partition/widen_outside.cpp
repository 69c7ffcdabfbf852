// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ir/rewriter.h"
#include "ir/states.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "ops/trial.h"
#include "partition/partition.h"

namespace tosaic {
namespace {

class Widening {
 public:
  Widening(Graph& outer, const std::vector<std::string>& narrowed)
      : g_(outer), names_(narrowed.begin(), narrowed.end()), out_(outer) {}

  void run() {
    for (Node& node : out_.nodes()) {
      if (node.op == op::delegate || !node.regions.empty()) {
        read_as_.operands(node);
        out_.keep(std::move(node));
      } else if (!conversion(node)) {
        kernel(std::move(node));
      }
    }
    read_as_.outputs(g_);
    drop_dead(g_);
  }

 private:
  bool narrowed(ValueId v) const {
    return v != no_value && g_[v].type.dtype == DType::i32 && names_.contains(g_[v].name);
  }

  // Between a narrowed value and its int64 form: who reads the one may now read the other.
  bool conversion(Node& node) {
    if (node.inputs.size() != 1 || node.outputs.size() != 1 || node.inputs[0] == no_value) return false;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    if (saturates_to_i32(g_, node)) {
      held_.set(out, in);
      out_.keep(std::move(node));
      return true;
    }
    if (node.op != aten::op::_to_copy) return false;
    if (g_[in].type.dtype == DType::i64 && narrowed(out)) {
      node.inputs[0] = read_as_(in);
      wide_[out] = held_(node.inputs[0]);
      if (wide_[out] != node.inputs[0]) beyond_.insert(wide_[out]);
    } else if ((narrowed(in) || wide_.contains(in)) && g_[out].type.dtype == DType::i64) {
      const auto [wide, fresh] = wide_.try_emplace(in, out);
      if (!fresh) {
        read_as_.set(out, wide->second);
        return true;
      }
    } else {
      return false;
    }
    out_.keep(std::move(node));
    return true;
  }

  // The int64 form of a narrowed value.
  ValueId widened(ValueId v, const LocRef& loc) {
    if (const auto known = wide_.find(v); known != wide_.end()) return known->second;
    Bytes constant;
    if (g_[v].is_constant()) constant = converted({g_[v].type, g_[v].constant.data()}, DType::i64);
    const ValueId wide = g_.add_value(g_[v].name + ".i64", g_[v].type.with(DType::i64), constant);
    if (constant.null()) convert(v, wide, DType::i64, loc);
    return wide_[v] = wide;
  }

  // The program made int32 of an int64 value itself (x.int(), type_as) where the call would give int64 for the int64
  // form and the program says int32; that conversion is gone since both are int32.
  bool reads_int32(const Node& call) const {
    const auto trial = try_node(g_, call, {.operand = [&](std::size_t i, TensorType& type, Bytes& elements) {
                                  if (!narrowed(call.inputs[i]) && !wide_.contains(call.inputs[i])) return;
                                  type.dtype = DType::i64;
                                  elements = {};
                                }});
    if (!trial.ok()) return false;
    for (std::size_t i = 0; i < call.outputs.size() && i < trial->results.size(); ++i) {
      const ValueId v = call.outputs[i];
      if (v != no_value && !narrowed(v) && g_[v].type.dtype == DType::i32 &&
          trial->graph[trial->results[i]].type.dtype == DType::i64)
        return true;
    }
    return false;
  }

  // A kernel outside sees PyTorch's types.
  void kernel(Node node) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return v != no_value && (narrowed(v) || wide_.contains(v)); });
    const bool as_int32 = any && reads_int32(node);
    for (ValueId& v : node.inputs) {
      if (v == no_value) continue;
      if (!as_int32 && (narrowed(v) || wide_.contains(v)))
        v = widened(v, node.loc);
      else
        v = read_as_(v);
    }
    const bool beyond =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return beyond_.contains(v); });
    std::vector<std::pair<ValueId, ValueId>> copies;
    for (ValueId v : node.outputs) {
      if (!narrowed(v)) continue;
      if (beyond) beyond_.insert(v);
      const ValueId narrow = g_.add_value(g_[v].name + ".i32", g_[v].type);
      g_[v].type.dtype = DType::i64;
      read_as_.set(v, narrow);
      wide_[v] = v;
      wide_[narrow] = v;
      copies.emplace_back(v, narrow);
    }
    for (const auto& [name, attr] : Attrs(node.attrs))
      if (const auto* t = std::get_if<DType>(&attr); !copies.empty() && t && *t == DType::i32)
        node.attrs.set(name, DType::i64);
    const LocRef loc = node.loc;
    out_.keep(std::move(node));
    for (auto [wide, narrow] : copies) convert(beyond ? saturated(wide, loc) : wide, narrow, DType::i32, loc);
  }

  ValueId saturated(ValueId wide, const LocRef& loc) {
    const ValueId held = g_.add_value(g_[wide].name + ".held", g_[wide].type);
    const Attrs bounds{{"min", std::int64_t{INT32_MIN}}, {"max", std::int64_t{INT32_MAX}}};
    out_.add(aten::op::clamp, {wide}, bounds, held, loc);
    return held;
  }

  void convert(ValueId from, ValueId to, DType dtype, const LocRef& loc) {
    out_.add(aten::op::_to_copy, {from}, {{"dtype", dtype}}, to, loc);
  }

  Graph& g_;
  const std::unordered_set<std::string> names_;
  Rewriter out_;
  Forward read_as_;                            // what readers of a value get instead
  Forward held_;                               // what an input was before it was saturated
  std::unordered_map<ValueId, ValueId> wide_;  // the int64 form of an int32 value
  std::unordered_set<ValueId> beyond_;         // int64 values that come from inputs as they are: perhaps beyond 32 bits
};

}  // namespace

void widen_outside(Graph& outer, const std::vector<std::string>& narrowed) {
  if (narrowed.empty()) return;
  for (Node& node : outer.nodes)
    for (Graph& body : node.regions) widen_outside(body, narrowed);
  const StatesAsTensors states(outer);
  Widening(outer, narrowed).run();
  states.restore(outer);
}

}  // namespace tosaic
