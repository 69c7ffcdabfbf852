// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"

#include "ir/marks.h"
#include "ir/tosa_operators.h"

#include <algorithm>
#include <set>

namespace tosaic {
namespace {

bool counts_in_floats(const Builder& b) { return b.spec() && !b.spec()->has(tosa::Feature::pro_int); }

Val as_indices(Val v) {
  Builder& b = v.builder();
  if (v.dtype() == DType::i32) return v;
  // What 32 bits do not hold is outside every dim, and has to stay outside.
  if (v.dtype() == DType::i64) return b.cast(b.clamp(v, INT32_MIN, INT32_MAX), DType::i32);
  if (!is_integer(v.dtype()) && !(v.dtype() == DType::f32 && counts_in_floats(b)))
    b.refuse("aten.index.dtype", "indices of dtype " + std::string(name_of(v.dtype())) + " are no integers");
  return b.cast(v, DType::i32);
}

Val retyped(Val y, const TensorType& like) {
  y.builder().graph()[y.id()].type = like.with(y.shape());
  return y;
}

std::int64_t product(Val x, int first, int last) {
  std::int64_t n = 1;
  for (int i = first; i < last; ++i) n *= x.dim(i);
  return n;
}

// x seen as lines along `axis`: the axis is moved last. `back` undoes it.
struct Lines {
  std::vector<int> last, back;
  Lines(int rank, int axis) {
    for (int i = 0; i < rank; ++i) {
      if (i != axis) last.push_back(i);
      back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
    }
    last.push_back(axis);
  }
};

Val leading_window(Builder& b, Val x, const std::vector<std::int64_t>& size) {
  return b.slice(x, std::vector<std::int64_t>(size.size(), 0), size);
}

}  // namespace

// What is larger than 2^24 rounds to no less, so it stays outside of a dim below that.
Val counted_indices(Val v, std::int64_t size) {
  Builder& b = v.builder();
  if (!counts_in_floats(b) || size >= 1 << 24) return as_indices(v);
  return v.dtype() == DType::f32 ? v : b.cast(as_indices(v), DType::f32);
}

Val wrapped_indices(Val v, std::int64_t size) {
  Builder& b = v.builder();
  v = counted_indices(v, size);
  Val negative = b.binary(tosa::op::greater, b.scalar(0, v.dtype()), v);
  return b.select(negative, b.add(v, b.scalar(static_cast<double>(size), v.dtype())), v);
}

// GATHER requires its indices to be inside: from a table of 0, 1, 2 ... it gives them back.
Val checked_indices(Val v, std::int64_t size) {
  Builder& b = v.builder();
  v = counted_indices(v, size);
  const bool no_table = counts_in_floats(b) && is_integer(v.dtype());
  if ((b.spec() && b.spec()->product) || no_table) return v;
  std::vector<std::int64_t> table;
  for (std::int64_t i = 0; i < size; ++i) table.push_back(i);
  Val places = b.integers(table, v.dtype(), {1, size, 1});
  return b.reshape(b.gather(places, as_indices(b.reshape(v, {1, v.shape().elements()}))), v.shape());
}

// GATHER and SCATTER take no booleans.
static Val as_scalars(Val booleans) {
  Builder& b = booleans.builder();
  return b.cast(booleans, counts_in_floats(b) ? DType::f32 : DType::i8);
}

Val gathered(Val values, Val indices) {
  Builder& b = values.builder();
  indices = as_indices(indices);
  if (values.dtype() == DType::boolean) return b.cast(b.gather(as_scalars(values), indices), DType::boolean);
  return b.gather(values, indices);
}

Val scattered(Val values, Val indices, Val source) {
  Builder& b = values.builder();
  indices = as_indices(indices);
  if (values.dtype() == DType::boolean)
    return b.cast(scattered(as_scalars(values), indices, as_scalars(source)), DType::boolean);
  return retyped(b.tosa(tosa::op::scatter, {values, indices, source}), values.type());
}

// All pairs of indices are compared, so beyond these many rows they are taken to be distinct: PyTorch promises nothing
// either, and executors stop where TOSA leaves the result open.
constexpr std::int64_t most_compared = 4096;

// Where each row goes: to its index, or, if a later row has the same, to a place of its own behind the table.
static std::optional<Val> places_apart(Val indices, std::int64_t size) {
  Builder& b = indices.builder();
  const std::int64_t n = indices.dim(0), w = indices.dim(1);
  if (indices.is_constant()) {
    const auto& value = b.graph()[indices.id()];
    std::set<std::pair<std::int64_t, double>> met;
    bool repeated = false;
    for (std::int64_t i = 0; i < n * w; ++i)
      repeated |=
          !met.emplace(i / w, element_as_double(value.type.dtype, value.constant.data(), static_cast<std::size_t>(i)))
               .second;
    if (!repeated) return std::nullopt;
  }
  // What NPUs know as SCATTER writes row after row, and they compare nothing.
  const bool compares = !(b.spec() && b.spec()->product) && !(counts_in_floats(b) && size + w >= 1 << 24);
  if (w == 1 || w > most_compared || n > most_compared * most_compared / (w * w) * 4 || !compares) return std::nullopt;
  indices = checked_indices(indices, size);  // indices beyond the table are none of the program's
  std::vector<std::int64_t> later, own;
  for (std::int64_t i = 0; i < w; ++i) {
    own.push_back(size + i);
    for (std::int64_t j = 0; j < w; ++j) later.push_back(j > i);
  }
  Val same = b.binary(tosa::op::equal, b.reshape(indices, {n, w, 1}), b.reshape(indices, {n, 1, w}));
  Val again = b.binary(tosa::op::logical_and, same, b.integers(later, DType::boolean, {1, w, w}));
  return b.select(b.reduce(tosa::op::reduce_any, again, {2}, false), b.integers(own, indices.dtype(), {1, w}), indices);
}

static Val for_all(Val indices, std::int64_t batches) {
  return indices.dim(0) == batches ? indices : indices.builder().tile(indices, {batches, 1});
}

Val last_written(Val values, Val indices, Val source) {
  Builder& b = values.builder();
  const std::int64_t n = values.dim(0), k = values.dim(1);
  const auto apart = places_apart(indices, k);
  if (!apart) return scattered(values, for_all(indices, n), source);
  return b.slice_axis(scattered(b.concat({values, source}, 1), for_all(*apart, n), source), 1, 0, k);
}

Put replaced_by(const Call& call) { return call.has(mark::distinct.name) ? Put::once : Put::replace; }

Val put(Val values, Val indices, Val source, Put how) {
  if (how == Put::replace) return last_written(values, indices, source);
  indices = for_all(indices, values.dim(0));
  return how == Put::add ? added_rows(values, indices, source) : scattered(values, indices, source);
}

Val added_rows(Val values, Val indices, Val source) {
  Builder& b = values.builder();
  if (values.dtype() == DType::boolean)
    b.refuse("aten.index.add-dtype",
             "adding at indices that may repeat needs integers or floats, not " + std::string(name_of(values.dtype())));
  const TensorType type = values.type();
  if (type.quantised() && type.dtype != DType::i32)
    return b.rescale(added_rows(b.as_i32(values), indices, b.as_i32(source)), type);
  const std::int64_t n = values.dim(0), k = values.dim(1), w = indices.dim(1), c = values.dim(2);
  indices = checked_indices(indices, k);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < k; ++i) rows.push_back(i);
  Val hits = b.binary(tosa::op::equal, b.integers(rows, indices.dtype(), {1, k, 1}), b.reshape(indices, {n, 1, w}));
  if (is_float(values.dtype())) return b.add(values, b.matmul(b.cast(hits, values.dtype()), source));
  // TOSA has no product of integer matrices: each row of the source is kept where it goes, and they are added up.
  const DType counted = values.dtype() == DType::i64 ? DType::i64 : DType::i32;
  const Val rows_of_source = b.reshape(b.cast(source, counted), {n, 1, w, c});
  Val rows_of_indices = b.select(b.reshape(hits, {n, k, w, 1}), rows_of_source, b.like(rows_of_source, 0.0));
  Val sum = b.reduce(tosa::op::reduce_sum, rows_of_indices, {2}, false);
  return b.cast(b.add(b.cast(values, counted), sum), values.dtype());
}

