// SPDX-License-Identifier: Apache-2.0
#include "normalise/views.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

Ints coordinates(std::int64_t position, const Shape& shape) {
  Ints at(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[static_cast<std::size_t>(i)] = position % shape.size(i);
    position /= shape.size(i);
  }
  return at;
}

// The elements start, start + step, ... of each dim of the base, and which dim of the view counts them (-1: none).
struct Box {
  struct Dim {
    std::int64_t start, count = 1, step = 1;
    int axis = -1;
  };
  std::vector<Dim> dims;
};

// A view by slices, selections and permutations shows a box.
std::optional<Box> box_of(const Positions& positions, const Shape& base, const Shape& view) {
  const Ints origin = coordinates(positions[0], base);
  Box box;
  for (auto start : origin) box.dims.push_back({start});
  std::int64_t stride = 1;  // in elements of the view
  Ints strides(static_cast<std::size_t>(view.rank()));
  for (int i = view.rank() - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= view.size(i);
  }
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view[axis] == 1) continue;
    const Ints next = coordinates(positions[static_cast<std::size_t>(strides[static_cast<std::size_t>(axis)])], base);
    Box::Dim* moved = nullptr;
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (next[d] == origin[d]) continue;
      if (moved || next[d] < origin[d] || box.dims[d].axis >= 0) return std::nullopt;
      moved = &box.dims[d];
      *moved = {origin[d], view.size(axis), next[d] - origin[d], axis};
    }
    if (!moved) return std::nullopt;
  }
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const Ints at = coordinates(static_cast<std::int64_t>(k), view);
    std::int64_t position = 0;
    for (int d = 0; d < base.rank(); ++d) {
      const Box::Dim& dim = box.dims[static_cast<std::size_t>(d)];
      const std::int64_t i = dim.axis < 0 ? 0 : at[static_cast<std::size_t>(dim.axis)];
      if (dim.start + i * dim.step >= base.size(d)) return std::nullopt;
      position = position * base.size(d) + dim.start + i * dim.step;
    }
    if (position != positions[k]) return std::nullopt;
  }
  return box;
}

// Appends calls; the results are named after the tensor that is written.
class Writer {
 public:
  Writer(Graph& graph, Rewriter& out, ValueId base, const LocRef& loc)
      : graph_(graph), out_(out), loc_(loc), name_(graph[base].name), first_(graph.nodes.size()) {}

  ValueId call(Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType type) {
    // Values are never taken away, so their number makes a name that no other has.
    const std::string name = fmt::format("{}.{}.{}", name_, graph_.nodes.size() - first_, graph_.values.size());
    return out_.add(op, std::move(inputs), std::move(attrs), graph_.add_value(name, std::move(type)), loc_);
  }
  ValueId constant(TensorType type, Bytes data) {
    return graph_.add_value(fmt::format("{}.places.{}", name_, graph_.values.size()), std::move(type), std::move(data));
  }
  const TensorType& type(ValueId v) const { return graph_[v].type; }

  ValueId view(ValueId x, const Shape& shape) {
    if (type(x).shape == shape) return x;
    return call(aten::op::view, {x}, {{"size", shape.sizes()}}, type(x).with(shape));
  }
  ValueId permute(ValueId x, const Ints& order) {
    if (std::is_sorted(order.begin(), order.end())) return x;
    Ints dims;
    for (auto d : order) dims.push_back(type(x).shape.size(static_cast<int>(d)));
    return call(aten::op::permute, {x}, {{"dims", order}}, type(x).with(Shape(dims)));
  }

  // Dim by dim: the inner dims are written in a slice of the outer one, which then takes its place.
  ValueId put_box(ValueId base, ValueId content, const Box& box, std::size_t d) {
    const Shape shape = type(base).shape;
    while (d < box.dims.size() && box.dims[d].count == shape.size(static_cast<int>(d))) ++d;
    if (d == box.dims.size()) return content;
    const Box::Dim& dim = box.dims[d];
    const Attrs range{{"dim", static_cast<std::int64_t>(d)},
                      {"start", dim.start},
                      {"end", dim.start + (dim.count - 1) * dim.step + 1},
                      {"step", dim.step}};
    bool inner = false;
    for (std::size_t i = d + 1; i < box.dims.size(); ++i) inner |= box.dims[i].count != shape.size(static_cast<int>(i));
    if (inner) {
      auto dims = shape.sizes();
      dims[d] = dim.count;
      const ValueId part = call(aten::op::slice_Tensor, {base}, range, type(base).with(Shape(dims)));
      content = put_box(part, content, box, d + 1);
    }
    return call(aten::op::slice_scatter, {base, content}, range, type(base));
  }

