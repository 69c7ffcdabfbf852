// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products, as the loops that the standard writes: each element is summed up and finished with
// what follows it. What has a kernel is taken before (scaled_product.cpp).
#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/window.h"

namespace tosaic::c_source {
namespace {

// An operand's element less its zero point, in the accumulator's type.
std::string operand(const Planning& planning, const Node& node, std::size_t i, std::size_t zero_point,
                    const std::string& at, std::string_view sum_type) {
  const ValueId v = node.inputs[i];
  const std::int64_t zero = is_float(planning.type(v).dtype) ? 0 : planning.scalar(node.inputs[zero_point]);
  const std::string element = fmt::format("({}){}[{}]", sum_type, name_of_value(v), at);
  return zero == 0 ? element : fmt::format("({} - {})", element, zero);
}

bool printable(const Planning& planning, const Node& node, std::span<const std::size_t> zero_points) {
  for (ValueId v : node.inputs)
    if (c_type(planning.type(v).dtype).empty()) return false;
  for (std::size_t i : zero_points)
    if (!planning.constant(node.inputs[i])) return false;
  return !c_type(planning.type(node.outputs[0]).dtype).empty();
}

bool take_matmul(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!printable(planning, node, std::array<std::size_t, 2>{2, 3})) return false;
  const Shape &a = planning.type(node.inputs[0]).shape, &out = planning.type(node.outputs[0]).shape;
  const std::string_view type = c_type(planning.type(node.outputs[0]).dtype);
  Epilogue epilogue = epilogue_of(planning, n, "sum");
  Writer w;
  const std::vector<std::string> index{"n", "h", "c"};
  for (std::size_t d = 0; d < 3; ++d) w.loop(index[d], out.size(static_cast<int>(d)));
  w.line("{} sum = 0;", type);
  w.open("for (int32_t k = 0; k < {}; ++k)", a.size(2));
  w.line("sum += {} * {};", operand(planning, node, 0, 2, index_sum({"n", "h", "k"}, dense_strides(a)), type),
         operand(planning, node, 1, 3, index_sum({"n", "k", "c"}, dense_strides(planning.type(node.inputs[1]).shape)),
                 type));
  w.close();
  print_end(w, planning, epilogue, "sum", index);
  for (std::size_t d = 0; d < 3; ++d) w.close();
  planning.add(step_of({node.inputs[0], node.inputs[1]}, epilogue, w.take()));
  return true;
}

// A spatial axis in the loops: its index in output, kernel and input.
struct AxisLoop {
  std::string out, tap, in;
  std::int64_t size, kernel, stride, dilation, before;
};
std::vector<AxisLoop> axes_of(const tosa::View& view, int first_kernel_dim) {
  static constexpr const char* names[] = {"z", "y", "x"};
  std::vector<AxisLoop> axes;
  const int spatial = view.in(0).rank() - 2;
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::string name = names[3 - spatial + i];
    axes.push_back({"o" + name, "k" + name, "i" + name, view.in(0).shape.size(1 + i),
                    view.in(1).shape.size(first_kernel_dim + i), tosa::item(view, "stride", k, 1),
                    tosa::item(view, "dilation", k, 1), tosa::item(view, "pad", 2 * k, 0)});
  }
  return axes;
}

bool take_convolution(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const tosa::View view = planning.view(n);
  if (!printable(planning, node, std::array<std::size_t, 2>{3, 4})) return false;
  const bool depthwise = node.op == tosa::op::depthwise_conv2d, transposed = node.op == tosa::op::transpose_conv2d;
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  const std::string_view type = c_type(view.out().dtype);
  std::vector<AxisLoop> axes = axes_of(view, depthwise ? 0 : 1);
  if (transposed)
    for (std::size_t i = 0; i < 2; ++i) axes[i].before = tosa::item(view, "out_pad", 2 * i, 0);
  Epilogue epilogue = epilogue_of(planning, n, "sum");
  Writer w;
  std::vector<std::string> index{"n"};
  for (const AxisLoop& a : axes) index.push_back(a.out);
  index.push_back("oc");
  for (std::size_t d = 0; d < index.size(); ++d) w.loop(index[d], out.size(static_cast<int>(d)));
  w.line("{} sum = {}[{}];", type, name_of_value(node.inputs[2]), view.in(2).shape.elements() == 1 ? "0" : "oc");
  std::vector<std::string> in_index{"n"}, weight_index;
  for (const AxisLoop& a : axes) {
    w.open("for (int32_t {0} = 0; {0} < {1}; ++{0})", a.tap, a.kernel);
    if (transposed) {  // input i stamps output i * stride + before + tap
      w.line("const int32_t {}_at = {} - {} - {};", a.in, a.out, a.before, a.tap);
      w.line("if ({0}_at < 0 || {0}_at % {1} != 0 || {0}_at / {1} >= {2}) continue;", a.in, a.stride, a.size);
      w.line("const int32_t {0} = {0}_at / {1};", a.in, a.stride);
    } else {
      w.line("const int32_t {} = {} * {} - {} + {} * {};", a.in, a.out, a.stride, a.before, a.tap, a.dilation);
      w.line("if ({0} < 0 || {0} >= {1}) continue;", a.in, a.size);
    }
    in_index.push_back(a.in);
    weight_index.push_back(a.tap);
  }
  const std::int64_t multiplier = depthwise ? weight.size(3) : 1;
  if (depthwise) {
    in_index.push_back(multiplier == 1 ? "oc" : fmt::format("(oc / {})", multiplier));
    weight_index.push_back("oc");  // [C, M] walked as one dim
  } else {
    w.open("for (int32_t ic = 0; ic < {}; ++ic)", in.size(in.rank() - 1));
    in_index.emplace_back("ic");
    weight_index.insert(weight_index.begin(), "oc");
    weight_index.emplace_back("ic");
  }
  const std::vector<std::int64_t> weight_strides =
      depthwise
          ? std::vector<std::int64_t>{weight.size(1) * weight.size(2) * multiplier, weight.size(2) * multiplier, 1}
          : dense_strides(weight);
  w.line("sum += {} * {};", operand(planning, node, 0, 3, index_sum(in_index, dense_strides(in)), type),
         operand(planning, node, 1, 4, index_sum(weight_index, weight_strides), type));
  for (std::size_t i = 0; i < axes.size() + (depthwise ? 0 : 1); ++i) w.close();
  print_end(w, planning, epilogue, "sum", index);
  for (std::size_t d = 0; d < index.size(); ++d) w.close();
  planning.add(step_of({node.inputs[0], node.inputs[1], node.inputs[2]}, epilogue, w.take()));
  return true;
}

}  // namespace

bool take_product(Planning& planning, std::uint32_t n) {
  const Operator op = planning.node(n).op;
  if (op == tosa::op::matmul) return take_matmul(planning, n);
  if (op == tosa::op::conv2d || op == tosa::op::conv3d || op == tosa::op::depthwise_conv2d ||
      op == tosa::op::transpose_conv2d)
    return take_convolution(planning, n);
  return false;
}

}  // namespace tosaic::c_source
