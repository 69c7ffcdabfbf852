// SPDX-License-Identifier: Apache-2.0
// Reductions along an axis and ARGMAX: an invocation goes along the axis alone, or a group along a long one.
#include "shaders/functions.h"
#include "shaders/group_fold.h"

namespace tosaic::shaders {
namespace {

// Element (outer, i, inner) lies at (outer * size + i) * inner_size + inner.
struct Line {
  Value size, stride, begin;
};

std::int64_t inner_elements(const Shape& shape, int axis) {
  std::int64_t inner = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape.size(d);
  return inner;
}

// The line of a result's element.
Line line_of(Kernel& s, const Shape& shape, int axis, Value element) {
  const Value size = s.param(shape.size(axis)), inner = s.param(inner_elements(shape, axis));
  return {size, inner, element / inner * size * inner + element % inner};
}

Value folded(std::string_view op, Value sum, Value x, bool ignore_nan) {
  if (op == "reduce_sum") return sum + x;
  if (op == "reduce_product") return sum * x;
  if (op == "reduce_all") return sum & x;
  if (op == "reduce_any") return sum | x;
  return op == "reduce_max" ? larger(sum, x, ignore_nan) : smaller(sum, x, ignore_nan);
}

}  // namespace

namespace {

// How the elements of a line are walked: one at a time, four lines side by side, or a line by four, whose results are
// folded in the end.
enum class By : std::uint8_t { elements, quads_of_lines, quads_of_line };
By walked_by(const Work& work, const tosa::View& view, int axis, const Finish& end) {
  const Shape& in = view.in(0).shape;
  if (!reads_texels(work.tier) || !has_quads(view.in(0).dtype)) return By::elements;
  if (inner_elements(in, axis) == 1) return in.size(axis) % 4 == 0 ? By::quads_of_line : By::elements;
  return inner_elements(in, axis) % 4 == 0 && end.has_quads(work.graph) ? By::quads_of_lines : By::elements;
}

}  // namespace

MadeList make_reduction(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const tosa::Op& op = *tosa::find(node.op);
  const int axis = static_cast<int>(view.integer("axis"));
  const By by = walked_by(work, view, axis, end);
  const int lanes = by == By::elements ? 1 : 4, lines = by == By::quads_of_lines ? 4 : 1;
  Kernel s(work, std::string(op.name), static_cast<std::uint64_t>(view.out().shape.elements() / lines));
  const Value first = lines == 4 ? s.index() * 4 : s.index();
  const Line line = line_of(s, view.in(0).shape, axis, first);
  const bool ignores = node.attrs.get_or<std::string>("nan_mode", "") == "ignore";
  // x0 begins: what an empty fold would begin with changes nothing of it.
  std::vector<Variable> sums;
  for (Value begin : load_lanes(s, node.inputs[0], line.begin, lanes)) sums.push_back(s.variable(begin));
  const Value step = s.integer(by == By::quads_of_line ? 4 : 1);
  s.loop(step, line.size, step, [&](Value i) {
    const std::vector<Value> elements = load_lanes(s, node.inputs[0], line.begin + i * line.stride, lanes);
    for (std::size_t n = 0; n < sums.size(); ++n) sums[n].set(folded(op.name, sums[n].get(), elements[n], ignores));
  });
  std::vector<Value> results;
  for (const Variable& sum : sums) {
    const Value value = sum.get();
    if (by == By::quads_of_line && !results.empty())
      results[0] = folded(op.name, results[0], value, ignores);
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
  const std::int64_t inner = inner_elements(shape, axis), size = shape.size(axis);
  return {shape.elements() / std::max<std::int64_t>(size * inner, 1), size, inner};
}

}  // namespace

bool has_long_lines(const tosa::View& view) { return GroupFold::takes(lines_of(view), view.in(0).dtype); }

MadeList make_shared_reduction(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const tosa::Op& op = *tosa::find(node.op);
  const Lines lines = lines_of(view);
  Kernel s(work, std::string(op.name), GroupFold::groups_of(lines));
  const Buffer input = s.input(node.inputs[0]);
  const bool ignores = node.attrs.get_or<std::string>("nan_mode", "") == "ignore";
  GroupFold fold(
      s, lines, [&](Value element) { return s.load(input, element); },
      [&](Value a, Value b) { return folded(op.name, a, b, ignores); });
  fold.for_lines([&](Value line, Value sum) { end.store(s, line, sum); });
  return one(s);
}

MadeList make_argmax(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  Kernel s(work, "argmax", static_cast<std::uint64_t>(view.out().shape.elements()));
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
