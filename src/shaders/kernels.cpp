// SPDX-License-Identifier: Apache-2.0
#include "shaders/kernels.h"

#include <algorithm>

#include "shaders/elements.h"

namespace tosaic::shaders {
namespace {

// By name; of one operator the best first.
constexpr KernelRow rows[] = {
    {"argmax", make_argmax},
    {"avg_pool2d", make_pool},
    {"conv2d", make_convolution},
    {"conv3d", make_convolution},
    {"depthwise_conv2d", make_depthwise},
    {"fft2d", make_fourier},
    {"gather", make_gather},
    {"matmul", make_matmul},
    {"max_pool2d", make_pool},
    {"reduce_all", make_reduction},
    {"reduce_any", make_reduction},
    {"reduce_max", make_reduction},
    {"reduce_min", make_reduction},
    {"reduce_product", make_reduction},
    {"reduce_sum", make_reduction},
    {"resize", make_resize},
    {"rfft2d", make_fourier},
    {"scatter", make_scatter},
    {"transpose_conv2d", make_transpose_convolution},
};

}  // namespace

std::span<const KernelRow> kernel_rows(const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  const auto found = std::ranges::equal_range(rows, op ? op->name : "", {}, &KernelRow::op);
  return {found.begin(), found.end()};
}

void Finish::store(Kernel& kernel, Value index, Value element) const {
  element = element.kind == Kind::real ? rounded(element, kernel.type(root_).dtype) : element;
  if (tail_) element = evaluate(kernel, *tail_, index, root_, element);
  kernel.store(kernel.output(output()), index, element);
}

MadeList one(Kernel& kernel) {
  if (!kernel.fits()) return std::nullopt;
  std::vector<Made> list;
  list.push_back(kernel.made());
  return list;
}

MadeList make_elementwise(const Work& work, const plan::Expression& expression) {
  Kernel kernel(work, "elementwise", static_cast<std::uint64_t>(expression.shape.elements()));
  const Value result = evaluate(kernel, expression, kernel.index());
  kernel.store(kernel.output(expression.output), kernel.index(), result);
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
void Sum::add_product(Value a, Value b) const { add(a * b); }

}  // namespace tosaic::shaders
