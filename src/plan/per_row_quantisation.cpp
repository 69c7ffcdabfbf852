// SPDX-License-Identifier: Apache-2.0
#include "plan/per_row_quantisation.h"

#include "ir/extent.h"
#include "ir/tosa_operators.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

class Search {
 public:
  Search(const Graph& graph, std::span<const std::int32_t> producer, ValueId value, std::int64_t k)
      : graph_(graph), producer_(producer), elements_(elements_of(graph[value].type.shape)), k_(k) {}

  std::optional<PerRowQuantisation> found(ValueId value) const {
    const Node* scaled = maker_before_views(value);
    if (!scaled) return std::nullopt;
    if (is_int8(*scaled)) return PerRowQuantisation{scaled->inputs[0]};
    if (scaled->op != tosa::op::mul) return std::nullopt;
    const Shape& all = graph_[scaled->outputs[0]].type.shape;
    const std::size_t scale_at = is_by_row(scaled->inputs[1], all) ? 1 : 0;
    if (!is_by_row(scaled->inputs[scale_at], all)) return std::nullopt;
    PerRowQuantisation quantised{.scale = scaled->inputs[scale_at]};
    const Node* cast = maker_before_views(scaled->inputs[1 - scale_at]);
    if (cast && cast->op == tosa::op::sub && is_by_row(cast->inputs[1], graph_[cast->outputs[0]].type.shape)) {
      quantised.zero = cast->inputs[1];
      cast = maker_before_views(cast->inputs[0]);
    }
    if (!cast || !is_int8(*cast)) return std::nullopt;
    quantised.quantised = cast->inputs[0];
    return quantised;
  }

 private:
  const Node* maker_before_views(ValueId v) const { return maker(graph_, producer_, skip_views(graph_, producer_, v)); }
  bool is_int8(const Node& node) const {
    const TensorType& type = graph_[node.inputs[0]].type;
    return node.op == tosa::op::cast && type.dtype == DType::i8 && elements_of(type.shape) == elements_;
  }
  // One number for each row of `all`.
  bool is_by_row(ValueId v, const Shape& all) const {
    const TensorType& type = graph_[v].type;
    const int last = all.rank() - 1;
    if (type.dtype != DType::f32 || last < 0 || type.shape.rank() != all.rank() || all[last] != Dim(k_)) return false;
    for (int d = 0; d < last; ++d)
      if (type.shape[d] != all[d]) return false;
    return type.shape[last] == Dim(1);
  }

  const Graph& graph_;
  const std::span<const std::int32_t> producer_;
  const Dim elements_;
  const std::int64_t k_;
};

}  // namespace

std::optional<PerRowQuantisation> find_per_row_quantisation(const Graph& graph, std::span<const std::int32_t> producer,
                                                            ValueId value, std::int64_t k) {
  return Search(graph, producer, value, k).found(value);
}

}  // namespace tosaic::plan
