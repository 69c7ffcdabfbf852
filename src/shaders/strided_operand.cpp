// SPDX-License-Identifier: Apache-2.0
#include "shaders/strided_operand.h"

#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "plan/movement.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

struct Dim {
  std::int64_t size, stride;
};

std::vector<std::int64_t> dense(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

// The only move of a node that makes all of its result, in its order.
std::optional<plan::Move> only_move(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (ValueId v : *list)
      if (!graph[v].type.shape.is_static()) return std::nullopt;
  const auto movement = plan::movement_of(graph, node);
  if (!movement || movement->fill != no_value || movement->moves.size() != 1) return std::nullopt;
  const plan::Move& move = movement->moves[0];
  std::int64_t elements = 1;
  for (std::int64_t size : move.dims) elements *= size;
  const bool whole = elements > 0 && elements == graph[node.outputs[0]].type.shape.elements() &&
                     move.write.offset == 0 && move.write.strides == dense(move.dims) &&
                     std::ranges::none_of(move.read.strides, [](std::int64_t s) { return s < 0; });
  return whole ? std::optional(move) : std::nullopt;
}

// A tensor's elements in their order, as places of another one.
struct Addressing {
  ValueId value;
  std::int64_t offset = 0;
  std::vector<Dim> dims;

  // The same places in what `move` has read. false: no strides say them.
  bool look_through(const plan::Move& move) {
    const std::vector<std::int64_t> unit = move.write.strides;
    std::vector<std::int64_t> highest(unit.size());
    std::int64_t begin = move.read.offset, rest = offset;
    for (std::size_t j = 0; j < unit.size(); ++j) {
      highest[j] = rest / unit[j];
      begin += highest[j] * move.read.strides[j];
      rest %= unit[j];
    }
    std::vector<Dim> found;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      // From the innermost part of the dim on.
      for (std::int64_t left = dim->size, stride = dim->stride; left > 1;) {
        std::size_t j = 0;
        while (j < unit.size() && (unit[j] > stride || move.dims[j] == 1)) ++j;
        if (j == unit.size() || stride % unit[j] != 0) return false;
        const std::int64_t step = stride / unit[j], most = move.dims[j] / step;
        const std::int64_t here = std::min(left, most);
        if (most < 1 || left % here != 0 || (here < left && move.dims[j] % step != 0)) return false;
        highest[j] += (here - 1) * step;
        if (highest[j] >= move.dims[j]) return false;
        found.insert(found.begin(), {here, step * move.read.strides[j]});
        left /= here;
        stride *= here;
      }
    }
    dims = std::move(found);
    offset = begin;
    value = move.from;
    return true;
  }
};

Addressing addressing_of(const Graph& graph, ValueId v) {
  Addressing p{v, 0, {}};
  const std::vector<std::int64_t> sizes = graph[v].type.shape.sizes();
  const std::vector<std::int64_t> strides = dense(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) p.dims.push_back({sizes[d], strides[d]});
  return p;
}

// The strides of some sizes, of which each must have one.
std::optional<std::vector<std::int64_t>> strides_of(std::vector<Dim> dims, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 0);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    std::int64_t made = 1;
    while (made < sizes[i]) {
      if (dims.empty()) return std::nullopt;
      Dim& dim = dims.back();
      const std::int64_t need = sizes[i] / made, here = std::min(need, dim.size);
      if (need % here != 0 || dim.size % here != 0) return std::nullopt;
      if (made == 1)
        strides[i] = dim.stride;
      else if (dim.stride != strides[i] * made)
        return std::nullopt;
      made *= here;
      dim.size /= here;
      dim.stride *= here;
      if (dim.size == 1) dims.pop_back();
    }
  }
  return strides;
}

// Those of matrices: of their rows and columns, and of lists of matrices.
struct MatrixStrides {
  StridedBatches batches;
  std::int64_t rows, columns;
};
std::optional<MatrixStrides> strides_of_matrices(const std::vector<Dim>& dims, const std::vector<std::int64_t>& sizes) {
  if (const auto s = strides_of(dims, sizes)) return MatrixStrides{{(*s)[0]}, (*s)[1], (*s)[2]};
  for (std::int64_t inner = 2; inner < sizes[0]; ++inner) {
    if (sizes[0] % inner != 0) continue;
    if (const auto s = strides_of(dims, {sizes[0] / inner, inner, sizes[1], sizes[2]}))
      return MatrixStrides{{(*s)[1], inner, (*s)[0]}, (*s)[2], (*s)[3]};
  }
  return std::nullopt;
}

// To what the value was made of without computing anything, of the same dtype, or of `other`; or by MULs alone, whose
// numbers `factor` is multiplied by.
bool step_back(const Work& work, Addressing& addressing, DType dtype, std::optional<DType> other = {},
               double* factor = nullptr) {
  const Graph& graph = work.graph;
  for (;;) {
    const std::int32_t producer = work.uses.producer[addressing.value];
    if (producer < 0) return false;
    const Node& node = graph.nodes[static_cast<std::size_t>(producer)];
    if (const auto scaling = factor ? scaling_of(graph, node) : std::nullopt) {
      addressing.value = scaling->value;
      *factor *= scaling->factor;
      return true;
    }
    if (!is_view(node)) {
      const auto move = only_move(graph, node);
      if (!move) return false;
      const DType before = graph[move->from].type.dtype;
      return (before == dtype || before == other) && work.is_stored(move->from) && addressing.look_through(*move);
    }
    addressing.value = node.inputs[0];
  }
}

}  // namespace

