// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/division.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/index.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// Lines along one dim: self [n, k], and of each line the elements that go to its places: hits [n, k, w] of source
// [n, 1, w]. An index may be hit several times or never, so all pairs are looked at.
struct Lines {
  Val self, hits, source, hit;  // hit: how often, [n, k]
};

Val product_of_last(Builder& b, Val x) {
  while (x.dim(2) > 1) {
    if (x.dim(2) % 2) x = b.pad(x, {0, 0, 0}, {0, 0, 1}, 1.0);
    const std::int64_t half = x.dim(2) / 2;
    x = b.mul(b.slice_axis(x, 2, 0, half), b.slice_axis(x, 2, half, half));
  }
  return b.reshape(x, {x.dim(0), x.dim(1)});
}

Val reduced(Builder& b, const Lines& lines, const std::string& how, bool include) {
  const Val self = lines.self;
  const bool real = is_float(self.dtype());
  auto of_hits = [&](double otherwise) { return b.select(lines.hits, lines.source, b.like(self, otherwise)); };
  Val never = functions::equal(lines.hit, b.like(lines.hit, 0.0));
  auto finished = [&](Val with_self, Val alone) { return include ? with_self : b.select(never, self, alone); };
  if (how == "prod" || how == "multiply") {
    Val y = product_of_last(b, of_hits(1.0));
    return finished(b.mul(self, y), y);
  }
  if (how == "amax" || how == "amin") {
    const double most = real ? std::numeric_limits<double>::infinity() : std::numeric_limits<std::int32_t>::max();
    Val y = how == "amax" ? b.reduce(tosa::op::reduce_max, of_hits(real ? -most : -most - 1), {2}, false)
                          : b.reduce(tosa::op::reduce_min, of_hits(most), {2}, false);
    return finished(how == "amax" ? b.maximum(self, y) : b.minimum(self, y), y);
  }
  if (how != "sum" && how != "add" && how != "mean") b.refuse("aten.scatter_reduce.how", "reduction '" + how + "'");
  Val y = b.reduce(tosa::op::reduce_sum, of_hits(0.0), {2}, false);
  y = finished(b.add(self, y), y);
  if (how != "mean") return y;
  Val count = b.cast(include ? b.add(lines.hit, 1.0) : b.maximum(lines.hit, b.like(lines.hit, 1.0)), self.dtype());
  return real ? functions::quotient(y, count) : functions::floor_quotient(y, count);
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index");
  auto p = promotion::promote(b, call, {"self", call.schema().argument("src") ? "src" : "value"});
  Val source = p.values[1];
  const bool include = !call.schema().argument("include_self") || call.flag("include_self");
  const int rank = x.rank(), axis = rank > 0 ? call.axis("dim", rank) : 0;
  index = checked_indices(index, rank > 0 ? x.dim(axis) : 1);
  if (index.rank() != rank || (source.rank() != rank && call.schema().argument("src")))
    b.refuse("aten.scatter.rank",
             "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  for (int i = 0; i < rank; ++i)
    if (i != axis && index.dim(i) > x.dim(i))
      b.refuse("aten.scatter.shape",
               "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  if (call.schema().argument("src")) {
    for (int i = 0; i < rank; ++i)
      if (index.dim(i) > source.dim(i))
        b.refuse("aten.scatter.shape",
                 "indices of shape " + to_string(index.shape()) + " for a source of " + to_string(source.shape()));
    source = b.slice(source, Ints(static_cast<std::size_t>(rank), 0), index.shape().sizes());
  } else {
    source = b.broadcast_to(source, index.shape());
  }
  // Where the indices end before self does, nothing is hit.
  Ints before(static_cast<std::size_t>(rank), 0), after = before;
  std::vector<int> last, back;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) after[static_cast<std::size_t>(i)] = x.dim(i) - index.dim(i);
    if (i != axis) last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  if (rank > 0) last.push_back(axis);
  index = b.transpose(b.pad(index, before, after, -1.0), last);
  source = b.transpose(b.pad(source, before, after, 0.0), last);
  Val self = b.transpose(p.values[0], last);
  const Shape shape = self.shape();
  const std::int64_t k = rank > 0 ? x.dim(axis) : 1, n = shape.elements() / k, w = index.shape().elements() / n;
  Ints iota;
  for (std::int64_t i = 0; i < k; ++i) iota.push_back(i);
  Lines lines;
  lines.self = b.reshape(self, {n, k});
  lines.source = b.reshape(source, {n, 1, w});
  lines.hits = functions::equal(b.integers(iota, index.dtype(), {1, k, 1}), b.reshape(index, {n, 1, w}));
  lines.hit = b.reduce(tosa::op::reduce_sum, b.cast(lines.hits, DType::i32), {2}, false);
  p.result = x.dtype();
  return p.finished(b.transpose(b.reshape(reduced(b, lines, call.text("reduce"), include), shape), back));
}

