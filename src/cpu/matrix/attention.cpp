// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/attention.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "cpu/matrix/gemm_f32.h"
#include "cpu/matrix/matmul.h"
#include "cpu/rows/mask_rows.h"
#include "cpu/rows/row_kernels.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {
namespace {

namespace op = extension::attention;

constexpr std::int64_t bytes_of_block = 64 << 10;  // of scores
constexpr std::int64_t least_groups = 4;  // of rows that meet a panel together: panels come from a farther cache
// Fewer rows of a query read keys and values as they lie: packing these would be most of the work.
constexpr std::int64_t least_rows = 16;

// The second factor of a product, [k][n]; `turned`: it lies as [n][k].
struct Factor {
  PanelsF32 panels;
  bool turned = false;
  std::vector<float> zeros;

  Factor(std::int64_t k, std::int64_t n, bool is_turned) : turned(is_turned) {
    panels.k = k;
    panels.n = n;
    panels.lanes = gemm_f32().lanes;
    zeros.assign(static_cast<std::size_t>(panels.padded()), 0.0f);
  }
  std::int64_t elements_of_panel() const { return panels.panel_width() * panels.k; }
  std::size_t packed_bytes(bool all) const {
    return align_up(static_cast<std::size_t>((all ? panels.count() : 1) * elements_of_panel()) * sizeof(float));
  }
  void pack(std::int64_t p, const float* from, float* into) const {
    turned ? pack_panel_of_rows(panels, p, from, into) : pack_columns(panels, p, from, into);
  }
  void pack_all(const float* from, float* into) const {
    for (std::int64_t p = 0; p < panels.count(); ++p) pack(p, from, into + p * elements_of_panel());
  }
  // c = a x this, of which all panels lie in `packed`, or, without `from`, each is put there in turn.
  void multiply(const float* a, std::int64_t rows, float* packed, const float* from, float* c) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    Sharing sharing;
    sharing.max_rows = gemm_f32().max_rows;
    PanelsF32 at = panels;
    at.bias = zeros.data();
    const auto product = [&](std::int64_t first, std::int64_t last) {
      cpu::multiply(gemm_f32(), sharing, {0, rows, first, last}, {a, panels.k}, at, -infinity, infinity, c);
    };
    at.data = packed;
    if (!from) return product(0, panels.count());
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      pack(p, from, packed);
      at.data = packed - p * elements_of_panel();  // panel(p) is what was packed
      product(p, p + 1);
    }
  }
};

struct Attention {
  std::int64_t batch, rows;  // rows of a query
  Factor keys, values;
  std::int64_t rows_of_block, rows_of_task, tasks_of_batch;
  SoftmaxKernel softmax;
  ValueId query = no_value, key = no_value, value = no_value, bias = no_value, mask = no_value, output = no_value;
  std::optional<MaskRows> bias_rows, mask_rows;

  bool packs_all() const { return rows_of_task > rows_of_block; }
  std::size_t key_bytes() const { return keys.packed_bytes(packs_all()); }
  std::size_t value_bytes() const { return values.packed_bytes(packs_all()); }
  std::size_t scratch() const {
    return key_bytes() + value_bytes() +
           align_up(static_cast<std::size_t>(rows_of_block * keys.panels.n) * sizeof(float));
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const std::int64_t n = task / tasks_of_batch, first = task % tasks_of_batch * rows_of_task,
                       end = std::min(rows, first + rows_of_task);
    const std::int64_t depth = keys.panels.k, count = keys.panels.n, width = values.panels.n;
    const float *q = floats(frame, query) + n * rows * depth, *k = floats(frame, key) + n * depth * count,
                *v = floats(frame, value) + n * count * width;
    float* out = static_cast<float*>(frame.write(output)) + n * rows * width;
    auto* packed_keys = reinterpret_cast<float*>(memory);
    auto* packed_values = reinterpret_cast<float*>(memory + key_bytes());
    auto* scores = reinterpret_cast<float*>(memory + key_bytes() + value_bytes());
    if (packs_all()) {
      keys.pack_all(k, packed_keys);
      values.pack_all(v, packed_values);
      k = v = nullptr;
    }
    for (std::int64_t row = first; row < end; row += rows_of_block) {
      const std::int64_t here = std::min(rows_of_block, end - row);
      keys.multiply(q + row * depth, here, packed_keys, k, scores);
      make_weights(frame, n * rows + row, here, scores);
      values.multiply(scores, here, packed_values, v, out + row * width);
    }
  }

  // Of the scores of rows from row `first` of all batches on.
  void make_weights(const Frame& frame, std::int64_t first, std::int64_t here, float* scores) const {
    const std::int64_t length = keys.panels.n;
    if (bias_rows)
      bias_rows->for_parts(first, here, [&](auto row, auto row_count, auto at, auto stride) {
        float* part = scores + (row - first) * length;
        for (std::int64_t i = 0; i < row_count; ++i)
          std::transform(part + i * length, part + (i + 1) * length, floats(frame, bias) + at + i * stride,
                         part + i * length, std::plus<>());
      });
    if (!mask_rows) return softmax({{scores, scores, here, length}, nullptr, 0});
    const auto* shown = static_cast<const std::uint8_t*>(frame.read(mask));
    mask_rows->for_parts(first, here, [&](auto row, auto row_count, auto at, auto stride) {
      float* part = scores + (row - first) * length;
      softmax({{part, part, row_count, length}, shown + at, stride});
    });
  }

