// SPDX-License-Identifier: Apache-2.0
#include "targets/ethos_u/products.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "ir/tosa_operators.h"
#include "targets/ethos_u/express.h"

namespace tosaic::ethos_u {
namespace {

using Ints = std::vector<std::int64_t>;
using tosa::Check;
using tosa::View;
using tosa::Violation;

constexpr std::int64_t max_kernel_height = 64;  // convolutions
constexpr std::int64_t max_kernel_area = 64 * 64;
constexpr std::int64_t max_stride = 3;
constexpr std::int64_t max_pool_kernel = 256;
constexpr std::int64_t max_padded_pool_kernel = 8;
constexpr std::int64_t max_argmax_depth = 127;
constexpr std::int64_t max_indices = 65535;  // GATHER, SCATTER: Vela cuts the count to 16 bits, without a word

template <class... A>
Check refused(const View& view, std::string_view rule, fmt::format_string<A...> text, A&&... arguments) {
  return Violation{fmt::format("ethos-u.{}.{}", view.node().op.base(), rule),
                   fmt::format(text, std::forward<A>(arguments)...)};
}

bool one_of(Operator op, std::initializer_list<Operator> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape.size(i);
  return n;
}

std::int64_t longest_stride(const View& view) {
  const auto& stride = view.ints("stride");
  return std::max(stride[0], stride[1]);
}

// ---- rules that all products share

Check convolution(const View& view) {
  const TensorType &x = view.in(0), &weight = view.in(1);
  if (weight.dtype == DType::i4) return refused(view, "weights", "weights of 4 bits; 8 are taken");
  const bool depthwise = view.node().op == tosa::op::depthwise_conv2d;
  const int first = depthwise ? 0 : 1;  // where the kernel's height stands in the weight
  Ints dilation{1, 1};
  if (view.node().attrs.find("dilation")) dilation = view.ints("dilation");
  const auto reach = [&](int dim) {
    return (weight.shape.size(first + dim) - 1) * dilation[static_cast<std::size_t>(dim)] + 1;
  };
  const std::int64_t height = reach(0), area = height * reach(1);
  if (height > max_kernel_height)
    return refused(view, "kernel", "a kernel {} high; {} is the most", height, max_kernel_height);
  if (area > max_kernel_area)
    return refused(view, "kernel", "a kernel of {} elements; {} is the most", area, max_kernel_area);
  const bool one_output = view.out().shape.size(1) * view.out().shape.size(2) == 1;
  if (view.node().op != tosa::op::transpose_conv2d && !view.constant(1).null() && !(depthwise && one_output) &&
      longest_stride(view) > max_stride)
    return refused(view, "stride", "a stride of {}; {} is the most", longest_stride(view), max_stride);
  if (x.shape.size(3) > longest_axis)
    return refused(view, "channels", "{} channels; {} is the most", x.shape.size(3), longest_axis);
  return std::nullopt;
}

Check average_pool(const View& view) {
  const auto &kernel = view.ints("kernel"), &pad = view.ints("pad");
  const bool padded = std::any_of(pad.begin(), pad.end(), [](std::int64_t p) { return p != 0; });
  if (padded && longest_stride(view) > max_stride)
    return refused(view, "stride", "a stride of {} with padding; {} is the most", longest_stride(view), max_stride);
  const std::int64_t most = padded ? max_padded_pool_kernel : max_pool_kernel;
  for (std::int64_t k : kernel)
    if (k > most)
      return refused(view, "kernel", "a window of {}{}; {} is the most", k, padded ? " with padding" : "", most);
  return std::nullopt;
}

// Longer axes and rows compile for U85, but not always to the sums that TOSA means (docs/developer/ethos-u.md).
Check sum(const View& view) {
  const TensorType& x = view.in(0);
  const auto axis = static_cast<int>(view.integer("axis"));
  if (x.shape.size(axis) > longest_axis)
    return refused(view, "axis", "a sum over {} elements; {} is the most", x.shape.size(axis), longest_axis);
  if (const std::int64_t inner = product(x.shape, axis + 1, x.rank()); inner > longest_axis)
    return refused(view, "axis", "{} sums at once; {} is the most", inner, longest_axis);
  return std::nullopt;
}

// Operators that no Ethos-U has a command for, or that Vela does not read.
Check everywhere(const View& view, Operator op) {
  if (one_of(op, {tosa::op::reduce_product, tosa::op::pow, tosa::op::custom, tosa::op::cond_if, tosa::op::while_loop,
                  tosa::op::variable, tosa::op::variable_read, tosa::op::variable_write, tosa::op::fft2d,
                  tosa::op::rfft2d}))
    return refused(view, "operator", "no Ethos-U has this operator");
  for (std::size_t i = 0; i < view.inputs(); ++i)
    if (view.node().inputs[i] != no_value && view.in(i).rank() > 6)
      return refused(view, "rank", "rank {}; 6 is the most", view.in(i).rank());
  if (one_of(op, {tosa::op::conv2d, tosa::op::depthwise_conv2d, tosa::op::transpose_conv2d})) return convolution(view);
  if (op == tosa::op::avg_pool2d) return average_pool(view);
  if (op == tosa::op::reduce_sum) return sum(view);
  if (op == tosa::op::max_pool2d && longest_stride(view) > max_stride)
    return refused(view, "stride", "a stride of {}; {} is the most", longest_stride(view), max_stride);
  return std::nullopt;
}

// ---- U55 and U65: one set of commands, so far one set of rules

Check transpose_conv(const View& view) {
  if (view.in(0).dtype == DType::i16) return refused(view, "dtype", "16-bit activations");
  const auto& stride = view.ints("stride");
  const Shape &x = view.in(0).shape, &weight = view.in(1).shape;
  const bool flat = stride[0] == 1 && stride[1] == 2 && x[1] == 1 && weight[1] == 1;
  const bool tall = stride[0] == 2 && stride[1] == 1 && x[2] == 1 && weight[2] == 1;
  if (stride[0] == stride[1] && stride[0] <= 2) return std::nullopt;
  if (flat || tall) return std::nullopt;
  return refused(view, "stride", "a stride of {} by {}; 1 by 1 and 2 by 2 are taken", stride[0], stride[1]);
}

Check resize(const View& view) {
  if (view.text("mode") != "nearest") return refused(view, "mode", "bilinear interpolation");
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2), border = view.constant_integers(3);
  if (!scale || !offset || !border) return refused(view, "scale", "a scale that is known only at run time");
  const std::int64_t k = (*scale)[0] / 2;
  const bool same = (*scale)[2] == (*scale)[0] && (*scale)[1] == 2 && (*scale)[3] == 2;
  // Factors 4 and 8 compile as well, to programs whose results are wrong (docs/developer/ethosu-simulator.md).
  if (!same || k != 2 || (*offset)[0] != 1 - k || (*offset)[1] != 1 - k || (*border)[0] != k - 1 ||
      (*border)[1] != k - 1)
    return refused(view, "scale", "a scale of {}/{} by {}/{}; enlarging twice is taken", (*scale)[0], (*scale)[1],
                   (*scale)[2], (*scale)[3]);
  return std::nullopt;
}

}  // namespace

