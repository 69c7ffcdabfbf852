// SPDX-License-Identifier: Apache-2.0
#include "shaders/kernels.h"

#include <algorithm>

#include "ops/definitions/extension.h"
#include "shaders/elements.h"
#include "shaders/product.h"
#include "shaders/quantised_weights.h"
#include "shaders/strided_operand.h"

namespace tosaic::shaders {
namespace {

// Tiers of devices with memory for work groups.
using vulkan_program::tiers_of;
constexpr TierSet sharing = tiers_of(TierId::coopmat_int8, TierId::coopmat, TierId::dot, TierId::base);

// The kernels of one operator stand together, the best first.
constexpr KernelRow rows[] = {
    {tosa::op::argmax, make_argmax},
    {tosa::op::avg_pool2d, make_shared_pool, sharing, has_one_window},
    {tosa::op::avg_pool2d, make_pool},
    {tosa::op::conv2d, make_subgroup_convolution, tiers_of(TierId::cpu), takes_subgroup_convolution},
    {tosa::op::conv2d, make_row_product, sharing, has_few_rows},
    {tosa::op::conv2d, make_matrix_convolution, tiers_of_matrices, takes_matrix_convolution, false, true},
    {tosa::op::conv2d, make_matrix_convolution, tiers_of_int8_matrices, takes_int8_matrix_convolution, false, true},
    {tosa::op::conv2d, make_dot_convolution, tiers_of_dots, takes_dot_convolution, false, true},
    {tosa::op::conv2d, make_tiled_convolution, sharing, has_tiles, false, true},
    {tosa::op::conv2d, make_convolution},
    {tosa::op::conv3d, make_matrix_convolution, tiers_of_matrices, takes_matrix_convolution},
    {tosa::op::conv3d, make_matrix_convolution, tiers_of_int8_matrices, takes_int8_matrix_convolution},
    {tosa::op::conv3d, make_dot_convolution, tiers_of_dots, takes_dot_convolution},
    {tosa::op::conv3d, make_tiled_convolution, sharing, has_tiles},
    {tosa::op::conv3d, make_convolution},
    {tosa::op::depthwise_conv2d, make_quad_depthwise, sharing, has_quad_taps},
    {tosa::op::depthwise_conv2d, make_block_depthwise, tiers_of(TierId::cpu), takes_block_depthwise},
    {tosa::op::depthwise_conv2d, make_depthwise},
    {tosa::op::fft2d, make_fourier},
    {tosa::op::gather, make_gather},
    {tosa::op::matmul, make_int8_row_gemm, sharing, takes_few_int8_rows},
    {tosa::op::matmul, make_tiled_int8_gemm, sharing, takes_many_int8_rows},
    {tosa::op::matmul, make_subgroup_int8_gemm, tiers_of(TierId::cpu), takes_many_int8_rows},
    {tosa::op::matmul, make_int8_gemm, vulkan_program::all_tiers, takes_int8_gemm},
    {tosa::op::matmul, make_matrix_matmul, tiers_of_matrices, takes_matrix_matmul, true},
    {tosa::op::matmul, make_matrix_matmul, tiers_of_int8_matrices, takes_int8_matrix_matmul, true},
    {tosa::op::matmul, make_tiled_matmul, sharing, has_narrow_sums, true},
    {tosa::op::matmul, make_subgroup_matmul, tiers_of(TierId::cpu), takes_subgroup_matmul},
    {tosa::op::matmul, make_matmul},
    {tosa::op::max_pool2d, make_pool},
    {tosa::op::reduce_all, make_reduction},
    {tosa::op::reduce_any, make_reduction},
    {tosa::op::reduce_max, make_shared_reduction, sharing, has_long_lines},
    {tosa::op::reduce_max, make_reduction},
    {tosa::op::reduce_min, make_shared_reduction, sharing, has_long_lines},
    {tosa::op::reduce_min, make_reduction},
    {tosa::op::reduce_product, make_shared_reduction, sharing, has_long_lines},
    {tosa::op::reduce_product, make_reduction},
    {tosa::op::reduce_sum, make_shared_reduction, sharing, has_long_lines},
    {tosa::op::reduce_sum, make_reduction},
    {tosa::op::resize, make_resize},
    {tosa::op::rfft2d, make_fourier},
    {extension::op::grouped_conv2d, make_matrix_convolution, tiers_of_matrices, takes_matrix_groups},
    {extension::op::grouped_conv2d, make_matrix_convolution, tiers_of_int8_matrices, takes_int8_matrix_groups},
    {extension::op::grouped_conv2d, make_dot_convolution, tiers_of_dots, takes_wide_dot_groups},
    {extension::op::grouped_conv2d, make_tiled_convolution, sharing, takes_wide_groups},
    {extension::op::grouped_conv2d, make_dot_groups, tiers_of_dots, takes_dot_groups},
    {extension::op::grouped_conv2d, make_quad_groups, vulkan_program::all_tiers, takes_quad_groups},
    {extension::op::grouped_conv2d, make_convolution},
    {extension::op::scaled_gather, make_quantised_gather},
    {extension::op::scaled_product, make_int8_row_gemm, sharing, takes_few_int8_rows},
    {extension::op::scaled_product, make_tiled_int8_gemm, sharing, takes_many_int8_rows},
    {extension::op::scaled_product, make_subgroup_int8_gemm, tiers_of(TierId::cpu), takes_many_int8_rows},
    {extension::op::scaled_product, make_int8_gemm, vulkan_program::all_tiers, takes_int8_gemm},
    {extension::op::scaled_product, make_quantised_row_product, sharing, takes_few_quantised_rows},
    {extension::op::scaled_product, make_quantised_tiled_product, sharing, takes_quantised_product},
    {extension::op::scaled_product, make_quantised_product},
    {tosa::op::scatter, make_scatter},
    {tosa::op::transpose_conv2d, make_transpose_convolution},
};

}  // namespace

std::span<const KernelRow> kernel_rows() { return rows; }

std::span<const KernelRow> kernel_rows(const Node& node) {
  const auto is_its = [&](const KernelRow& row) { return row.op == node.op; };
  const auto* first = std::ranges::find_if(rows, is_its);
  return {first, std::find_if_not(first, std::end(rows), is_its)};
}

bool has_same_kernels(const Work& a, const Work& b) {
  if (reads_texels(a.tier) != reads_texels(b.tier) || packs_f16(a) != packs_f16(b)) return false;
  const auto by_int8 = [&](const Node& node) { return takes_int8_gemm(tosa::View(a.graph, node)); };
  if (tiers_of_dots.has(a.tier) != tiers_of_dots.has(b.tier) && std::ranges::any_of(a.graph.nodes, by_int8))
    return false;
  const auto differs = [&](const Node& node, const KernelRow& row) {
    if (row.tiers.has(a.tier) == row.tiers.has(b.tier)) return false;
    try {
      return !row.takes || row.takes(tosa::View(a.graph, node));
    } catch (const UnknownSize&) { return false; }
  };
  return std::ranges::none_of(a.graph.nodes, [&](const Node& node) {
    return std::ranges::any_of(kernel_rows(node), [&](const KernelRow& row) { return differs(node, row); });
  });
}

Value Finish::finished(Kernel& kernel, Value index, Value element) const {
  if (element.kind == Kind::real && !kernel.work().in_half_precision)
    element = rounded(element, kernel.type(root_).dtype);
  const Kernel::MoreParams more(kernel);
  return epilogue_ ? evaluate(kernel, *epilogue_, index, {{root_, element}}) : element;
}

void Finish::store(Kernel& kernel, Value index, Value element) const {
  const Value of_all = row_apart_ ? index + kernel.param(row_apart_->first) : index;
  store_finished(kernel, index, finished(kernel, of_all, element));
}
void Finish::store_finished(Kernel& kernel, Value index, Value finished) const {
  kernel.store(kernel.output(output()), index, finished);
}

Quad Finish::finished_quad(Kernel& kernel, Value quad, const Quad& elements) const {
  const Kernel::MoreParams more(kernel);
  Quad all = elements;
  if (epilogue_ && walks_by_quads(kernel.graph(), *epilogue_)) {
    if (!kernel.work().in_half_precision)
      for (Value& e : all)
        if (e.kind == Kind::real) e = rounded(e, kernel.type(root_).dtype);
    return evaluate_quad(kernel, *epilogue_, quad * 4, {{root_, all}});
  }
  kernel.repeat(4, [&](int q) {
    Value& e = all[static_cast<std::size_t>(q)];
    e = finished(kernel, quad * 4 + q, e);
  });
  return all;
}

void Finish::store_finished(Kernel& kernel, Value quad, const Quad& all) const {
  if (storage_size(kernel.type(output()).dtype) <= 4)
    kernel.store_quad(kernel.output(output(), true), quad, all);
  else
    for (int q = 0; q < 4; ++q) kernel.store(kernel.output(output()), quad * 4 + q, all[static_cast<std::size_t>(q)]);
}

bool Finish::has_quads(const Graph& graph, const Dim& row) const {
  if (!is_multiple(row, 4)) return false;
  return epilogue_ ? shaders::has_quads(graph, *epilogue_) : shaders::has_quads(graph[root_].type.dtype);
}

void Finish::store_from(Kernel& kernel, Value index, const Quad& elements) const {
  const Kernel::MoreParams more(kernel);
  Quad four = elements;
  for (Value& e : four)
    if (e.kind == Kind::real) e = rounded(e, kernel.type(root_).dtype);
  if (epilogue_) four = evaluate_quad(kernel, *epilogue_, index, {{root_, four}});
  kernel.store_quad(kernel.output(output(), true), shift_right_unsigned(index, kernel.integer(2)), four);
}

void Finish::store_lanes(Kernel& kernel, Value index, const std::vector<Value>& elements) const {
  if (elements.size() == 1) return store(kernel, index, elements[0]);
  store_from(kernel, index, {elements[0], elements[1], elements[2], elements[3]});
}

std::vector<Value> load_lanes(Kernel& kernel, ValueId v, Value index, int lanes) {
  if (lanes == 1) return {kernel.load(kernel.input(v), index)};
  const Quad quad = kernel.load_quad(kernel.input(v, true), shift_right_unsigned(index, kernel.integer(2)));
  return {quad.begin(), quad.end()};
}

MadeList one(Kernel& kernel) {
  if (!kernel.fits()) return std::nullopt;
  std::vector<Made> list;
  list.push_back(kernel.made());
  return list;
}

MadeList make_elementwise(const Work& work, const plan::Expression& planned, std::span<const ValueId> others) {
  const plan::Expression expression = shares_memory(work.tier) ? before_movements(work, planned) : planned;
  const Dim elements = elements_of(expression.shape);
  std::vector<ValueId> stored{expression.output};
  stored.insert(stored.end(), others.begin(), others.end());
  // By quads if one of them is: that one is not stored element by element for the others' sake.
  const auto type_of = [&](ValueId v) { return work.graph[v].type.dtype; };
  const bool quads =
      reads_texels(work.tier) && std::ranges::any_of(stored, [&](ValueId v) { return has_quads(type_of(v)); });
  const bool walks = walks_by_quads(work.graph, expression);
  const bool has_wide = std::ranges::any_of(stored, [&](ValueId v) { return storage_size(type_of(v)) > 4; });
  if (!others.empty() && quads && (!walks || has_wide)) return std::nullopt;
  if (quads && walks) {
    Kernel kernel(work, "elementwise", ceil_div(elements, 4));
    const Kernel::MoreParams more(kernel);
    const Value first = kernel.index() << kernel.integer(2);
    const std::vector<Quad> results = evaluate_quads(kernel, expression, first, others);
    for (std::size_t i = 0; i < stored.size(); ++i)
      kernel.store_quad(kernel.output(stored[i], true), kernel.index(), results[i]);
    if (MadeList list = one(kernel)) {
      // The last four may be fewer, also of what is read one by one.
      for (Bound& b : list->front().bound) b.quads = true;
      return list;
    }
  }
  const Elements all(work, elements);
  Kernel kernel(work, "elementwise", all.invocations());
  const Kernel::MoreParams more(kernel);
  kernel.for_each(all, [&](Value index) {
    const std::vector<Value> results = evaluate(kernel, expression, index, others);
    for (std::size_t i = 0; i < stored.size(); ++i) kernel.store(kernel.output(stored[i]), index, results[i]);
  });
  return one(kernel);
}

Sum Sum::of(Kernel& kernel, DType result) {
  if (is_float(result)) return {kernel.variable(kernel.real(0))};
  if (storage_size(result) == 8) return {kernel.variable(kernel.wide(0))};
  return {kernel.variable(kernel.integer(0))};
}

void Sum::add(Value term) const {
  const Value before = sum.get();
  if (before.kind != Kind::wide) return sum.set(before + term);
  sum.set(add_wide(before, term.kind == Kind::wide ? term : widened(term)));
}
void Sum::add_product(Value a, Value b) const {
  const Value before = sum.get();
  if (before.kind != Kind::real) return add(a * b);
  sum.set(shaders::add_product(before, a, b));
}

}  // namespace tosaic::shaders
