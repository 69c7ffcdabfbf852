// SPDX-License-Identifier: Apache-2.0
#include "shaders/gated_product.h"

#include <algorithm>
#include <cstring>

#include "ir/tosa_operators.h"
#include "plan/views.h"
#include "shaders/elements.h"
#include "shaders/fetched_operand.h"
#include "shaders/product.h"
#include "shaders/row_product.h"
#include "shaders/strided_operand.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_gates = 8, few_gates = 4;
constexpr std::uint32_t last_parts = 8;  // of the depth, which are added up last

struct Gates {
  std::vector<std::size_t> inputs;    // of the expression
  std::vector<std::int64_t> columns;  // of the product, with which they begin
  std::int64_t rows = 0, width = 0;   // columns of each gate
  std::uint32_t count() const { return static_cast<std::uint32_t>(inputs.size()); }
  // Parts that the depth is divided into.
  std::uint32_t deep() const { return inputs.size() <= few_gates ? 64 : 32; }
};

// Does element (row, column) of the expression read the one at offset + row * all_columns + column?
bool reads_rows(const Shape& shape, const plan::Expression::Input& input, const Gates& gates,
                std::int64_t all_columns) {
  if (input.strides.size() != static_cast<std::size_t>(shape.rank())) return false;
  std::int64_t apart = 1;  // elements of the expression along a dim
  for (std::size_t d = input.strides.size(); d-- > 0; apart *= shape.sizes()[d]) {
    const std::int64_t size = shape.sizes()[d];
    if (size == 1) continue;
    if (apart < gates.width && apart * size > gates.width) return false;  // it begins in one row and ends in another
    if (input.strides[d] != (apart < gates.width ? apart : apart / gates.width * all_columns)) return false;
  }
  return true;
}

std::optional<Gates> gates_of(const tosa::View& view, const plan::Expression& e, ValueId sums) {
  if (!e.shape.is_static() || !view.out().shape.is_static() || !has_few_rows(view)) return std::nullopt;
  Gates gates;
  gates.rows = rows_of_product(view).value();
  const std::int64_t columns = view.in(1).shape.size(0);
  if (e.shape.elements() % (4 * gates.rows) != 0 || e.shape.elements() == 0) return std::nullopt;
  gates.width = e.shape.elements() / gates.rows;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const plan::Expression::Input& input = e.inputs[i];
    if (input.value != sums) continue;
    if (!reads_rows(e.shape, input, gates, columns) || input.offset < 0 || input.offset + gates.width > columns)
      return std::nullopt;
    gates.inputs.push_back(i);
    gates.columns.push_back(input.offset);
  }
  return gates.inputs.size() > 1 && gates.inputs.size() <= most_gates ? std::optional(gates) : std::nullopt;
}

// Weights of the columns that a group makes, side by side: four of each gate.
Bytes grouped_columns(const Bytes& weights, const Gates& gates, std::size_t row_bytes) {
  std::byte* to = nullptr;
  Bytes grouped = Bytes::fresh(row_bytes * gates.inputs.size() * static_cast<std::size_t>(gates.width), to);
  for (std::int64_t quad = 0; quad < gates.width; quad += 4)
    for (const std::int64_t first : gates.columns) {
      std::memcpy(to, weights.data() + row_bytes * static_cast<std::size_t>(first + quad), 4 * row_bytes);
      to += 4 * row_bytes;
    }
  return grouped;
}

// The expression as it reads what is at hand: gates where its elements are.
plan::Expression with_dense_gates(const plan::Expression& expression, const Gates& gates) {
  plan::Expression e = expression;
  for (const std::size_t i : gates.inputs) {
    std::int64_t apart = 1;
    for (auto d = static_cast<std::size_t>(e.shape.rank()); d-- > 0; apart *= e.shape.sizes()[d])
      e.inputs[i].strides[d] = apart;
    e.inputs[i].offset = 0;
  }
  return e;
}

}  // namespace

