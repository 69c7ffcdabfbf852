// SPDX-License-Identifier: Apache-2.0
#include "cpu/rows/rows.h"

#include <algorithm>

#include "cpu/rows/mask_rows.h"
#include "cpu/rows/row_kernels.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {
namespace {

constexpr std::int64_t elements_of_task = 16384;

// Of a tensor that is read and one that is written.
struct Rows {
  ValueId from, to;
  std::int64_t length;
  NeighbouringRows at(const Frame& frame, std::int64_t first, std::int64_t count) const {
    return {static_cast<const float*>(frame.read(from)) + first * length,
            static_cast<float*>(frame.write(to)) + first * length, count, length};
  }
};
// Computes `count` rows of node `n` from row `first` on.
using Compute = std::function<void(const Frame& frame, std::int64_t first, std::int64_t count)>;

void add_rows(Planning& planning, std::uint32_t n, std::int64_t length, Compute compute) {
  const Node& node = planning.node(n);
  const std::int64_t rows = planning.type(node.inputs[0]).shape.elements() / length,
                     rows_of_task = std::max<std::int64_t>(1, elements_of_task / length);
  Step step{.kernel = node.op.base(), .nodes = {n}, .reads = node.inputs, .writes = node.outputs};
  step.run = [=, compute = std::move(compute)](const Frame& frame) -> Status {
    frame.pool.run((rows + rows_of_task - 1) / rows_of_task, [&](std::int64_t task, int) {
      compute(frame, task * rows_of_task, std::min(rows_of_task, rows - task * rows_of_task));
    });
    return {};
  };
  planning.add(std::move(step));
}

std::int64_t last_size(const Planning& planning, ValueId v) {
  const Shape& shape = planning.type(v).shape;
  return shape.size(shape.rank() - 1);
}

bool take_norm(Planning& planning, std::uint32_t n, Operator op, bool centred) {
  namespace norm = extension::norm;
  const Node& node = planning.node(n);
  if (node.op != op) return false;
  const auto element = planning.graph[node.inputs[norm::epsilon]].constant.as<float>()[0];
  const Rows rows{node.inputs[norm::input], node.outputs[0], last_size(planning, node.outputs[0])};
  add_rows(planning, n, rows.length,
           [rows, element, kernel = norm_kernel(centred), weight = norm::weight(node), bias = norm::bias(node)](
               const Frame& frame, std::int64_t first, std::int64_t count) {
             const auto row = [&](ValueId v) {
               return v == no_value ? nullptr : static_cast<const float*>(frame.read(v));
             };
             kernel({rows.at(frame, first, count), element, row(weight), row(bias)});
           });
  return true;
}

bool has_softmax_kernel(const Graph& graph, const Node& node) {
  namespace softmax = extension::softmax;
  const TensorType& type = graph[node.inputs[softmax::input]].type;
  const auto axis = static_cast<int>(node.attrs.get<std::int64_t>(softmax::axis));
  for (int d = axis + 1; d < type.rank(); ++d)
    if (type.shape.size(d) != 1) return false;
  return node.inputs.size() <= softmax::mask ||
         graph[node.inputs[softmax::mask]].type.shape.size(axis) == type.shape.size(axis);
}

}  // namespace

bool has_row_kernel(const Graph& graph, const Node& node) {
  const TensorType& type = graph[node.inputs[0]].type;
  if (type.dtype != DType::f32 || type.shape.elements() == 0) return false;
  if (node.op == extension::op::softmax) return has_softmax_kernel(graph, node);
  return node.op == extension::op::layer_norm || node.op == extension::op::rms_norm ||
         node.op == extension::op::quantise_rows;
}

bool take_softmax(Planning& planning, std::uint32_t n) {
  namespace softmax = extension::softmax;
  const Node& node = planning.node(n);
  if (node.op != extension::op::softmax) return false;
  const auto axis = static_cast<int>(node.attrs.get<std::int64_t>(softmax::axis));
  const bool masked = node.inputs.size() > softmax::mask;
  const SoftmaxKernel kernel = softmax_kernel(node.attrs.get<bool>(softmax::safe), masked);
  const Shape& shape = planning.type(node.outputs[0]).shape;
  const Rows rows{node.inputs[softmax::input], node.outputs[0], shape.size(axis)};
  if (!masked) {
    add_rows(planning, n, rows.length, [=](const Frame& frame, std::int64_t first, std::int64_t count) {
      kernel({rows.at(frame, first, count), nullptr, 0});
    });
    return true;
  }
  const ValueId mask = node.inputs[softmax::mask];
  add_rows(planning, n, rows.length,
           [=, mask_rows = MaskRows(planning.type(mask).shape, shape, axis)](const Frame& frame, std::int64_t first_row,
                                                                             std::int64_t row_count) {
             const auto* shown = static_cast<const std::uint8_t*>(frame.read(mask));
             mask_rows.for_parts(first_row, row_count, [&](auto first, auto count, auto at, auto stride) {
               kernel({rows.at(frame, first, count), shown + at, stride});
             });
           });
  return true;
}

bool take_layer_norm(Planning& planning, std::uint32_t n) {
  return take_norm(planning, n, extension::op::layer_norm, true);
}
bool take_rms_norm(Planning& planning, std::uint32_t n) {
  return take_norm(planning, n, extension::op::rms_norm, false);
}

bool take_quantise_rows(Planning& planning, std::uint32_t n) {
  namespace quantise = extension::quantise_rows;
  const Node& node = planning.node(n);
  if (node.op != extension::op::quantise_rows) return false;
  const std::int64_t length = last_size(planning, node.inputs[quantise::input]);
  add_rows(
      planning, n, length,
      [length, kernel = quantise_rows_kernel(), from = node.inputs[quantise::input],
       quantised = node.outputs[quantise::quantised], scale = node.outputs[quantise::scale],
       zero = node.outputs[quantise::zero], least = static_cast<float>(node.attrs.get<double>(quantise::least_scale))](
          const Frame& frame, std::int64_t first, std::int64_t count) {
        kernel({static_cast<const float*>(frame.read(from)) + first * length, count, length, least,
                static_cast<std::int8_t*>(frame.write(quantised)) + first * length,
                static_cast<float*>(frame.write(scale)) + first, static_cast<float*>(frame.write(zero)) + first});
      });
  return true;
}

}  // namespace tosaic::cpu
