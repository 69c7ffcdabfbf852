// SPDX-License-Identifier: Apache-2.0
#include "shaders/integer_attention.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/tosa_operators.h"
#include "plan/views.h"
#include "shaders/rows.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_nodes = 96;

class Search {
 public:
  Search(const plan::Uses& uses, const std::function<bool(std::uint32_t)>& can, std::uint32_t scores)
      : uses_(uses), can_(can), scores_(scores), score_(uses.node(scores).outputs[0]) {}

  std::optional<IntegerAttention> found() {
    if (!follow()) return std::nullopt;
    IntegerAttention attention{scores_, *values_, {scores_}, reductions_, {}};
    attention.nodes.insert(attention.nodes.end(), nodes_.begin(), nodes_.end());
    attention.nodes.push_back(*values_);
    for (std::size_t i = 0; i < reductions_.size(); ++i) {
      const auto kept = kept_after(i, i == 0 ? score_ : attention.kept.back());
      if (!kept) return std::nullopt;
      attention.kept.push_back(*kept);
    }
    return attention;
  }

 private:
  bool is_made(ValueId v) const { return made_.contains(v); }
  bool is_element(ValueId v) const { return has_rows_of(v, keys()); }  // or a number for each row
  std::int64_t keys() const { return uses_.type(score_).shape.size(2); }
  bool has_rows_of(ValueId v, std::int64_t size) const {
    const Shape& shape = uses_.type(v).shape;
    return shape.is_static() && shape.rank() > 0 && shape.size(shape.rank() - 1) == size &&
           shape.elements() == uses_.type(score_).shape.elements() / keys() * size;
  }

  // All that is made of scores, up to the product that alone is made of all of it.
  bool follow() {
    if (!note(score_)) return false;
    while (!open_.empty()) {
      const std::uint32_t n = *open_.begin();
      open_.erase(open_.begin());
      if (values_ || nodes_.size() == most_nodes || !take(n)) return false;
    }
    return values_ && !reductions_.empty() && is_element(weights()) && uses_.type(weights()).dtype == DType::i8;
  }
  bool take(std::uint32_t n) {
    const Node& node = uses_.node(n);
    if (node.op == tosa::op::matmul) {
      values_ = n;
      return is_made(node.inputs[0]) && !is_made(node.inputs[1]);
    }
    if (plan::is_view(node)) return note(node.outputs[0]);
    if (reduces_rows(uses_.graph, node))
      reductions_.push_back(n);
    else if (!can_(n) || node.outputs.size() != 1)
      return false;
    nodes_.push_back(n);
    std::size_t needs = 0;
    for (ValueId v : node.inputs)
      if (v != no_value && is_made(v)) needs = std::max(needs, needs_[origin(v)]);
    needs_[node.outputs[0]] = std::max(needs, reduces_rows(uses_.graph, node) ? reductions_.size() : 0);
    return note(node.outputs[0]);
  }
  bool note(ValueId v) {
    const DType type = uses_.type(v).dtype;
    if (uses_.visible[v] || is_float(type) || storage_size(type) > 4 || !(is_element(v) || has_rows_of(v, 1)))
      return false;
    made_.insert(v);
    open_.insert(uses_.users[v].begin(), uses_.users[v].end());
    return true;
  }

  ValueId origin(ValueId v) const { return plan::skip_views(uses_.graph, uses_.producer, v); }
  ValueId weights() const { return origin(uses_.node(*values_).inputs[0]); }

  // Is the element made of `from`'s and of numbers of its row alone?
  bool follows(ValueId v, ValueId from) const {
    std::set<ValueId> wanted{origin(v)};
    for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
      const Node& node = uses_.node(*n);
      const ValueId made = node.outputs[0];
      if (made == from || !is_element(made) || !wanted.contains(made)) continue;
      for (ValueId read : node.inputs)
        if (read != no_value) wanted.insert(origin(read));
    }
    return from == score_ || !wanted.contains(score_);
  }
  // The last one that is known before reduction `i` is.
  std::optional<ValueId> kept_after(std::size_t i, ValueId before) const {
    for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
      const ValueId v = uses_.node(*n).outputs[0];
      const DType type = uses_.type(v).dtype;
      const bool is_enough = follows(weights(), v) &&
                             std::all_of(reductions_.begin() + static_cast<std::ptrdiff_t>(i + 1), reductions_.end(),
                                         [&](std::uint32_t later) { return follows(uses_.node(later).inputs[0], v); });
      if (is_element(v) && (type == DType::i8 || type == DType::i16) && needs_.at(v) <= i && is_enough &&
          follows(v, before))
        return v;
    }
    return std::nullopt;
  }

  const plan::Uses& uses_;
  const std::function<bool(std::uint32_t)>& can_;
  const std::uint32_t scores_;
  const ValueId score_;
  std::set<ValueId> made_;        // of scores
  std::set<std::uint32_t> open_;  // that read some of it
  std::vector<std::uint32_t> nodes_, reductions_;
  std::map<ValueId, std::size_t> needs_;  // how many reductions are known when it can be
  std::optional<std::uint32_t> values_;
};

}  // namespace

std::optional<IntegerAttention> integer_attention_at(const plan::Uses& uses,
                                                     const std::function<bool(std::uint32_t node)>& can,
                                                     std::uint32_t scores) {
  const Node& node = uses.node(scores);
  const auto is_static = [&](ValueId v) { return uses.type(v).shape.is_static(); };
  if (node.op != tosa::op::matmul || !is_static(node.inputs[0]) || !is_static(node.inputs[1]) ||
      !takes_int8_matrix_matmul(tosa::View(uses.graph, node)))
    return std::nullopt;
  return Search(uses, can, scores).found();
}

}  // namespace tosaic::shaders
