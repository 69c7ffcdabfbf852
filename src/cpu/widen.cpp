// SPDX-License-Identifier: Apache-2.0
#include "cpu/widen.h"

#include <algorithm>
#include <map>

#include "cpu/matrix/unpacked_product.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::cpu {
namespace {

bool is_narrow(DType type) { return is_float(type) && storage_size(type) < 4; }

// Where f32 kernels are worth two casts.
bool accumulates(const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  return op && op->accumulates;
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), out_(graph) {}

  void run() {
    out_.each([&](Node& node) { accumulates(node) ? widen(std::move(node)) : out_.keep(std::move(node)); });
  }

 private:
  Graph& graph_;
  Rewriter out_;
  std::map<ValueId, ValueId> wide_;  // the f32 form of a narrow value

  ValueId fresh(ValueId of, const char* suffix) {
    TensorType type = graph_[of].type.with(DType::f32);
    return graph_.add_value(graph_[of].name + suffix, std::move(type));
  }
  ValueId widened(ValueId value, const LocRef& loc) {
    if (value == no_value || !is_narrow(graph_[value].type.dtype)) return value;
    if (auto found = wide_.find(value); found != wide_.end()) return found->second;
    const ValueId wide = fresh(value, "$f32");
    if (graph_[value].is_constant())
      graph_[wide].constant = converted({graph_[value].type, graph_[value].constant.data()}, DType::f32);
    else
      out_.add(tosa::op::cast, {value}, {}, wide, loc);
    return wide_[value] = wide;
  }
  void widen(Node node) {
    const bool weight_stays = reads_unpacked(graph_, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (i != 1 || !weight_stays) node.inputs[i] = widened(node.inputs[i], node.loc);
    out_.keep(
        std::move(node), [&](ValueId v) { return is_narrow(graph_[v].type.dtype) ? fresh(v, "$sum") : v; },
        [&](ValueId wide, ValueId v, const LocRef& loc) { out_.add(tosa::op::cast, {wide}, {}, v, loc); });
  }
};

}  // namespace

void widen_narrow_floats(Graph& graph) {
  const bool any =
      std::any_of(graph.values.begin(), graph.values.end(), [](const Value& v) { return is_narrow(v.type.dtype); });
  if (any) Widening(graph).run();
}

}  // namespace tosaic::cpu