 private:
  Graph& graph_;
  Rewriter& out_;
  const LocRef& loc_;
  const std::string name_;
  const std::size_t first_;
};

}  // namespace

Result<Positions> view_positions(const Graph& graph, const Node& node, std::size_t output) {
  const auto numbered = [](std::size_t i, TensorType& type, Bytes& elements) {
    if (i != 0) return;
    Ints numbers(static_cast<std::size_t>(type.shape.elements()));
    std::iota(numbers.begin(), numbers.end(), 0);
    type = {DType::i32, type.shape, std::nullopt};
    elements = constant_bytes(DType::i32, numbers);
  };
  auto trial = try_node(graph, undeclared(node), {.fold = true, .operand = numbered});
  if (!trial.ok()) return trial.error();
  if (output >= trial->results.size()) return internal_error(fmt::format("{} has no result {}", node.op, output));
  const Value& shown = trial->graph[trial->results[output]];
  if (!shown.is_constant() || shown.type.dtype != DType::i32)
    return internal_error(fmt::format("the elements that {} views are not known", node.op));
  const auto places = shown.constant.as<std::int32_t>();
  return Positions(places.begin(), places.end());
}

bool all_in_order(const Positions& positions, const Shape& base) {
  if (static_cast<std::int64_t>(positions.size()) != base.elements()) return false;
  for (std::size_t k = 0; k < positions.size(); ++k)
    if (positions[k] != static_cast<std::int64_t>(k)) return false;
  return true;
}

bool only_splits(const Shape& base, const Shape& view) {
  // Every border between two dims of the base must be one of the view, too.
  std::int64_t whole = 1, part = 1;
  int next = 0;
  for (int i = 0; i < base.rank(); ++i) {
    whole *= base.size(i);
    while (next < view.rank() && part < whole) part *= view.size(next++);
    if (part != whole) return false;
  }
  return true;
}

Result<ValueId> put_back(Graph& graph, Rewriter& out, ValueId base, ValueId content, const Positions& positions,
                         const LocRef& loc) {
  if (positions.empty()) return base;
  Writer w(graph, out, base, loc);
  const Shape shape = graph[base].type.shape, view = graph[content].type.shape;
  if (all_in_order(positions, shape)) return w.view(content, shape);
  if (auto box = box_of(positions, shape, view)) {
    // The view's dims in the base's order, those of one element in front.
    Ints order, counts;
    for (int i = 0; i < view.rank(); ++i)
      if (view[i] == 1) order.push_back(i);
    for (const auto& dim : box->dims) {
      if (dim.axis >= 0) order.push_back(dim.axis);
      counts.push_back(dim.count);
    }
    return w.put_box(base, w.view(w.permute(content, order), Shape(counts)), *box, 0);
  }
  // Anything else (diagonals, strides): each element of the base takes one of the view's or stays.
  const auto n = static_cast<std::size_t>(shape.elements());
  Ints source(n, 0), shown(n, 0);
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const auto at = static_cast<std::size_t>(positions[k]);
    if (shown[at])
      return located(
          error("model.write-to-overlap",
                fmt::format("a view of '{}' is written in which several elements are one in memory", graph[base].name))
              .hint("write to a copy of the expanded tensor: x.expand(...).clone()"),
          loc);
    shown[at] = 1;
    source[at] = static_cast<std::int64_t>(k);
  }
  const Shape flat{static_cast<std::int64_t>(n)};
  const ValueId places = w.constant({DType::i64, flat, std::nullopt}, constant_bytes(DType::i64, source));
  const ValueId mask = w.constant({DType::boolean, shape, std::nullopt}, constant_bytes(DType::boolean, shown));
  const TensorType type = graph[base].type;
  ValueId picked = w.view(content, Shape{static_cast<std::int64_t>(positions.size())});
  picked = w.call(aten::op::index_select, {picked, places}, {{"dim", std::int64_t{0}}}, type.with(flat));
  return w.call(aten::op::where_self, {mask, w.view(picked, shape), base}, {}, type);
}

}  // namespace tosaic
