// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/matmul.h"

#include <cstring>
#include <optional>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/few_rows.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/matmul_i16.h"
#include "ir/tosa_operators.h"

namespace tosaic::cpu {
namespace {

struct MatmulF32 {
  const GemmF32* kernel = &gemm_f32();
  static constexpr std::string_view name = "matmul_f32";
  static constexpr std::int64_t element_bytes = 4;
  static constexpr bool rescales = true;
  PanelsF32 panels;
  std::vector<float> zero_bias;
  Epilogue epilogue;
  bool turned = false, one_by_one = false;  // one_by_one: a panel is packed when its only reader comes to it
  bool few = false;                         // rows, see few_rows.h
  std::int64_t rows = 0;

  bool prepare(const Planning& planning, const Node& node, const MatmulShape& s) {
    // Few rows meet a panel once: packing it would be most of the work.
    turned = s.turned;
    rows = s.h;
    const bool constant = planning.constant(node.inputs[1]);
    few = !constant && takes_few_rows(s);
    panels.packed = !few && (turned || s.h > kernel->max_rows || s.w % kernel->lanes != 0 || constant);
    panels.k = s.c;
    panels.n = s.w;
    panels.lanes = kernel->lanes;
    zero_bias.assign(static_cast<std::size_t>(panels.padded()), 0.0f);
    panels.bias = zero_bias.data();
    return true;
  }
  std::int64_t panel_count() const { return panels.count(); }
  void share(const Planning& planning, const Sharing& sharing, ValueId b) {
    one_by_one = panels.packed && sharing.row_tasks == 1 && !planning.constant(b);
  }
  bool packs() const { return panels.packed && !one_by_one; }
  std::size_t packed_bytes() const {
    return packs() ? align_up(static_cast<std::size_t>(panels.padded() * panels.k) * 4) : 0;
  }
  std::int64_t packing_tasks() const { return panels.count(); }
  void pack(const void* b, std::int64_t p, std::byte* into) const {
    pack_panel(static_cast<const float*>(b), p, reinterpret_cast<float*>(into) + p * panels.panel_width() * panels.k);
  }
  void pack_panel(const float* b, std::int64_t p, float* into) const {
    turned ? pack_panel_of_rows(panels, p, b, into) : pack_columns(panels, p, b, into);
  }
  std::size_t row_scratch(std::int64_t) const {
    return one_by_one ? align_up(static_cast<std::size_t>(panels.panel_width() * panels.k) * 4) : 0;
  }
  std::int64_t row_bytes() const { return panels.k * 4; }
  // b: as it is, or packed.
  void run(const Sharing& sharing, const Sharing::Part& part, const void* a, const std::byte* b, std::byte* c,
           std::byte* scratch) const {
    PanelsF32 at = panels;
    const auto product = [&](const Sharing::Part& of) {
      multiply(*kernel, sharing, of, {static_cast<const float*>(a) + part.first_row * panels.k, panels.k}, at,
               epilogue.lowest, epilogue.highest, reinterpret_cast<float*>(c));
    };
    at.data = reinterpret_cast<const float*>(b);
    if (few) {
      const FewRows call{part,
                         rows,
                         panels,
                         static_cast<const float*>(a) + part.first_row * panels.k,
                         at.data,
                         epilogue.lowest,
                         epilogue.highest,
                         reinterpret_cast<float*>(c)};
      return turned ? multiply_turned(call) : multiply_straight(call);
    }
    if (!one_by_one) return product(part);
    auto* one = reinterpret_cast<float*>(scratch);
    for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) {
      pack_panel(reinterpret_cast<const float*>(b), p, one);
      at.data = one - p * panels.panel_width() * panels.k;  // panel(p) is `one`
      product({part.first_row, part.rows, p, p + 1});
    }
  }
};

struct MatmulI8 {
  const GemmI8* kernel = nullptr;
  static constexpr std::string_view name = "matmul_i8";
  static constexpr std::int64_t element_bytes = 1;
  static constexpr bool rescales = true;
  PanelsI8 panels;
  Epilogue epilogue;
  RescaleColumns scales;
  std::int32_t a_zp = 0, b_zp = 0;
  bool turned = false;