// In other calls, for integers: of each place the elements that go there, next to what leaves the result as it is.
Vals composed(Builder& b, const Call& call) {
  Val self = call.tensor("self"), index = call.tensor("index");
  const Val given = self;
  const bool include = !call.schema().argument("include_self") || call.flag("include_self");
  const bool real = promotion::is_real(self);
  const std::string how = call.text("reduce");
  const auto number = [&](double x) { return b.scalar(x, self.dtype()); };
  Val source =
      call.schema().argument("src") ? call.tensor("src") : b.filled(call.number("value"), self.dtype(), index.shape());
  if (self.rank() == 0) {
    self = calls::view(self, {1});
    if (index.rank() == 0) index = calls::view(index, {1});
    if (source.rank() == 0) source = calls::view(source, {1});
  }
  const int rank = self.rank(), axis = given.rank() > 0 ? call.axis("dim", rank) : 0;
  if (source.dtype() != self.dtype() || index.rank() != rank || source.rank() != rank)
    b.refuse("aten.scatter_reduce.form", "operands of unlike types or ranks");
  Ints amounts;  // indices end before self does: nothing is hit
  for (int i = rank; i-- > 0;) {
    if (index.dim(i) > source.dim(i) || (i != axis && index.dim(i) > self.dim(i)))
      b.refuse("aten.scatter_reduce.form", "more indices than elements");
    if (index.dim(i) != source.dim(i)) source = calls::slice(source, i, 0, index.dim(i));
    amounts.insert(amounts.end(), {0, i == axis ? 0 : self.dim(i) - index.dim(i)});
  }
  if (std::any_of(amounts.begin(), amounts.end(), [](std::int64_t n) { return n != 0; })) {
    index = b.aten(aten::op::constant_pad_nd, {index}, {{"pad", amounts}, {"value", std::int64_t{-1}}});
    source = b.aten(aten::op::constant_pad_nd, {source}, {{"pad", amounts}, {"value", std::int64_t{0}}});
  }
  // Places stand along `axis`, and what goes to them along the dim behind it.
  const auto unsqueezed = [&](Val x, int at) {
    auto dims = x.shape().sizes();
    dims.insert(dims.begin() + at, 1);
    return calls::view(x, Shape(dims));
  };
  Ints places, dims(static_cast<std::size_t>(rank) + 1, 1);
  for (std::int64_t i = 0; i < self.dim(axis); ++i) places.push_back(i);
  dims[static_cast<std::size_t>(axis)] = self.dim(axis);
  const Val hits =
      b.aten(aten::op::eq_Tensor, {unsqueezed(index, axis), b.integers(places, index.dtype(), Shape(dims))});
  const int along = axis + 1;
  const auto of_hits = [&](Val otherwise) { return calls::where(hits, unsqueezed(source, axis), otherwise); };
  const auto reduced = [&](Operator op, Val x) {
    return b.aten(op, {x}, {{"dim", std::int64_t{along}}, {"keepdim", false}});
  };
  const auto finished = [&](Val with_self, Val alone) {
    const Val y = include ? with_self : calls::where(reduced(aten::op::any_dim, hits), alone, self);
    return calls::view(y, given.shape());
  };
  if (how == "prod" || how == "multiply") {
    const Val y = reduced(aten::op::prod_dim_int, of_hits(number(1)));
    return finished(include ? calls::mul(self, y) : y, y);
  }
  if (how == "amax" || how == "amin") {
    const bool largest = how == "amax";
    // What is no larger than any of them, NaN aside.
    const Val ends = b.aten(largest ? aten::op::fmin : aten::op::fmax, {source, number(0)});
    const Val end = unsqueezed(largest ? calls::amin(ends, {axis}, true) : calls::amax(ends, {axis}, true), axis);
    const Val y = calls::reduced(largest ? aten::op::amax : aten::op::amin, of_hits(end), {along}, false);
    if (!include) return finished(y, y);
    const Val chosen = calls::where(reduced(aten::op::any_dim, hits), y, self);
    return finished(b.aten(largest ? aten::op::maximum : aten::op::minimum, {self, chosen}), y);
  }
  if (how != "sum" && how != "add" && how != "mean") b.refuse("aten.scatter_reduce.how", "reduction '" + how + "'");
  Val y = calls::sum(of_hits(number(0)), {along}, false);
  if (include) y = calls::add(self, y);
  if (how == "mean" && !real) {
    Val count = calls::sum(hits, {along}, false);
    count = include ? calls::add(count, b.scalar(1, count.dtype())) : count;
    count = b.aten(aten::op::clamp, {count}, {{"min", std::int64_t{1}}});
    y = b.aten(aten::op::floor_divide, {y, count});
  } else if (how == "mean") {
    std::vector<double> shares;  // of as many as there are
    for (std::int64_t n = 0; n <= index.dim(axis); ++n)
      shares.push_back(1.0 / static_cast<double>(std::max<std::int64_t>(n + include, 1)));
    const Val table =
        b.constant({self.dtype(), Shape{index.dim(axis) + 1, 1}, {}}, constant_bytes(self.dtype(), shares));
    y = calls::mul(y, calls::view(b.aten(aten::op::embedding, {table, calls::sum(hits, {along}, false)}), y.shape()));
  }
  return finished(y, y);
}
}  // namespace

