// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/unpacked_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/matrix/rows_kernel.h"
#include "cpu/matrix/tiles.h"
#include "cpu/window/window.h"
#include "ir/tosa_operators.h"
#include "simd/transpose.h"

namespace tosaic::cpu {
namespace {

// Up to so many rows sums along k cost less than panels: where many of them stay in registers, elsewhere, and, of
// floats of 32 bits, on processors with tiles.
constexpr std::int64_t few_rows_of_many = 96, few_rows = 48, few_rows_with_tiles = 16;
// Of k in a panel, so that it and what it meets stay in the second-level cache. Where weights lie [k][n], few rows take
// fewer: neighbouring panels of a row of weights come soon after each other.
constexpr std::int64_t block_of_k = 1024, short_block_of_k = 64;
constexpr std::int64_t rows_of_task = 256, cached_bytes_of_rows = 512 << 10;

// Bytes of weights from which they are not packed. In f32 packing saves some rows up to a fifth of their time, where
// that is worth more than the memory; floats of 16 bits cost less as they lie than widened.
std::size_t large(DType type, std::int64_t rows) {
  if (type != DType::f32) return 128 << 10;
  return rows <= 8 ? 1 << 20 : 4 << 20;
}

bool is_convolution(const Node& node) { return node.op == tosa::op::conv2d; }
// Of the result, in each batch.
std::int64_t rows_of(const Graph& graph, const Node& node) {
  const Shape& shape = graph[node.outputs[0]].type.shape;
  return is_convolution(node) ? shape.elements() / std::max<std::int64_t>(1, shape.size(3)) : shape.size(1);
}

struct Unpacked {
  const std::byte* weights = nullptr;  // [batch][n][k], or by_columns [batch][k][n]
  DType type = DType::f32;
  bool by_columns = false;
  bool is_only_reader = true;  // weights of several products are in some cache
  bool backwards = false;      // see by_rows
  std::int64_t batch = 1, n = 0, k = 0;
  std::vector<float> bias;  // padded to whole panels
  Epilogue epilogue;
  Sharing sharing;  // of one batch
  ValueId input = no_value;
  std::size_t scratch = 0;
  const GemmF32* kernel = &gemm_f32();
  const RowsKernel* few_rows_kernel = &rows_kernel();

  std::int64_t width() const { return 2 * kernel->lanes; }
  bool few() const {
    const bool of_many = few_rows_kernel->max_rows > 2;
    return !by_columns &&
           sharing.rows <= (of_many && type == DType::f32 && tile_instructions_allowed() ? few_rows_with_tiles
                            : of_many                                                    ? few_rows_of_many
                                                                                         : few_rows);
  }
  std::int64_t element() const { return static_cast<std::int64_t>(storage_size(type)); }
  std::int64_t k_at_once() const {
    return std::min(k, by_columns && sharing.rows <= kernel->max_rows ? short_block_of_k : block_of_k);
  }
  std::size_t panel_bytes() const { return align_up(static_cast<std::size_t>(k_at_once() * width()) * 4); }

  void plan(std::int64_t row_count, int threads) {
    sharing.rows = row_count;
    sharing.max_rows = few() ? few_rows_kernel->max_rows : kernel->max_rows;
    sharing.panels = (n + width() - 1) / width();
    sharing.row_tasks = (row_count + rows_of_task - 1) / rows_of_task;
    sharing.rows_per_task = (row_count + sharing.row_tasks - 1) / sharing.row_tasks;
    sharing.share_columns(wanted_tasks(threads), batch * sharing.row_tasks);
    if (few()) return;
    scratch = panels_bytes();
    if (!copies_rows()) return;
    const std::int64_t at_once = stay_near() ? k : k_at_once();
    scratch += align_up(static_cast<std::size_t>(sharing.rows_per_task * pitch_for(at_once)) * 4);
  }
  std::size_t panels_bytes() const { return panel_bytes() * (type == DType::f32 || by_columns ? 1 : 2); }