  void share(const Planning&, const Sharing&, ValueId) {}
  bool packs() const { return true; }
  bool prepare(const Planning& planning, const Node& node, const MatmulShape& s) {
    if (!planning.constant(node.inputs[2]) || !planning.constant(node.inputs[3])) return false;
    a_zp = only_scalar(planning.graph, node.inputs[2]);
    b_zp = only_scalar(planning.graph, node.inputs[3]);
    kernel = &gemm_i8(s.h, s.c);
    panels = panels_i8(*kernel, s.w, s.c);
    turned = s.turned;
    if (epilogue.rescaled) scales = rescale_columns(epilogue.multiplier, epilogue.shift, s.w, kernel->lanes);
    return true;
  }
  std::int64_t panel_count() const { return panels.count(); }
  std::size_t packed_bytes() const {  // the panels, then the columns' terms
    return align_up(panels.packed_bytes()) + align_up(static_cast<std::size_t>(panels.padded()) * 4);
  }
  std::int64_t packing_tasks() const { return 1; }
  void pack(const void* b, std::int64_t, std::byte* into) const {
    const auto* values = static_cast<const std::int8_t*>(b);
    const std::int64_t column_stride = turned ? panels.k : 1, k_stride = turned ? 1 : panels.n;
    pack_panels(panels, values, column_stride, k_stride, into);
    column_terms(panels, column_sums(panels, values, column_stride, k_stride), nullptr, 0, a_zp, b_zp,
                 reinterpret_cast<std::int32_t*>(into + align_up(panels.packed_bytes())));
  }
  std::int64_t row_bytes() const { return panels.row_bytes(*kernel); }
  std::size_t converted_bytes(std::int64_t rows) const { return align_up(rows_i8_bytes(*kernel, panels, rows)); }
  std::size_t row_scratch(std::int64_t rows) const {
    return converted_bytes(rows) + align_up(static_cast<std::size_t>(rows) * 4);
  }
  void run(const Sharing&, const Sharing::Part& part, const void* a, const std::byte* packed, std::byte* c,
           std::byte* scratch) const {
    const RowsI8 rows =
        rows_i8(*kernel, panels, static_cast<const std::int8_t*>(a) + part.first_row * panels.k, part.rows, scratch);
    auto* terms = reinterpret_cast<std::int32_t*>(scratch + converted_bytes(part.rows));
    if (b_zp != 0) row_terms(*kernel, rows, part.rows, panels.k, b_zp, terms);
    PanelsI8 at = panels;
    at.data = packed;
    at.column_term = reinterpret_cast<const std::int32_t*>(packed + align_up(panels.packed_bytes()));
    multiply(*kernel, part, rows, b_zp != 0 ? terms : nullptr, at,
             {epilogue.rescaled, &scales, epilogue.output_zp, epilogue.lowest_quantised, epilogue.highest_quantised},
             c);
  }
};

template <class Kind>
struct Matmul : Kind {
  MatmulShape shape;
  Sharing sharing;
  ValueId a = no_value, b = no_value;
  std::vector<std::byte> constant_b;
  std::size_t rows_bytes = 0, tile_bytes = 0, scratch = 0;

  const std::byte* packed(const Frame& frame, std::int64_t n) const {
    if (!this->packs()) return static_cast<const std::byte*>(frame.read(b)) + n * shape.c * shape.w * 4;
    return (constant_b.empty() ? frame.shared : constant_b.data()) + static_cast<std::size_t>(n) * this->packed_bytes();
  }
  void pack_all(const void* from, std::byte* to, ThreadPool* pool) const {
    const std::int64_t per_batch = this->packing_tasks();
    auto one = [&](std::int64_t task, int) {
      const std::int64_t n = task / per_batch;
      const auto* matrix = static_cast<const std::byte*>(from) + n * shape.c * shape.w * Kind::element_bytes;
      this->pack(matrix, task % per_batch, to + static_cast<std::size_t>(n) * this->packed_bytes());
    };
    if (pool) return pool->run(shape.batch * per_batch, one);
    for (std::int64_t task = 0; task < shape.batch * per_batch; ++task) one(task, 0);
  }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const std::int64_t n = task / sharing.tasks();
    const auto part = sharing.part(task % sharing.tasks());
    const auto* from = static_cast<const std::byte*>(frame.read(a)) + n * shape.h * shape.c * Kind::element_bytes;
    const std::int64_t first = (n * shape.h + part.first_row) * shape.w;
    std::byte* tile = memory + rows_bytes;
    this->run(sharing, part, from, packed(frame, n), this->epilogue.sums(frame, first, tile), memory);
    this->epilogue.finish(frame, first, first + part.rows * shape.w, tile, tile + tile_bytes);
  }
};