std::optional<Scaling> scaling_of(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::mul) return std::nullopt;
  const TensorType& made = graph[node.outputs[0]].type;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const tosaic::Value &number = graph[node.inputs[i]], &scaled = graph[node.inputs[1 - i]];
    if (!number.is_constant() || number.size || number.type.shape.elements() != 1 || !is_float(number.type.dtype) ||
        scaled.type.shape != made.shape || scaled.type.dtype != made.dtype)
      continue;
    const double factor = element_as_double(number.type.dtype, number.constant.data(), 0);
    if (std::isfinite(factor) && factor != 0) return Scaling{node.inputs[1 - i], factor};
  }
  return std::nullopt;
}

StridedMatrices find_strided_operand(const Work& work, ValueId v, std::int64_t unit, bool by_columns, bool scaled) {
  const Graph& graph = work.graph;
  const Shape& shape = graph[v].type.shape;
  StridedMatrices best{v, 0, {shape[1] * shape[2]}, shape[2], 1};
  if (!shape.is_static()) return best;
  const std::vector<std::int64_t> sizes = shape.sizes();
  const auto whole = [unit](std::int64_t n) { return n % unit == 0; };
  Addressing addressing = addressing_of(graph, v);
  double factor = 1;
  while (step_back(work, addressing, graph[v].type.dtype, {}, scaled ? &factor : nullptr)) {
    const auto s = strides_of_matrices(addressing.dims, sizes);
    if (!s || !whole(addressing.offset) || !s->batches.are_multiples(unit)) continue;
    const bool rows = s->columns == 1 && whole(s->rows) && whole(sizes[2]);
    const bool columns = by_columns && s->rows == 1 && whole(s->columns) && whole(sizes[1]);
    if (rows || columns) best = {addressing.value, addressing.offset, s->batches, s->rows, s->columns, factor};
  }
  return best;
}

std::optional<StridedImage> find_strided_image(const Work& work, ValueId v, std::int64_t unit) {
  const Graph& graph = work.graph;
  constexpr std::int64_t few = 4;
  const Shape& shape = graph[v].type.shape;
  if (!shape.is_static()) return std::nullopt;
  const std::vector<std::int64_t> sizes = shape.sizes();
  const auto whole = [unit](std::int64_t n) { return n % unit == 0; };
  std::optional<StridedImage> best;
  Addressing addressing = addressing_of(graph, v);
  const DType dtype = graph[v].type.dtype;
  const bool kept_in_half = work.in_half_precision && dtype == DType::f16;
  while (step_back(work, addressing, dtype, kept_in_half ? std::optional(DType::f32) : std::nullopt)) {
    auto strides = strides_of(addressing.dims, sizes);
    if (!strides) continue;
    const std::int64_t channels = strides->back();
    strides->pop_back();
    const bool vectors = graph[addressing.value].type.dtype == dtype && channels == 1 && whole(sizes.back()) &&
                         whole(addressing.offset) && std::ranges::all_of(*strides, whole);
    if (vectors || (sizes.back() > 1 && sizes.back() <= few))
      best = StridedImage{addressing.value, addressing.offset, *std::move(strides), channels};
  }
  return best;
}

plan::Expression before_movements(const Work& work, const plan::Expression& expression) {
  const Graph& graph = work.graph;
  plan::Expression e = expression;
  if (!e.shape.is_static()) return e;
  for (plan::Expression::Input& input : e.inputs) {
    Addressing addressing{input.value, 0, {}};
    std::vector<std::int64_t> sizes;
    for (std::size_t d = 0; d < input.strides.size(); ++d)
      if (input.strides[d] != 0 && e.shape.sizes()[d] > 1) {
        sizes.push_back(e.shape.sizes()[d]);
        addressing.dims.push_back({sizes.back(), input.strides[d]});
      }
    const DType dtype = graph[input.value].type.dtype;
    while (step_back(work, addressing, dtype)) {
      const auto strides = strides_of(addressing.dims, sizes);
      if (!strides) continue;
      input.value = addressing.value;
      input.offset = addressing.offset;
      for (std::size_t d = 0, n = 0; d < input.strides.size(); ++d)
        if (input.strides[d] != 0 && e.shape.sizes()[d] > 1) input.strides[d] = (*strides)[n++];
    }
  }
  return e;
}

std::optional<StridedMatrices> find_strided_result(const Graph& graph, ValueId from, const Shape& matrices,
                                                   const Node& movement) {
  const auto move = only_move(graph, movement);
  const ValueId to = movement.outputs[0];
  if (!move || !matrices.is_static() || move->from != from || move->read.offset != 0 ||
      graph[to].type.dtype != graph[from].type.dtype || graph[to].type.shape.elements() != matrices.elements())
    return std::nullopt;
  // Places in what is read, in its order, with the strides of what is written.
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < move->dims.size(); ++d)
    if (move->dims[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return move->read.strides[a] > move->read.strides[b]; });
  std::vector<Dim> dims;
  std::int64_t expected = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (move->read.strides[*d] != expected) return std::nullopt;
    expected *= move->dims[*d];
    dims.insert(dims.begin(), {move->dims[*d], move->write.strides[*d]});
  }
  const auto strides = strides_of_matrices(dims, matrices.sizes());
  if (!strides || (strides->columns != 1 && matrices.size(2) > 1)) return std::nullopt;
  return StridedMatrices{to, 0, strides->batches, strides->rows, 1};
}

}  // namespace tosaic::shaders