  struct Block {
    const float* data;
    std::int64_t stride;
  };
  // Panel p of `matrix` from k `first` on, `count` of them: where it lies, or in `memory`.
  Block block(const std::byte* matrix, std::int64_t p, std::int64_t first, std::int64_t count, int to_width,
              std::byte* memory) const {
    const std::int64_t column = p * width(), columns = std::min(width(), n - column);
    auto* to = reinterpret_cast<float*>(memory);
    if (by_columns) {
      const std::byte* from = matrix + (first * n + column) * element();
      if (type == DType::f32 && columns == to_width) return {reinterpret_cast<const float*>(from), n};
      for (std::int64_t i = 0; i < count; ++i, from += n * element()) {
        float* row = to + i * to_width;
        if (type == DType::f32)
          std::memcpy(row, from, static_cast<std::size_t>(columns) * 4);
        else
          few_rows_kernel->widen(type, from, columns, row);
        std::fill(row + columns, row + to_width, 0.0f);
      }
      return {to, to_width};
    }
    const std::byte* from = matrix + (column * k + first) * element();
    std::int64_t pitch = k;
    if (type != DType::f32) {
      auto* wide = reinterpret_cast<float*>(memory + panel_bytes());
      for (std::int64_t j = 0; j < columns; ++j)
        few_rows_kernel->widen(type, from + j * k * element(), count, wide + j * count);
      from = reinterpret_cast<const std::byte*>(wide);
      pitch = count;
    }
    simd::transpose_words(reinterpret_cast<const std::uint32_t*>(from), pitch, reinterpret_cast<std::uint32_t*>(to),
                          to_width, columns, count);
    if (columns < to_width)
      for (std::int64_t i = 0; i < count; ++i) std::fill(to + i * to_width + columns, to + (i + 1) * to_width, 0.0f);
    return {to, to_width};
  }

  // Where a block of the weights begins.
  struct Place {
    std::int64_t panel, first;  // the latter of k
  };
  // a and c: of the part's first row.
  void by_panels(const Sharing::Part& part, const float* a, const std::byte* matrix, float* c,
                 std::byte* memory) const {
    const std::int64_t step = k_at_once(), blocks = (k + step - 1) / step, panels = part.last_panel - part.first_panel;
    const auto place = [&](std::int64_t i) {
      return stay_near() ? Place{part.first_panel + i / blocks, i % blocks * step}
                         : Place{part.first_panel + i % panels, i / panels * step};
    };
    Rows rows{a, k, 0};
    for (std::int64_t i = 0; i < panels * blocks; ++i) {
      const auto [panel, first] = place(i);
      const std::int64_t count = std::min(step, k - first);
      if (copies_rows() && i == 0 && stay_near()) rows = copied(part.rows, a, 0, k, memory);
      if (copies_rows() && i % panels == 0 && !stay_near()) rows = copied(part.rows, a, first, count, memory);
      const Ahead ahead = i + 1 < panels * blocks ? raw(matrix, place(i + 1)) : Ahead();
      one_panel(part, panel, first, count, rows, matrix, c, memory, ahead);
    }
  }
  // Either rows of A stay in the second-level cache as a whole, and weights are read along their rows, or a block of
  // each.
  bool stay_near() const { return !by_columns && sharing.rows_per_task * k * 4 <= cached_bytes_of_rows; }
  // Rows of A from k `first` on.
  struct Rows {
    const float* data;
    std::int64_t pitch, first;
  };
  // Of rows of `count` elements of A: of all, or of a block, which is a multiple of 1024 where all of them are.
  std::int64_t pitch_for(std::int64_t count) const {
    return best_pitch(*kernel, count, sharing.panels_per_task * width());
  }
  bool copies_rows() const { return sharing.rows > kernel->max_rows && pitch_for(k) != k; }
  // In the scratch behind the panels.
  Rows copied(std::int64_t row_count, const float* a, std::int64_t first, std::int64_t count, std::byte* memory) const {
    auto* to = reinterpret_cast<float*>(memory + panels_bytes());
    for (std::int64_t row = 0; row < row_count; ++row)
      std::memcpy(to + row * pitch_for(count), a + row * k + first, static_cast<std::size_t>(count) * 4);
    return {to, pitch_for(count), first};
  }
  // A block of the weights as they lie, to be read ahead. By columns its rows are short.
  Ahead raw(const std::byte* matrix, const Place& at) const {
    if (by_columns) return {};
    const std::int64_t column = at.panel * width();
    return {matrix + (column * k + at.first) * element(), std::min(width(), n - column), k * element(), element()};
  }
  void one_panel(const Sharing::Part& part, std::int64_t p, std::int64_t first, std::int64_t count, const Rows& rows,
                 const std::byte* matrix, float* c, std::byte* memory, const Ahead& ahead) const {
    const std::int64_t column = p * width();
    const bool last = first + count == k;
    GemmF32Call call{};
    call.a_stride = rows.pitch;
    call.k = count;
    call.columns = static_cast<int>(std::min(width(), n - column));
    call.width = call.columns > kernel->lanes ? 2 * kernel->lanes : kernel->lanes;
    const Block b = block(matrix, p, first, count, call.width, memory);
    call.b = b.data;
    call.b_stride = b.stride;
    call.bias = first == 0 ? bias.data() + column : nullptr;
    call.lowest = last ? epilogue.lowest : -std::numeric_limits<float>::infinity();
    call.highest = last ? epilogue.highest : std::numeric_limits<float>::infinity();
    call.c_stride = n;
    sharing.for_groups(part.rows, [&](std::int64_t row, std::int64_t rows_here) {
      call.a = rows.data + row * rows.pitch + (first - rows.first);
      call.rows = static_cast<int>(rows_here);
      call.c = c + row * n + column;
      call.ahead = ahead.part(row, rows_here, part.rows);
      kernel->panel(call);
    });
  }