template <class Kind>
bool take(Planning& planning, std::uint32_t n, MatmulShape shape) {
  const Node& node = planning.node(n);
  const auto turned = transposed_b(planning, n);
  shape.turned = turned.has_value();
  auto m = std::make_shared<Matmul<Kind>>();
  m->shape = shape;
  m->a = node.inputs[0];
  m->b = turned ? planning.node(*turned).inputs[0] : node.inputs[1];
  m->epilogue = find_epilogue(planning, n, Kind::rescales);
  if (!m->prepare(planning, node, shape)) return false;
  const bool chain = m->epilogue.chain != nullptr;
  // Batches share the threads before rows do.
  const int per_batch = shape.batch >= 4 * planning.threads ? 1 : planning.threads;
  m->sharing = Sharing::plan(shape.h, m->kernel->max_rows, m->panel_count(),
                             m->row_bytes() + (chain ? shape.w * m->epilogue.element : 0), per_batch, chain);
  m->share(planning, m->sharing, m->b);
  m->rows_bytes = m->row_scratch(m->sharing.rows_per_task);
  m->tile_bytes = m->epilogue.tile_bytes(m->sharing.rows_per_task * shape.w);
  m->scratch = m->rows_bytes + m->tile_bytes + m->epilogue.chain_bytes();
  Step step{.kernel = Kind::name, .nodes = {n}, .reads = {m->a, m->b}};
  if (turned) step.nodes.insert(step.nodes.begin(), *turned);
  m->epilogue.describe(step);
  step.scratch_per_thread = m->scratch;
  const std::size_t all = static_cast<std::size_t>(shape.batch) * m->packed_bytes();
  if (planning.constant(m->b)) {
    m->constant_b.resize(all);
    m->pack_all(planning.graph[m->b].constant.data(), m->constant_b.data(), nullptr);
  } else {
    step.shared_scratch = all;
  }
  step.run = [m](const Frame& frame) -> Status {
    if (m->constant_b.empty() && m->packs()) m->pack_all(frame.read(m->b), frame.shared, &frame.pool);
    frame.pool.run(m->shape.batch * m->sharing.tasks(), [&](std::int64_t task, int thread) {
      m->run_task(frame, task, frame.scratch + static_cast<std::size_t>(thread) * m->scratch);
    });
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace

std::optional<std::uint32_t> transposed_b(const Planning& planning, std::uint32_t n) {
  const ValueId b = planning.node(n).inputs[1];
  const std::int32_t producer = planning.producer[b];
  if (producer < 0 || planning.only_user(b) != n) return std::nullopt;
  const auto t = static_cast<std::uint32_t>(producer);
  const Node& node = planning.node(t);
  if (planning.taken[t] || node.op != tosa::op::transpose || planning.constant(node.inputs[0])) return std::nullopt;
  if (node.attrs.get<std::vector<std::int64_t>>("perms") != std::vector<std::int64_t>{0, 2, 1}) return std::nullopt;
  return t;
}

bool take_matmul(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::matmul) return false;
  const TensorType &a = planning.type(node.inputs[0]), &b = planning.type(node.inputs[1]);
  const MatmulShape shape{a.shape.size(0), a.shape.size(1), a.shape.size(2), b.shape.size(2)};
  if (a.dtype == DType::f32) return take<MatmulF32>(planning, n, shape);
  if (a.dtype == DType::i8) return take<MatmulI8>(planning, n, shape);
  if (a.dtype == DType::i16) return take<MatmulI16>(planning, n, shape);
  return false;
}

}  // namespace tosaic::cpu
