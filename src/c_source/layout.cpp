// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, rows or contents: whatever their type, one of the same size is copied.
#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/reduce.h"
#include "ops/definitions/row.h"
#include "plan/movement.h"
#include "plan/views.h"

namespace tosaic::c_source {

bool take_view(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!plan::is_view(node)) return false;
  planning.aliases.push_back({node.outputs[0], node.inputs[0], 0});
  planning.add({.nodes = {n}, .reads = {node.inputs[0]}, .writes = {node.outputs[0]}, .body = {}, .call = false});
  return true;
}

namespace {

// Copies along two walks; the innermost run at once where both are dense.
void print_move(Writer& w, const plan::Move& move, ValueId to, std::size_t element_bytes) {
  std::vector<std::string> index;
  std::int64_t run = 1;
  std::size_t rank = move.dims.size();
  while (rank > 0 && move.read.strides[rank - 1] == run && move.write.strides[rank - 1] == run)
    run *= move.dims[--rank];
  for (std::size_t d = 0; d < rank; ++d) {
    index.push_back(fmt::format("i{}", d));
    w.loop(index.back(), move.dims[d]);
  }
  const std::string at_to = index_sum(index, move.write.strides, move.write.offset);
  const std::string at_from = index_sum(index, move.read.strides, move.read.offset);
  if (run == 1)
    w.line("{}[{}] = {}[{}];", name_of_value(to), at_to, name_of_value(move.from), at_from);
  else
    w.line("memcpy({} + {}, {} + {}, {});", name_of_value(to), at_to, name_of_value(move.from), at_from,
           static_cast<std::uint64_t>(run) * element_bytes);
  for (std::size_t d = 0; d < rank; ++d) w.close();
}

}  // namespace

bool take_movement(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const auto movement = plan::movement_of(planning.graph, node);
  if (!movement) return false;
  const ValueId to = node.outputs[0];
  const TensorType& type = planning.type(to);
  if (c_type(type.dtype).empty()) return false;
  Writer w;
  std::vector<ValueId> reads;
  if (movement->fill != no_value) {
    reads.push_back(movement->fill);
    w.line("for (int32_t i = 0; i < {}; ++i) {}[i] = {}[0];", type.shape.elements(), name_of_value(to),
           name_of_value(movement->fill));
  }
  for (const plan::Move& move : movement->moves) {
    if (std::ranges::find(reads, move.from) == reads.end()) reads.push_back(move.from);
    print_move(w, move, to, storage_size(type.dtype));
  }
  planning.add({{n}, std::move(reads), {to}, w.take()});
  return true;
}

bool take_indexed(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const tosa::View view = planning.view(n);
  Writer w;
  if (node.op == tosa::op::argmax) {
    if (c_type(view.in(0).dtype).empty()) return false;
    const auto along = tosa::along(view.in(0).shape, view.integer("axis"));
    w.loop("i", along.outer);
    w.loop("j", along.inner);
    w.line("const {0} *x = {1} + i * {2} + j;", c_type(view.in(0).dtype), name_of_value(node.inputs[0]),
           along.size * along.inner);
    w.line("{} best = x[0];", c_type(view.in(0).dtype));
    w.line("int32_t index = 0;");
    w.open("for (int32_t k = 1; k < {}; ++k)", along.size);
    w.line("const {} next = x[k * {}];", c_type(view.in(0).dtype), along.inner);
    if (is_float(view.in(0).dtype)) {
      w.line("const float largest = tosaic_maxf(best, next, {});", int{tosa::ignores_nan(view)});
      w.line("const int same = largest == best || (largest != largest && best != best);");
      w.line("if (!same) best = largest, index = k;");
    } else {
      w.line("if (next > best) best = next, index = k;");
    }
    w.close();
    w.line("{}[i * {} + j] = index;", name_of_value(node.outputs[0]), along.inner);
    w.close();
    w.close();
    planning.add({{n}, {node.inputs[0]}, {node.outputs[0]}, w.take()});
    return true;
  }
  const bool gather = node.op == tosa::op::gather, scatter = node.op == tosa::op::scatter;
  if ((!gather && !scatter) || c_type(view.out().dtype).empty()) return false;
  const Shape& values = view.in(0).shape;
  const std::int64_t width = view.in(1).shape.size(1), rows = values.size(1), row = values.size(2);
  const std::size_t bytes = static_cast<std::size_t>(row) * storage_size(view.out().dtype);
  const std::string x = name_of_value(node.inputs[0]), indices = name_of_value(node.inputs[1]),
                    y = name_of_value(node.outputs[0]);
  if (scatter) w.line("memcpy({}, {}, {});", y, x, static_cast<std::uint64_t>(values.size(0) * rows) * bytes);
  w.loop("n", values.size(0));
  w.open("for (int32_t i = 0; i < {}; ++i)", width);
  // An index outside is unpredictable in TOSA; here it does no harm.
  w.line("const int32_t at = {}[n * {} + i];", indices, width);
  if (gather) {
    w.line("const int32_t inside = tosaic_clamp(at, 0, {});", rows - 1);
    w.line("memcpy({} + (n * {} + i) * {}, {} + (n * {} + inside) * {}, {});", y, width, row, x, rows, row, bytes);
  } else {
    w.line("if (at >= 0 && at < {}) memcpy({} + (n * {} + at) * {}, {} + (n * {} + i) * {}, {});", rows, y, rows, row,
           name_of_value(node.inputs[2]), width, row, bytes);
  }
  w.close();
  w.close();
  planning.add({{n}, node.inputs, {node.outputs[0]}, w.take()});
  return true;
}

}  // namespace tosaic::c_source
