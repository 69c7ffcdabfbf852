// SPDX-License-Identifier: Apache-2.0
// Reductions along an axis and ARGMAX: an invocation goes along the axis alone, or a group along a long one.
#include "shaders/reduction.h"

#include <limits>

#include "shaders/functions.h"
#include "shaders/group_fold.h"

namespace tosaic::shaders {
namespace {

// Element (outer, i, inner) lies at (outer * size + i) * inner_size + inner.
struct Line {
  Value size, stride, begin;
};

Dim inner_elements(const Shape& shape, int axis) {
  Dim inner = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner = inner * shape[d];
  return inner;
}

// The line of a result's element.
Line line_of(Kernel& s, const Shape& shape, int axis, Value element) {
  const Value size = s.param(shape[axis]), inner = s.param(inner_elements(shape, axis));
  return {size, inner, element / inner * size * inner + element % inner};
}

}  // namespace

Reduction::Reduction(const Node& node)
    : op_(tosa::find(node.op)->name), ignores_nan_(node.attrs.get_or<std::string>("nan_mode", "") == "ignore") {}

Value Reduction::operator()(Value folded, Value x) const {
  if (op_ == "reduce_sum") return folded + x;
  if (op_ == "reduce_product") return folded * x;
  if (op_ == "reduce_all") return folded & x;
  if (op_ == "reduce_any") return folded | x;
  return op_ == "reduce_max" ? larger(folded, x, ignores_nan_) : smaller(folded, x, ignores_nan_);
}

Value Reduction::of_nothing(Shader& s) const {
  using Limits = std::numeric_limits<std::int32_t>;
  return s.integer(op_ == "reduce_max" ? Limits::min() : op_ == "reduce_min" ? Limits::max() : op_ == "reduce_product");
}

namespace {

// How the elements of a line are walked: one at a time, four lines side by side, or a line by four, whose results are
// folded in the end.
enum class By : std::uint8_t { elements, quads_of_lines, quads_of_line };
By walked_by(const Work& work, const tosa::View& view, int axis, const Finish& end) {
  const Shape& in = view.in(0).shape;
  if (!reads_texels(work.tier) || !has_quads(view.in(0).dtype)) return By::elements;
  const Dim inner = inner_elements(in, axis);
  if (inner == Dim(1)) return is_multiple(in[axis], 4) ? By::quads_of_line : By::elements;
  return end.has_quads(work.graph, inner) ? By::quads_of_lines : By::elements;
}

}  // namespace

MadeList make_reduction(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const tosa::Op& op = *tosa::find(node.op);
  const int axis = static_cast<int>(view.integer("axis"));
  const By by = walked_by(work, view, axis, end);
  const int lanes = by == By::elements ? 1 : 4, lines = by == By::quads_of_lines ? 4 : 1;
  Kernel s(work, std::string(op.name), floor_div(elements_of(view.out().shape), lines));
  const Value first = lines == 4 ? s.index() * 4 : s.index();
  const Line line = line_of(s, view.in(0).shape, axis, first);
  const Reduction folded(node);
  // x0 begins: what an empty fold would begin with changes nothing of it.
  std::vector<Variable> sums;
  for (Value begin : load_lanes(s, node.inputs[0], line.begin, lanes)) sums.push_back(s.variable(begin));
  const Value step = s.integer(by == By::quads_of_line ? 4 : 1);
  s.loop(step, line.size, step, [&](Value i) {
    const std::vector<Value> elements = load_lanes(s, node.inputs[0], line.begin + i * line.stride, lanes);
    for (std::size_t n = 0; n < sums.size(); ++n) sums[n].set(folded(sums[n].get(), elements[n]));
  });
  std::vector<Value> results;
  for (const Variable& sum : sums) {
    const Value value = sum.get();
    if (by == By::quads_of_line && !results.empty())
      results[0] = folded(results[0], value);
    else
      results.push_back(value);
  }
  end.store_lanes(s, first, results);
  return one(s);
}

namespace {

Lines lines_of(const tosa::View& view) {
  const Shape& shape = view.in(0).shape;
  const int axis = static_cast<int>(view.integer("axis"));
  Dim outer = 1;
  for (int d = 0; d < axis; ++d) outer = outer * shape[d];
  return {outer, shape[axis], inner_elements(shape, axis)};
}

}  // namespace

bool has_long_lines(const tosa::View& view) { return GroupFold::takes(lines_of(view), view.in(0).dtype); }

MadeList make_shared_reduction(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const tosa::Op& op = *tosa::find(node.op);
  const Lines lines = lines_of(view);
  Kernel s(work, std::string(op.name), GroupFold::groups_of(lines));
  const Buffer input = s.input(node.inputs[0]);
  GroupFold fold(
      s, lines, [&](Value element) { return s.load(input, element); }, Reduction(node));
  fold.for_lines([&](Value line, Value sum) { end.store(s, line, sum); });
  return one(s);
}

MadeList make_argmax(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  Kernel s(work, "argmax", elements_of(view.out().shape));
  const Line line = line_of(s, view.in(0).shape, static_cast<int>(view.integer("axis")), s.index());
  const Buffer input = s.input(node.inputs[0]);
  const bool ignores = view.text("nan_mode") == "ignore";
  const Variable best = s.variable(s.load(input, line.begin)), index = s.variable(s.integer(0));
  s.loop(s.integer(1), line.size, s.integer(1), [&](Value i) {
    const Value x = s.load(input, line.begin + i * line.stride), before = best.get();
    Value better = x > before;
    // The first NaN is the largest, unless it is ignored: then any number is larger.
    if (x.kind == Kind::real) {
      const Value x_nan = is_nan(x), before_nan = is_nan(before);
      better = better | (ignores ? before_nan & !x_nan : x_nan & !before_nan);
    }
    s.when(better, [&] {
      best.set(x);
      index.set(i);
    });
  });
  end.store(s, s.index(), index.get());
  return one(s);
}

}  // namespace tosaic::shaders