  void by_rows(const Sharing::Part& part, const float* a, const std::byte* matrix, float* c) const {
    RowsCall call{};
    call.a_stride = call.k = k;
    call.lowest = epilogue.lowest;
    call.highest = epilogue.highest;
    call.c_stride = n;
    constexpr std::int64_t at_once = RowsKernel::columns_at_once, bytes_ahead = 8192;
    if (is_only_reader) call.ahead = part.rows == 1 ? bytes_ahead : at_once * k * element();
    // Of several readers in a row (the steps of a recurrent layer) every second one reads backwards: it begins with
    // what the one before it has left in the cache.
    const std::int64_t begin = part.first_panel * width(), end = std::min(n, part.last_panel * width());
    const bool pairs = part.rows == 1 && call.ahead == 0 && (end - begin) % (2 * at_once) == 0;
    const std::int64_t step = pairs ? 2 * at_once : at_once, blocks = (end - begin + step - 1) / step;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t column = begin + (backwards ? blocks - 1 - i : i) * step;
      call.weight = matrix + column * k * element();
      call.columns = static_cast<int>(std::min(step, end - column));
      call.bias = bias.data() + column;
      sharing.for_groups(part.rows, [&](std::int64_t row, std::int64_t count) {
        call.rows = static_cast<int>(count);
        call.a = a + row * k;
        call.c = c + row * n + column;
        few_rows_kernel->product(type, call);
      });
    }
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const std::int64_t at = task / sharing.tasks();
    const auto part = sharing.part(task % sharing.tasks());
    const std::int64_t row = at * sharing.rows + part.first_row;
    const auto* a = static_cast<const float*>(frame.read(input)) + row * k;
    float* c = static_cast<float*>(frame.write(epilogue.output)) + row * n;
    const std::byte* matrix = weights + at * n * k * element();
    few() ? by_rows(part, a, matrix, c) : by_panels(part, a, matrix, c, memory);
  }
};

}  // namespace

bool reads_unpacked(const Graph& graph, const Node& node) {
  const bool convolution = is_convolution(node);
  if (!convolution && node.op != tosa::op::matmul) return false;
  const Value& weight = graph[node.inputs[1]];
  const auto takes = [](DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; };
  if (!weight.is_constant() || !takes(weight.type.dtype)) return false;
  if (weight.constant.size() < large(weight.type.dtype, rows_of(graph, node))) return false;
  if (graph[node.inputs[0]].is_constant() || !takes(graph[node.inputs[0]].type.dtype)) return false;
  return !convolution || (graph[node.inputs[2]].is_constant() && window_of(graph, node).is_matrix());
}

bool take_unpacked(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!reads_unpacked(planning.graph, node)) return false;
  const Value& weight = planning.graph[node.inputs[1]];
  const Shape& shape = weight.type.shape;
  auto product = std::make_shared<Unpacked>();
  product->weights = weight.constant.data();
  product->type = weight.type.dtype;
  product->by_columns = !is_convolution(node);
  const auto& readers = planning.users[node.inputs[1]];
  product->is_only_reader = readers.size() == 1;
  product->backwards = (std::find(readers.begin(), readers.end(), n) - readers.begin()) % 2 == 1;
  product->input = node.inputs[0];
  product->batch = product->by_columns ? shape.size(0) : 1;
  product->n = shape.size(product->by_columns ? 2 : 0);
  product->k = shape.elements() / (product->n * product->batch);
  product->bias.assign(align_up(static_cast<std::size_t>(product->n), static_cast<std::size_t>(product->width())),
                       0.0f);
  if (!product->by_columns) {
    const std::span<const float> given = planning.graph[node.inputs[2]].constant.as<float>();
    for (std::size_t j = 0; j < static_cast<std::size_t>(product->n); ++j)
      product->bias[j] = given[given.size() == 1 ? 0 : j];
  }
  // No chain: it wants whole rows, and every task would make all panels anew.
  product->epilogue = find_epilogue(planning, n, false, false);
  product->plan(rows_of(planning.graph, node), planning.threads);
  Step step{.kernel = "unpacked", .nodes = {n}, .reads = {product->input}};
  product->epilogue.describe(step);
  step.scratch_per_thread = product->scratch;
  step.run = [product = std::shared_ptr<const Unpacked>(std::move(product))](const Frame& frame) -> Status {
    frame.pool.run(product->batch * product->sharing.tasks(), [&](std::int64_t task, int thread) {
      product->run_task(frame, task, frame.scratch + static_cast<std::size_t>(thread) * product->scratch);
    });
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
