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

Line line_of(Kernel& s, const Shape& shape, int axis) {
  const Value size = s.param(shape.size(axis)), inner = s.param(inner_elements(shape, axis));
  return {size, inner, s.index() / inner * size * inner + s.index() % inner};
}

Value folded(std::string_view op, Value sum, Value x, bool ignore_nan) {
  if (op == "reduce_sum") return sum + x;
  if (op == "reduce_product") return sum * x;
  if (op == "reduce_all") return sum & x;
  if (op == "reduce_any") return sum | x;
  return op == "reduce_max" ? larger(sum, x, ignore_nan) : smaller(sum, x, ignore_nan);
}

}  // namespace

MadeList make_reduction(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const tosa::Op& op = *tosa::find(node.op);
  Kernel s(work, std::string(op.name), static_cast<std::uint64_t>(view.out().shape.elements()));
  const Line line = line_of(s, view.in(0).shape, static_cast<int>(view.integer("axis")));
  const Buffer input = s.input(node.inputs[0]);
  const bool ignores = node.attrs.get_or<std::string>("nan_mode", "") == "ignore";
  // x0 begins: what an empty fold would begin with changes nothing of it.
  const Variable sum = s.variable(s.load(input, line.begin));
  s.loop(s.integer(1), line.size, s.integer(1),
         [&](Value i) { sum.set(folded(op.name, sum.get(), s.load(input, line.begin + i * line.stride), ignores)); });
  end.store(s, s.index(), sum.get());
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
  const Line line = line_of(s, view.in(0).shape, static_cast<int>(view.integer("axis")));
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