Val selected(Val x, int axis, Val indices) {
  Builder& b = x.builder();
  const std::int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, x.rank()),
                     count = indices.shape().elements();
  Val all = b.tile(b.reshape(counted_indices(indices, x.dim(axis)), {1, count}), {outer, 1});
  Val y = gathered(b.reshape(x, {outer, x.dim(axis), inner}), all);
  auto dims = x.shape().sizes();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, indices.shape().sizes().begin(), indices.shape().sizes().end());
  return b.reshape(y, Shape(dims));
}

Val put_along(Builder& b, Val x, int axis, Val indices, Val source, Put how) {
  const std::int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, x.rank()),
                     count = indices.shape().elements();
  if (source.shape().elements() != outer * count * inner)
    b.refuse("aten.index.source", "a source of shape " + to_string(source.shape()) + " for " + std::to_string(count) +
                                      " slices of shape " + to_string(x.shape()));
  Val table = b.reshape(x, {outer, x.dim(axis), inner}), rows = b.reshape(source, {outer, count, inner});
  return b.reshape(put(table, b.reshape(counted_indices(indices, x.dim(axis)), {1, count}), rows, how), x.shape());
}

Val gathered_lines(Builder& b, Val x, int axis, Val index) {
  if (index.rank() != x.rank())
    b.refuse("aten.gather.rank",
             "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  auto window = index.shape().sizes();
  window[static_cast<std::size_t>(axis)] = x.dim(axis);
  for (int i = 0; i < x.rank(); ++i)
    if (window[static_cast<std::size_t>(i)] > x.dim(i))
      b.refuse("aten.gather.shape",
               "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  const Lines lines(x.rank(), axis);
  Val values = b.transpose(leading_window(b, x, window), lines.last),
      wanted = b.transpose(counted_indices(index, x.dim(axis)), lines.last);
  const std::int64_t k = x.dim(axis), w = index.dim(axis), n = index.shape().elements() / w;
  Val y = gathered(b.reshape(values, {n, k, 1}), b.reshape(wanted, {n, w}));
  return b.transpose(b.reshape(y, wanted.shape()), lines.back);
}

Val scattered_lines(Builder& b, Val x, int axis, Val index, Val source, Put how) {
  if (index.rank() != x.rank() || source.rank() != x.rank())
    b.refuse("aten.scatter.rank",
             "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  auto window = index.shape().sizes();
  window[static_cast<std::size_t>(axis)] = x.dim(axis);
  for (int i = 0; i < x.rank(); ++i)
    if (window[static_cast<std::size_t>(i)] > x.dim(i) || index.dim(i) > source.dim(i))
      b.refuse("aten.scatter.shape", "indices of shape " + to_string(index.shape()) + ", a source of shape " +
                                         to_string(source.shape()) + " into shape " + to_string(x.shape()));
  const Lines lines(x.rank(), axis);
  const Val inner = leading_window(b, x, window);
  Val values = b.transpose(inner, lines.last), wanted = b.transpose(counted_indices(index, x.dim(axis)), lines.last);
  Val given = b.transpose(leading_window(b, source, index.shape().sizes()), lines.last);
  const std::int64_t k = x.dim(axis), w = index.dim(axis), n = index.shape().elements() / w;
  Val table = b.reshape(values, {n, k, 1}), rows = b.reshape(given, {n, w, 1}), where = b.reshape(wanted, {n, w});
  Val y = put(table, where, rows, how);
  y = b.transpose(b.reshape(y, values.shape()), lines.back);
  // What lies outside the window is laid around it again, dim by dim from the last.
  for (int i = x.rank() - 1; i >= 0; --i) {
    if (y.dim(i) == x.dim(i)) continue;
    auto start = std::vector<std::int64_t>(window.size(), 0), size = y.shape().sizes();
    start[static_cast<std::size_t>(i)] = y.dim(i);
    size[static_cast<std::size_t>(i)] = x.dim(i) - y.dim(i);
    y = b.concat({y, b.slice(x, start, size)}, i);
  }
  return y;
}

Val named_indices(Builder& b, Val x, int axis, Val index) {
  if (index.rank() != x.rank())
    b.refuse("aten.scatter.rank",
             "indices of shape " + to_string(index.shape()) + " into shape " + to_string(x.shape()));
  const Lines lines(x.rank(), axis);
  Val wanted = b.transpose(checked_indices(index, x.dim(axis)), lines.last);
  const std::int64_t k = x.dim(axis), w = index.dim(axis), n = index.shape().elements() / w;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < k; ++i) places.push_back(i);
  Val hits = b.binary(tosa::op::equal, b.integers(places, wanted.dtype(), {1, k, 1}), b.reshape(wanted, {n, 1, w}));
  auto dims = wanted.shape().sizes();
  dims.back() = k;
  Val mask = b.transpose(b.reshape(b.reduce(tosa::op::reduce_any, hits, {2}, false), Shape(dims)), lines.back);
  // Beyond the indices' own extent nothing is named.
  std::vector<std::int64_t> before(dims.size(), 0), after;
  for (int i = 0; i < x.rank(); ++i) after.push_back(x.dim(i) - mask.dim(i));
  return b.pad(mask, before, after, 0.0);
}

IndexPlan index_plan(Builder& b, Val x, const std::vector<std::optional<Val>>& indices) {
  IndexPlan plan;
  if (indices.size() > static_cast<std::size_t>(x.rank()))
    b.refuse("aten.index.rank", std::to_string(indices.size()) + " indices into shape " + to_string(x.shape()));
  std::vector<std::int64_t> common;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (k >= indices.size() || !indices[k]) {
      plan.kept.push_back(i);
      continue;
    }
    Val v = *indices[k];
    if (v.dtype() == DType::boolean)
      b.refuse("aten.index.mask",
               "indexing by a boolean mask gives a shape that is known only at run time: use torch.where");
    plan.indexed.push_back(i);
    while (static_cast<int>(common.size()) < v.rank()) common.insert(common.begin(), 1);
    for (int d = 0; d < v.rank(); ++d) {
      auto& out = common[common.size() - static_cast<std::size_t>(v.rank() - d)];
      if (v.dim(d) != 1 && out != 1 && out != v.dim(d))
        b.refuse("aten.index.broadcast", "the indices' shapes do not broadcast");
      if (v.dim(d) != 1) out = v.dim(d);
    }
  }
  plan.common = Shape(common);
  if (plan.indexed.empty()) return plan;
  std::int64_t rows = 1;
  for (int i : plan.indexed) rows *= x.dim(i);
  std::optional<Val> position;
  for (int i : plan.indexed) {
    Val v = wrapped_indices(*indices[static_cast<std::size_t>(i)], x.dim(i));
    // What is outside its own dim may be inside the table.
    if (plan.indexed.size() > 1) v = checked_indices(v, x.dim(i));
    v = counted_indices(v, rows);
    position = position ? b.add(b.mul(*position, b.scalar(static_cast<double>(x.dim(i)), v.dtype())), v) : v;
  }
  plan.position = b.broadcast_to(*position, plan.common);
  return plan;
}

Val IndexPlan::table(Val x) const {
  Builder& b = x.builder();
  std::vector<int> front = indexed;
  front.insert(front.end(), kept.begin(), kept.end());
  std::int64_t rows = 1;
  for (int i : indexed) rows *= x.dim(i);
  return b.reshape(b.transpose(x, front), {1, rows, x.shape().elements() / rows});
}

Val IndexPlan::restored(Val table, Val x) const {
  Builder& b = x.builder();
  std::vector<int> front = indexed, back(static_cast<std::size_t>(x.rank()));
  front.insert(front.end(), kept.begin(), kept.end());
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < front.size(); ++i) {
    dims.push_back(x.dim(front[i]));
    back[static_cast<std::size_t>(front[i])] = static_cast<int>(i);
  }
  return b.transpose(b.reshape(table, Shape(dims)), back);
}

Shape IndexPlan::gathered_shape(Val x) const {
  auto dims = common.sizes();
  for (int i : kept) dims.push_back(x.dim(i));
  return Shape(dims);
}

std::vector<int> IndexPlan::placed() const {
  // Indices side by side: their dims stand where they stood; otherwise in front.
  const bool together = indexed.back() - indexed.front() + 1 == static_cast<int>(indexed.size());
  const int before = together ? indexed.front() : 0, rank = common.rank() + static_cast<int>(kept.size());
  std::vector<int> order;
  for (int i = 0; i < before; ++i) order.push_back(common.rank() + i);
  for (int i = 0; i < common.rank(); ++i) order.push_back(i);
  for (int i = common.rank() + before; i < rank; ++i) order.push_back(i);
  return order;
}

}  // namespace tosaic
