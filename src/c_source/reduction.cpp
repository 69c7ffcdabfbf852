// SPDX-License-Identifier: Apache-2.0
// Reductions, of what is computed element by element on the way: the tensor that is reduced need not exist.
#include <algorithm>

#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/row.h"

namespace tosaic::c_source {
namespace {

// How one more element `x` is folded into `sum`.
std::string fold(const tosa::View& view) {
  const Node& node = view.node();
  const DType type = view.in(0).dtype;
  if (node.op == tosa::op::reduce_sum) return is_float(type) ? "sum += x;" : "sum = tosaic_add(sum, x);";
  if (node.op == tosa::op::reduce_product) return "sum *= x;";
  if (node.op == tosa::op::reduce_all) return "sum = sum && x;";
  if (node.op == tosa::op::reduce_any) return "sum = sum || x;";
  const bool largest = node.op == tosa::op::reduce_max;
  if (is_float(type))
    return fmt::format("sum = tosaic_{}f(sum, x, {});", largest ? "max" : "min", int{tosa::ignores_nan(view)});
  return fmt::format("if (x {} sum) sum = x;", largest ? '>' : '<');
}

// The function that folds lanes, "add", and from what on. Nothing: there is none.
struct LaneFold {
  std::string_view function, from;
};
std::optional<LaneFold> lane_fold(const tosa::View& view) {
  const Operator op = view.node().op;
  if (lanes_type(view.in(0).dtype).empty()) return std::nullopt;
  if (op == tosa::op::reduce_sum) return LaneFold{"add", "0"};
  if (op == tosa::op::reduce_max) return LaneFold{"larger", "INT32_MIN"};
  if (op == tosa::op::reduce_min) return LaneFold{"smaller", "INT32_MAX"};
  return std::nullopt;
}

// Elementwise nodes that make the operand, and are read by nobody else.
std::optional<Elements> prologue_of(const Planning& planning, const Node& node) {
  const ValueId v = node.inputs[0];
  const std::int32_t made_by = planning.producer[v];
  const plan::Fusing how = fusing(planning);
  if (made_by < 0 || planning.visible[v] || planning.users[v].size() != 1 ||
      !how.can(static_cast<std::uint32_t>(made_by)))
    return std::nullopt;
  Elements elements(planning, plan::elementwise_group(planning, how, static_cast<std::uint32_t>(made_by)));
  return elements;
}

}  // namespace

bool take_reduction(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!tosa::is_reduction(node.op)) return false;
  const tosa::View view = planning.view(n);
  const DType type = view.in(0).dtype;
  if (c_type(type).empty()) return false;
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  const auto axis = static_cast<std::size_t>(view.integer("axis"));
  std::optional<Elements> prologue = prologue_of(planning, node);
  Epilogue epilogue = epilogue_of(planning, n, "sum");
  // Lanes are neighbours along the last dim: they are folded into one at the end, or are results of their own.
  const bool along_last = axis + 1 == static_cast<std::size_t>(in.rank());
  std::optional<LaneFold> lanes = lane_fold(view);
  if (in.sizes().back() < shortest_row || (prologue && !prologue->has_lanes()) ||
      (!along_last && !has_lanes(planning, epilogue, n)))
    lanes.reset();
  const bool results = lanes && !along_last;
  Writer w;
  std::vector<std::string> index, in_index;
  for (std::size_t d = 0; d < static_cast<std::size_t>(out.rank()); ++d) {
    index.push_back(d == axis ? "0" : fmt::format("i{}", d));
    in_index.push_back(d == axis ? "k" : index.back());
    if (d == axis) continue;
    if (results && d + 1 == static_cast<std::size_t>(out.rank()))
      open_lanes(w, index.back(), out.size(static_cast<int>(d)));
    else
      w.loop(index.back(), out.size(static_cast<int>(d)));
  }
  const std::int64_t count = in.size(static_cast<int>(axis));
  const std::string at = index_sum(in_index, dense_strides(in)), tensor = name_of_value(node.inputs[0]);
  if (lanes) {
    const std::string folded = results ? "sum" : "lanes";
    w.line("tosaic_lanes {} = tosaic_lanes_all({});", folded, lanes->from);
    if (results)
      w.open("for (int32_t k = 0; k < {}; ++k)", count);
    else
      open_lanes(w, "k", count);
    w.line("const tosaic_lanes x = {};", prologue ? prologue->print(w, in_index, true) : load_lanes(type, tensor, at));
    w.line("{0} = tosaic_lanes_fold_{1}({0}, x, some);", folded, lanes->function);
    w.close();
    if (!results) w.line("const {0} sum = ({0})tosaic_lanes_one_{1}(lanes);", c_type(type), lanes->function);
  } else {
    const bool from_first = node.op == tosa::op::reduce_max || node.op == tosa::op::reduce_min;
    const bool one = node.op == tosa::op::reduce_product || node.op == tosa::op::reduce_all;
    w.line("{} sum = {};", c_type(type), one ? 1 : 0);
    w.open("for (int32_t k = 0; k < {}; ++k)", count);
    w.line("const {} x = {};", c_type(type),
           prologue ? prologue->print(w, in_index) : fmt::format("{}[{}]", tensor, at));
    if (from_first) w.line("if (k == 0) sum = x;");
    w.line("{}", fold(view));
    w.close();
  }
  print_end(w, planning, epilogue, "sum", index, results);
  for (int d = 1; d < out.rank(); ++d) w.close();
  if (prologue) epilogue.nodes.insert(epilogue.nodes.begin(), prologue->nodes().begin(), prologue->nodes().end());
  std::ranges::sort(epilogue.nodes);
  planning.add(step_of(prologue ? prologue->reads() : std::vector{node.inputs[0]}, epilogue, w.take()));
  return true;
}

}  // namespace tosaic::c_source