MadeList make_gated_product(const Work& work, const Node& product, const Finish& end,
                            const plan::Expression& expression, std::span<const ValueId> others) {
  const tosa::View view(work.graph, product);
  const std::optional<Gates> found =
      gates_of(view, expression, plan::skip_views(work.graph, work.uses.producer, end.output()));
  if (!found) return std::nullopt;
  const Gates& gates = *found;
  const DType type = view.in(1).dtype, kept = work.graph[end.output()].type.dtype;
  const std::int64_t columns = view.in(1).shape.size(0);
  const Bytes& constant = view.constant(1);
  const std::int64_t depth = view.in(0).shape.size(view.in(0).shape.rank() - 1);
  const std::size_t row_bytes = storage_size(type) * static_cast<std::size_t>(depth);
  if (constant.size() != row_bytes * static_cast<std::size_t>(columns) || storage_size(kept) > 4 ||
      kept == DType::boolean)
    return std::nullopt;

  const std::uint32_t count = gates.count(), deep = gates.deep(), size = count * deep;
  const std::int64_t across = gates.width / 4;
  Kernel s(work, std::string(tosa::find(product.op)->name) + "+elementwise", Groups{gates.rows * across, size});
  s.joins_tables = true;
  const Value local = s.local(), tiles = s.param(across), all = s.param(depth), row = s.group() / tiles;
  const Value quad = s.group() % tiles, there = row < s.param(gates.rows);
  const Value gate = local % s.integer(count), part = local / s.integer(count);
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Buffer input = s.input(product.inputs[0]);
  const Bytes grouped = grouped_columns(constant, gates, row_bytes);
  const Buffer weights = s.constant(type, packed_weights(grouped, type, gates.width * count, 1, depth), true);
  const VectorVariable sum = sum_of_part(
      s, view, input, weights,
      {row, all, part, there, deep, in_zp, weight_zp, [&](Value k) { return (k * tiles + quad) * count + gate; }});
  const Shared memory = s.shared(sum.get().kind, size);
  s.store(memory, local, sum.get());
  s.barrier();
  s.when(local < last_parts * count, [&] {
    for (std::uint32_t i = 1; i < deep / last_parts; ++i)
      sum.set(sum.get() + s.load(memory, (local + i * last_parts * count) % s.integer(size)));
    s.store(memory, local, sum.get());
  });
  s.barrier();

  // An invocation for each sum, which is kept as the other ones read it.
  const Shared made = s.shared(is_float(kept) ? Kind::real : Kind::integer, count);
  s.when((local < 4 * count) & there, [&] {
    const Value own = local / s.integer(4) % s.integer(count), lane = local % s.integer(4);
    Value column = s.param(gates.columns[0]), folded = s.load(memory, own, lane);
    for (std::uint32_t i = 1; i < count; ++i) column = s.select(own == i, s.param(gates.columns[i]), column);
    for (std::uint32_t i = 1; i < last_parts; ++i) folded = folded + s.load(memory, own + i * count, lane);
    column = column + quad * 4 + lane;
    const Value finished = end.finished(s, row * s.param(columns) + column, folded + bias_at(s, view, column));
    s.store(made, own, lane, is_float(kept) && kept != DType::f32 ? s.as_stored(finished, kept) : finished);
  });
  s.barrier();
  s.when((local < 4) & there, [&] {
    const Kernel::MoreParams more(s);
    std::map<std::size_t, Value> known;
    for (std::uint32_t i = 0; i < count; ++i) known[gates.inputs[i]] = s.load(made, s.integer(i), local % s.integer(4));
    const Value index = (row * tiles + quad) * 4 + local;
    const std::vector<Value> results = evaluate(s, with_dense_gates(expression, gates), index, others, known);
    s.store(s.output(expression.output), index, results[0]);
    for (std::size_t i = 0; i < others.size(); ++i) s.store(s.output(others[i]), index, results[i + 1]);
  });
  return one(s);
}

bool is_read_by_these(const plan::Uses& uses, ValueId v, const std::vector<std::uint32_t>& nodes) {
  return !uses.visible[v] && std::ranges::all_of(uses.users[v], [&](std::uint32_t u) {
    if (std::ranges::find(nodes, u) != nodes.end()) return true;
    const Node& node = uses.node(u);
    return (plan::is_view(node) || node.op == tosa::op::slice) && is_read_by_these(uses, node.outputs[0], nodes);
  });
}

}  // namespace tosaic::shaders
