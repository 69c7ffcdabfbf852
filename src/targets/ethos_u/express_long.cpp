// SPDX-License-Identifier: Apache-2.0
// Axes longer than a command can hold.
#include <algorithm>

#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t most_at_once = 32768;

}  // namespace

// Groups of the axis, then the groups' sums; zeros fill the last group. Many sums side by side go in parts.
bool long_sum_in_two_steps(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::reduce_sum) return false;
  Words say{out, graph, node.loc};
  const auto axis = static_cast<int>(node.attrs.get<std::int64_t>("axis"));
  const TensorType x = graph[node.inputs[0]].type, y = graph[node.outputs[0]].type;
  const std::int64_t size = x.shape.size(axis);
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.shape.size(d);
  for (int d = axis + 1; d < x.rank(); ++d) inner *= x.shape.size(d);
  if (size <= longest_axis && inner <= longest_axis) return false;
  ValueId v = say.reshape(node.inputs[0], {1, outer, size, inner});
  if (inner > longest_axis) {
    std::vector<ValueId> parts;
    for (std::int64_t at = 0; at < inner; at += most_at_once)
      parts.push_back(say.sum(say.slice(v, 3, at, std::min(most_at_once, inner - at)), 2));
    v = say.concat(parts, 3);
  } else {
    std::int64_t groups = size / longest_axis + 1;
    for (std::int64_t g = groups; g <= 64 * groups; ++g)  // a number of groups that divides needs no zeros
      if (size % g == 0) {
        groups = g;
        break;
      }
    const std::int64_t each = (size + groups - 1) / groups;
    v = say.pad(v, 2, 0, groups * each - size, say.integers(x.dtype, {0}));
    v = say.sum(say.reshape(v, {1, outer * groups, each, inner}), 2);
    v = say.sum(say.reshape(v, {1, outer, groups, inner}), 2);
  }
  say.reshape(v, y.shape.sizes(), node.outputs[0]);
  return true;
}

// Pieces of the longest axis, turned one by one.
bool split_long_transpose(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::transpose) return false;
  Words say{out, graph, node.loc};
  const Shape x = graph[node.inputs[0]].type.shape;
  const auto longest = static_cast<int>(std::max_element(x.sizes().begin(), x.sizes().end()) - x.sizes().begin());
  if (x.size(longest) <= longest_axis) return false;
  const Ints perm = node.attrs.get<Ints>("perms");
  const auto to = static_cast<int>(std::find(perm.begin(), perm.end(), longest) - perm.begin());
  std::vector<ValueId> parts;
  for (std::int64_t at = 0; at < x.size(longest); at += most_at_once)
    parts.push_back(out.transpose(say.slice(node.inputs[0], longest, at, std::min(most_at_once, x.size(longest) - at)),
                                  perm, node.loc));
  say.concat(parts, to, node.outputs[0]);
  return true;
}

}  // namespace tosaic::ethos_u