AtenOp aten_scatter_reduce() {
  return {
      .schemas = {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
                  "include_self=True) -> Tensor",
                  "scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool "
                  "include_self=True) -> Tensor(a!)",
                  "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
                  "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
                  "scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)",
                  "scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> "
                  "Tensor(a!)"},
      .summary = "a copy of x in which elements of the same index are summed, multiplied or compared",
      .rule = Rule::inside,
      .lower = {lower, composed},
      .domain = {"x(3,5), 1, l(0,5,3,7), x(3,7), 'sum'", "x(3,5), 0, l(0,3,2,4), x(2,5), 'sum', include_self=False",
                 "x(3,5), 1, l(0,5,3,7), x(3,7), 'prod'", "x(3,5), 1, l(0,4,3,4), x(3,7), 'prod', include_self=False",
                 "x(3,5), -1, l(0,4,2,7), x(3,7), 'mean'", "x(3,5), 1, l(0,4,3,7), x(3,7), 'mean', include_self=False",
                 "x(3,5), 1, l(0,4,3,7), x(3,7), 'amax'", "x(3,5), 0, l(0,2,4,5), x(4,5), 'amin', include_self=False",
                 "i(-9,9,3,5), 1, l(0,5,3,7), i(-9,9,3,7), 'sum'", "i(-9,9,3,5), 1, l(0,5,3,7), i(-9,9,3,7), 'mean'",
                 "i(-9,9,3,5), 1, l(0,4,3,7), i(-9,9,3,7), 'amax', include_self=False",
                 "i(-4,4,3,5), 1, l(0,5,3,4), i(-4,4,3,4), 'prod'", "n(8), 0, l(0,8,5), x(5), 'sum'",
                 "x(4), 0, l(0,4,8), n(8), 'amax'", "x(4), 0, l(0,4,8), n(8), 'sum'", "x(), 0, l(0,1), x(), 'sum'",
                 "scatter.reduce: x(3,5), 1, l(0,5,3,7), x(3,7), reduce='add'",
                 "scatter.reduce: x(3,5), 0, l(0,3,3,5), x(3,5), reduce='multiply'",
                 "scatter.value_reduce: x(3,5), 1, l(0,5,3,4), 2.5, reduce='add'"},
      .has_exact_form = true};
}
}  // namespace tosaic
