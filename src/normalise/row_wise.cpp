// SPDX-License-Identifier: Apache-2.0
#include "normalise/row_wise.h"

#include <algorithm>

#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

using tosa::View;

std::int64_t product(const Shape& shape, int first, int last) {
  std::int64_t n = 1;
  for (int i = first; i < last; ++i) n *= shape.size(i);
  return n;
}

// One node: the rows of its operands in, those of its result out.
class Step {
 public:
  Step(const Graph& graph, const Node& node, const tosa::Op& op, std::int64_t count, const RowsOf& rows)
      : view_(graph, node), node_(node), op_(op), count_(count), rows_(rows) {}

  std::optional<Rows> result() const {
    // Rows that nobody wants may hold a divisor of zero, or an index outside of its table (GATHER is none of these).
    if (node_.op == tosa::op::intdiv) return {};
    if (op_.elementwise) return elementwise();
    const auto first = in(0);
    if (node_.op == tosa::op::matmul) return matmul();
    if (node_.op == tosa::op::concat) return concat();
    for (std::size_t i = 1; i < node_.inputs.size(); ++i)
      if (in(i)) return {};  // weights, starts of slices: not what a row is
    if (!first) return {};
    const int dim = first->dim;
    if (node_.op == tosa::op::reshape) return reshaped(*first);
    if (node_.op == tosa::op::transpose) {
      const auto& perms = view_.ints("perms");
      return Rows{static_cast<int>(std::find(perms.begin(), perms.end(), dim) - perms.begin()), first->inner};
    }
    if (node_.attrs.find("axis")) {  // reductions, REVERSE, ARGMAX, which takes the dim away
      const auto axis = static_cast<int>(view_.integer("axis"));
      if (axis == dim) return {};
      return Rows{dim - (view_.out().rank() < view_.in(0).rank() && axis < dim), first->inner};
    }
    const bool whole = view_.out().rank() == view_.in(0).rank() && view_.out().shape[dim] == view_.in(0).shape[dim];
    if (!whole) return {};
    if (op_.moves >= tosa::Moves::some) return first;  // SLICE, PAD, TILE of all of the dim, so nothing but it
    const bool images = view_.in(0).rank() == 4 &&
                        (op_.accumulates || node_.op == tosa::op::max_pool2d || node_.op == tosa::op::resize);
    if (images && (dim == 0 || pointwise(dim))) return first;  // one image after the other; a product for each pixel
    return {};
  }

 private:
  std::optional<Rows> in(std::size_t i) const {
    return node_.inputs[i] == no_value ? std::nullopt : rows_[node_.inputs[i]];
  }
  std::int64_t size(std::size_t i, int dim) const { return view_.in(i).shape.size(dim); }

  // Operands without rows must be the same for all of them.
  std::optional<Rows> elementwise() const {
    std::optional<Rows> found;
    const auto declared = [&](std::size_t i) { return i < op_.inputs.size() && op_.inputs[i].constant; };
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const auto rows = in(i);
      if (rows && (declared(i) || (found && *found != *rows))) return {};
      if (rows) found = rows;
    }
    for (std::size_t i = 0; found && i < node_.inputs.size(); ++i) {
      if (in(i)) continue;
      const TensorType& type = view_.in(i);
      if (declared(i) ? type.shape.elements() != 1 : type.rank() > found->dim && size(i, found->dim) != 1) return {};
    }
    return found;
  }

  std::optional<Rows> matmul() const {
    const auto a = in(0), b = in(1);
    if (a && a->dim == 0) return b == a ? a : std::nullopt;  // a batch of rows
    if (a && !b && a->dim == 1) return a;
    if (b && !a && b->dim == 2) return b;
    return {};
  }
  std::optional<Rows> concat() const {
    const auto first = in(0);
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      if (!in(i) || in(i) != first || first->dim == view_.integer("axis")) return {};
    return first;
  }

  std::optional<Rows> reshaped(const Rows& rows) const {
    const Shape &from = view_.in(0).shape, &to = view_.out().shape;
    const std::int64_t before = product(from, 0, rows.dim),
                       behind = product(from, rows.dim + 1, from.rank()) * rows.inner;
    for (int d = 0; d < to.rank(); ++d) {
      if (product(to, 0, d) != before || to.size(d) % count_ != 0) continue;
      const std::int64_t inner = to.size(d) / count_;
      if (inner * product(to, d + 1, to.rank()) == behind) return Rows{d, inner};
    }
    return {};
  }

  // A convolution by 1x1 with nothing around it.
  bool pointwise(int dim) const {
    if (!op_.accumulates || (dim != 1 && dim != 2) || node_.inputs.size() < 2 || view_.in(1).rank() != 4) return false;
    const auto all = [&](std::string_view name, std::int64_t n) {
      const Attr* attr = node_.attrs.find(name);
      const auto* list = attr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
      return list && std::all_of(list->begin(), list->end(), [&](std::int64_t x) { return x == n; });
    };
    return node_.op == tosa::op::conv2d && size(1, 1) == 1 && size(1, 2) == 1 && all("pad", 0) && all("stride", 1);
  }

  View view_;
  const Node& node_;
  const tosa::Op& op_;
  std::int64_t count_;
  const RowsOf& rows_;
};

}  // namespace

std::optional<RowsOf> follow_rows(const Graph& lowered, std::int64_t count, RowsOf given) {
  RowsOf rows = std::move(given);
  rows.resize(lowered.values.size());
  for (const Node& node : lowered.nodes) {
    const bool any =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && rows[v]; });
    if (!any) continue;
    const tosa::Op* op = tosa::find(node.op);
    if (!op || node.outputs.size() != 1) return {};
    rows[node.outputs[0]] = Step(lowered, node, *op, count, rows).result();
    const auto& made = rows[node.outputs[0]];
    if (!made || lowered[node.outputs[0]].type.shape.size(made->dim) != count * made->inner) return {};
  }
  RowsOf results;
  for (ValueId v : lowered.outputs) results.push_back(rows[v]);
  return results;
}

}  // namespace tosaic
