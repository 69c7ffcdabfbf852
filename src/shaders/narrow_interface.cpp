// SPDX-License-Identifier: Apache-2.0
#include "shaders/narrow_interface.h"

#include <algorithm>

#include "ir/extent.h"
#include "ops/definitions/tosa_op.h"
#include "plan/uses.h"
#include "plan/views.h"
#include "shaders/half_precision.h"

namespace tosaic::shaders {
namespace {

// Of fewer bytes half of them are not worth their rounding: they cross in less than 0.01 ms.
constexpr std::size_t least_bytes = 256 << 10;

bool is_large(const TensorType& type) {
  return type.dtype == DType::f32 && largest(type).storage_bytes() >= least_bytes;
}

// Are results elements of operands, moved or chosen?
bool moves(const Node& node, tosa::Moves how) {
  const tosa::Op* op = tosa::find(node.op);
  return plan::is_view(node) || (op && op->moves >= how);
}

class Interface {
 public:
  Interface(const Graph& graph, const std::function<bool(ValueId)>& stays)
      : graph_(graph), uses_(graph), stays_(stays) {}

  std::vector<ValueId> narrow() const {
    std::vector<ValueId> found;
    for (ValueId v : graph_.inputs)
      if (may_be_input(v) && is_alike(v)) found.push_back(v);
    for (ValueId v : graph_.outputs)
      if (may_be_output(v) && is_alike(v)) found.push_back(v);
    return found;
  }

 private:
  bool may_be_input(ValueId v) const { return is_large(graph_[v].type) && !stays_(v) && only_products_read(v); }
  bool only_products_read(ValueId v) const {
    if (uses_.visible[v] || uses_.users[v].empty()) return false;
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t n) {
      const Node& node = graph_.nodes[n];
      return has_weights(node) || (moves(node, tosa::Moves::some) && only_products_read(node.outputs[0]));
    });
  }
  bool may_be_output(ValueId v) const {
    if (!is_large(graph_[v].type) || stays_(v)) return false;
    const Node* made = plan::maker(graph_, uses_.producer, plan::skip_views(graph_, uses_.producer, v));
    return made && !moves(*made, tosa::Moves::chosen);
  }

  // As all of its shape on the other side are.
  bool is_alike(ValueId v) const {
    const auto same = [&](ValueId other) { return graph_[other].type == graph_[v].type; };
    const auto all = [&](const std::vector<ValueId>& list, bool (Interface::*may)(ValueId) const) {
      return std::ranges::all_of(list, [&](ValueId other) { return !same(other) || (this->*may)(other); });
    };
    return (std::ranges::none_of(graph_.inputs, same) || all(graph_.outputs, &Interface::may_be_output)) &&
           (std::ranges::none_of(graph_.outputs, same) || all(graph_.inputs, &Interface::may_be_input));
  }

  const Graph& graph_;
  const plan::Uses uses_;
  const std::function<bool(ValueId)>& stays_;
};

}  // namespace

std::vector<ValueId> narrow_interface(const Graph& graph, const std::function<bool(ValueId)>& stays) {
  return Interface(graph, stays).narrow();
}

}  // namespace tosaic::shaders