 private:
  static const float* floats(const Frame& frame, ValueId v) { return static_cast<const float*>(frame.read(v)); }
};

}  // namespace

bool has_attention_kernel(const Graph& graph, const Node& node) {
  if (node.op != extension::op::attention) return false;
  const TensorType& query = graph[node.inputs[op::query]].type;
  const std::int64_t count = graph[node.inputs[op::key]].type.shape.size(2);
  // Constants are packed once, as operands of a product.
  if (graph[node.inputs[op::key]].is_constant() || graph[node.inputs[op::value]].is_constant()) return false;
  if (query.dtype != DType::f32 || query.shape.elements() == 0 || query.shape.size(1) < least_rows) return false;
  return std::ranges::all_of(std::array{op::bias(node), op::mask(node)}, [&](ValueId v) {
    if (v == no_value) return true;
    const Shape& shape = graph[v].type.shape;
    return shape.size(shape.rank() - 1) == count;
  });
}

namespace {

// Into how many parts, of so many rows at least, a query's rows are cut, so that the threads are done soonest: each
// part packs the key and the value for itself.
std::int64_t parts_of_rows(std::int64_t batch, std::int64_t rows, std::int64_t least, std::int64_t threads) {
  constexpr std::int64_t packing = 24;  // takes as long as so many rows
  const auto time = [&](std::int64_t parts) {
    return (batch * parts + threads - 1) / threads * ((rows + parts - 1) / parts + packing);
  };
  std::int64_t best = 1;
  for (std::int64_t parts = 2; parts * least <= rows && parts <= 4 * threads; ++parts)
    if (time(parts) < time(best)) best = parts;
  return best;
}

}  // namespace

bool take_attention(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != extension::op::attention) return false;
  const Shape &query = planning.type(node.inputs[op::query]).shape, &key = planning.type(node.inputs[op::key]).shape,
              &value = planning.type(node.inputs[op::value]).shape;
  const std::int64_t batch = query.size(0), rows = query.size(1), count = key.size(2);
  const auto turned = transposed_b(planning, n);
  const std::int64_t group = gemm_f32().max_rows;
  const std::int64_t in_cache = bytes_of_block / (count * static_cast<std::int64_t>(sizeof(float)) * group),
                     block = std::max(in_cache, least_groups) * group;
  const std::int64_t parts = parts_of_rows(batch, rows, 2 * group, planning.threads),
                     rows_of_task = (rows + parts - 1) / parts, blocks = (rows_of_task + block - 1) / block,
                     even = (rows_of_task + blocks - 1) / blocks, whole = (even + group - 1) / group * group;
  auto made = std::make_shared<Attention>(
      Attention{.batch = batch,
                .rows = rows,
                .keys = Factor(query.size(2), count, turned.has_value()),
                .values = Factor(count, value.size(2), false),
                .rows_of_block = std::min(whole, rows_of_task),
                .rows_of_task = rows_of_task,
                .tasks_of_batch = (rows + rows_of_task - 1) / rows_of_task,
                .softmax = softmax_kernel(node.attrs.get<bool>(extension::softmax::safe), op::mask(node) != no_value)});
  made->query = node.inputs[op::query];
  made->key = turned ? planning.node(*turned).inputs[0] : node.inputs[op::key];
  made->value = node.inputs[op::value];
  made->bias = op::bias(node);
  made->mask = op::mask(node);
  made->output = node.outputs[0];
  const Shape scores(node.attrs.get<std::vector<std::int64_t>>(op::scores));
  const auto rows_in = [&](ValueId v) -> std::optional<MaskRows> {
    if (v == no_value) return std::nullopt;
    return MaskRows(planning.type(v).shape, scores, scores.rank() - 1);
  };
  made->bias_rows = rows_in(made->bias);
  made->mask_rows = rows_in(made->mask);
  Step step{
      .kernel = node.op.base(), .nodes = {n}, .reads = {made->query, made->key, made->value}, .writes = {made->output}};
  if (turned) step.nodes.insert(step.nodes.begin(), *turned);
  for (ValueId v : {made->bias, made->mask})
    if (v != no_value) step.reads.push_back(v);
  step.scratch_per_thread = made->scratch();
  step.run = [made = std::shared_ptr<const Attention>(std::move(made))](const Frame& frame) -> Status {
    frame.pool.run(made->batch * made->tasks_of_batch, [&](std::int64_t task, int thread) {
      made->run_task(frame, task, frame.scratch + static_cast<std::size_t>(thread) * made->scratch());
    });
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