Check native_u55(const View& view) {
  const Operator op = view.node().op;
  if (Check c = everywhere(view, op)) return c;
  if (one_of(op, {tosa::op::logical_right_shift, tosa::op::bitwise_and, tosa::op::bitwise_or, tosa::op::bitwise_xor,
                  tosa::op::bitwise_not, tosa::op::intdiv, tosa::op::equal, tosa::op::greater, tosa::op::greater_equal,
                  tosa::op::select, tosa::op::logical_and, tosa::op::logical_or, tosa::op::logical_xor,
                  tosa::op::logical_not, tosa::op::reduce_any, tosa::op::reduce_all, tosa::op::gather,
                  tosa::op::scatter, tosa::op::conv3d}))
    return refused(view, "operator", "Ethos-U55 and U65 have no such operation");
  for (std::size_t i = 0; i < view.inputs(); ++i)
    if (view.node().inputs[i] != no_value && view.in(i).dtype == DType::boolean)
      return refused(view, "dtype", "a boolean tensor");
  if (op == tosa::op::cast && view.out().dtype == DType::boolean) return refused(view, "dtype", "a boolean tensor");
  if (view.inputs() == 0) return std::nullopt;
  const TensorType& x = view.in(0);
  if (op == tosa::op::transpose_conv2d) return transpose_conv(view);
  if (op == tosa::op::resize) return resize(view);
  if (op == tosa::op::matmul) {
    if (x.dtype != DType::i8) return refused(view, "dtype", "{} operands; i8 is taken", name_of(x.dtype));
    const std::int64_t k = x.shape.size(2), n = view.in(1).shape.size(2);
    if (std::max(k, n) > longest_axis)
      return refused(view, "size", "a dimension of {}; {} is the most", std::max(k, n), longest_axis);
  }
  if (op == tosa::op::arithmetic_right_shift) {
    if (x.dtype != DType::i32) return refused(view, "dtype", "{} operands; i32 is taken", name_of(x.dtype));
    if (!view.flag("round")) return refused(view, "round", "a shift that does not round");
  }
  if (op == tosa::op::logical_left_shift && x.dtype != DType::i32)
    return refused(view, "dtype", "{} operands; i32 is taken", name_of(x.dtype));
  if ((op == tosa::op::reduce_max || op == tosa::op::reduce_min) && x.dtype == DType::i32)
    return refused(view, "dtype", "32-bit elements; 8 and 16 bits are taken");
  if (op == tosa::op::argmax) {
    const auto axis = static_cast<int>(view.integer("axis"));
    if (x.dtype != DType::i8) return refused(view, "dtype", "{} elements; i8 is taken", name_of(x.dtype));
    if (axis != x.rank() - 1) return refused(view, "axis", "along dim {} of {}; the last one is taken", axis, x.rank());
    if (x.shape.size(axis) > max_argmax_depth)
      return refused(view, "axis", "{} candidates; {} is the most", x.shape.size(axis), max_argmax_depth);
    if (product(x.shape, 0, std::max(0, x.rank() - 3)) != 1) return refused(view, "batch", "a batch");
  }
  if (op == tosa::op::transpose) {
    for (std::int64_t d : x.shape.sizes())
      if (d > longest_axis) return refused(view, "axis", "a dimension of {}; {} is the most", d, longest_axis);
  }
  if (op == tosa::op::reverse && view.integer("axis") == x.rank() - 1) return refused(view, "axis", "the last dim");
  return std::nullopt;
}

