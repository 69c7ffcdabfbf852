// SPDX-License-Identifier: Apache-2.0
#include "normalise/views.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
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

// Dim by dim: the inner dims are written in a slice of the outer one, which then takes its place.
Val with_box(Val base, Val content, const Box& box, std::size_t d) {
  Builder& b = base.builder();
  while (d < box.dims.size() && box.dims[d].count == base.dim(static_cast<int>(d))) ++d;
  if (d == box.dims.size()) return content;
  const Box::Dim& dim = box.dims[d];
  const Attrs range{{"dim", static_cast<std::int64_t>(d)},
                    {"start", dim.start},
                    {"end", dim.start + (dim.count - 1) * dim.step + 1},
                    {"step", dim.step}};
  bool inner = false;
  for (std::size_t i = d + 1; i < box.dims.size(); ++i) inner |= box.dims[i].count != base.dim(static_cast<int>(i));
  if (inner) content = with_box(b.aten(aten::op::slice_Tensor, {base}, range), content, box, d + 1);
  return b.aten(aten::op::slice_scatter, {base, content}, range);
}

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
  // Every boundary between two dims of the base must be one of the view, too.
  std::int64_t whole = 1, part = 1;
  int next = 0;
  for (int i = 0; i < base.rank(); ++i) {
    whole *= base.size(i);
    while (next < view.rank() && part < whole) part *= view.size(next++);
    if (part != whole) return false;
  }
  return true;
}

namespace {

Result<Val> put_back(Val base, Val content, const Positions& positions) {
  Builder& b = base.builder();
  const Shape shape = base.shape(), view = content.shape();
  if (all_in_order(positions, shape)) return calls::view(content, shape);
  if (auto box = box_of(positions, shape, view)) {
    // The view's dims in the base's order, those of one element in front.
    calls::Axes order;
    Ints counts;
    for (int i = 0; i < view.rank(); ++i)
      if (view[i] == 1) order.push_back(i);
    for (const auto& dim : box->dims) {
      if (dim.axis >= 0) order.push_back(dim.axis);
      counts.push_back(dim.count);
    }
    if (!std::ranges::is_sorted(order)) content = calls::permute(content, order);
    return with_box(base, calls::view(content, Shape(counts)), *box, 0);
  }
  // Anything else (diagonals, strides): each element of the base takes one of the view's or stays.
  const std::string& name = b.graph()[base.id()].name;
  const auto n = static_cast<std::size_t>(shape.elements());
  Ints source(n, 0), shown(n, 0);
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const auto at = static_cast<std::size_t>(positions[k]);
    if (shown[at])
      return located(error("model.write-to-overlap",
                           fmt::format("a view of '{}' is written in which several elements are one in memory", name))
                         .hint("write to a copy of the expanded tensor: x.expand(...).clone()"),
                     b.loc());
    shown[at] = 1;
    source[at] = static_cast<std::int64_t>(k);
  }
  const std::string places_of = name + ".places";
  const Val places = b.constant({DType::i64, Shape{static_cast<std::int64_t>(n)}, std::nullopt},
                                constant_bytes(DType::i64, source), places_of);
  const Val mask = b.constant({DType::boolean, shape, std::nullopt}, constant_bytes(DType::boolean, shown), places_of);
  const Val elements = calls::view(content, Shape{static_cast<std::int64_t>(positions.size())});
  const Val picked = b.aten(aten::op::index_select, {elements, places}, {{"dim", std::int64_t{0}}});
  return calls::where(mask, calls::view(picked, shape), base);
}

}  // namespace

Result<ValueId> put_back(Graph& graph, ValueId base, ValueId content, const Positions& positions, const LocRef& loc) {
  if (positions.empty()) return base;
  // Values are never taken away, so their number makes a name that no other has.
  Composer c(graph, [&graph, name = graph[base].name, first = graph.nodes.size()](Operator) {
    return fmt::format("{}.{}.{}", name, graph.nodes.size() - first, graph.values.size());
  });
  c.fold(false);
  c.set_loc(loc);
  return unless_refused([&]() -> Result<ValueId> {
    TOSAIC_TRY(const Val whole, put_back(c.value(base), c.value(content), positions));
    return whole.id();
  });
}

}  // namespace tosaic