// ---- U85

Check native_u85(const View& view) {
  const Operator op = view.node().op;
  if (Check c = everywhere(view, op)) return c;
  if (op == tosa::op::gather || op == tosa::op::scatter)
    if (const std::int64_t count = std::max(view.in(1).shape.size(0), view.in(1).shape.size(1)); count > max_indices)
      return refused(view, "indices", "{} indices or batches; {} is the most", count, max_indices);
  return std::nullopt;
}

namespace {
// Asked once, of the node as it is: a rewrite in the middle does not show where weights come from.
Check check_u55(const View& view) {
  const Operator op = view.node().op;
  if (one_of(op, {tosa::op::conv2d, tosa::op::depthwise_conv2d, tosa::op::transpose_conv2d, tosa::op::conv3d}))
    for (const std::size_t operand : {1, 2})
      if (!will_be_constant(view, operand))
        return refused(view, operand == 1 ? "weights" : "bias", "{} that the model computes; constants are taken",
                       operand == 1 ? "weights" : "a bias");
  return expressible(view, native_u55);
}
Check check_u85(const View& view) { return expressible(view, native_u85); }
}  // namespace

const tosa::Product& u55() {
  static const tosa::Product product{"Ethos-U55", check_u55};
  return product;
}
const tosa::Product& u65() {
  static const tosa::Product product{"Ethos-U65", check_u55};
  return product;
}
const tosa::Product& u85() {
  static const tosa::Product product{"Ethos-U85", check_u85};
  return product;
}

}  // namespace tosaic::ethos_u
