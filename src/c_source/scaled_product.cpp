// SPDX-License-Identifier: Apache-2.0
// Convolutions and products whose sums are scaled to 8 or 16 bits at once: calls of kernels, in which programs spend
// their time.
#include <algorithm>

#include "c_source/cmsis_nn.h"
#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/window.h"

namespace tosaic::c_source {
namespace {

// RESCALE, and the CLAMP behind it, that alone read a sum.
struct Scaled {
  std::vector<std::uint32_t> nodes;
  ValueId output = no_value;
  std::int64_t zero_point = 0, low = 0, high = 0;
  bool per_channel = false, double_round = false;
  ValueId multipliers = no_value, shifts = no_value;
};

std::optional<Scaled> scaled(const Planning& planning, ValueId sum) {
  const bool wide = planning.type(sum).dtype == DType::i48;
  const auto user = planning.only_user(sum);
  if (!user || planning.taken[*user] || planning.node(*user).op != tosa::op::rescale ||
      !has_element(planning.view(*user)))
    return std::nullopt;
  const tosa::View view = planning.view(*user);
  const Node& node = view.node();
  const DType out = view.out().dtype;
  if ((out != DType::i16 && (wide || out != DType::i8)) || view.flag("input_unsigned") ||
      view.flag("output_unsigned") || view.flag("scale32") == wide || planning.scalar(node.inputs[3]) != 0)
    return std::nullopt;
  const auto [lowest, highest] = range_of(out);
  Scaled found{{*user},
               node.outputs[0],
               planning.scalar(node.inputs[4]),
               lowest,
               highest,
               view.flag("per_channel"),
               view.text("rounding_mode") == "double_round",
               node.inputs[1],
               node.inputs[2]};
  const auto next = planning.only_user(found.output);
  if (next && !planning.taken[*next] && planning.node(*next).op == tosa::op::clamp) {
    const Attrs& attrs = planning.node(*next).attrs;
    found.nodes.push_back(*next);
    found.output = planning.node(*next).outputs[0];
    found.low = std::clamp(attrs.get<std::int64_t>("min_val"), lowest, highest);
    found.high = std::clamp(attrs.get<std::int64_t>("max_val"), lowest, highest);
  }
  return found;
}

// "const tosaic_scaling s = {...};" and what it points to.
void print_scaling(Writer& w, Planning& planning, const Scaled& s, std::vector<ValueId>& reads) {
  ValueId multipliers = s.multipliers;
  if (planning.type(multipliers).dtype != DType::i32) {
    const TensorView narrow{planning.type(multipliers), planning.graph[multipliers].constant.data()};
    multipliers = planning.add_constant(narrow.type.with(DType::i32), converted(narrow, DType::i32));
  }
  reads.push_back(multipliers);
  if (s.shifts != s.multipliers) reads.push_back(s.shifts);
  w.line("const tosaic_scaling s = {{{}, (const uint8_t *){}, {}, {}, {}, {}, {}, {}}};", name_of_value(multipliers),
         name_of_value(s.shifts), int{s.per_channel}, int{s.double_round}, storage_size(planning.type(s.output).dtype),
         s.zero_point, s.low, s.high);
}

bool take_matmul(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const Shape &a = planning.type(node.inputs[0]).shape, &out = planning.type(node.outputs[0]).shape;
  if (planning.type(node.inputs[0]).dtype != DType::i8 || !planning.constant(node.inputs[2]) ||
      !planning.constant(node.inputs[3]))
    return false;
  const auto s = scaled(planning, node.outputs[0]);
  if (!s) return false;
  std::vector<ValueId> reads{node.inputs[0]};
  if (node.inputs[1] != node.inputs[0]) reads.push_back(node.inputs[1]);
  Writer w;
  print_scaling(w, planning, *s, reads);
  w.line("tosaic_matmul_s8(&s, {}, {}, {}, {}, {}, {}, {}, {}, scratch, {});", out.size(0), out.size(1), a.size(2),
         out.size(2), name_of_value(node.inputs[0]), planning.scalar(node.inputs[2]), name_of_value(node.inputs[1]),
         planning.scalar(node.inputs[3]), name_of_value(s->output));
  const std::int64_t scratch = out.size(2) * (2 * 4 + a.size(2));
  std::vector<std::uint32_t> nodes{n};
  nodes.insert(nodes.end(), s->nodes.begin(), s->nodes.end());
  planning.add({std::move(nodes), std::move(reads), {s->output}, w.take(), static_cast<std::uint64_t>(scratch)});
  return true;
}

// A bias for each output channel without the input's zero point: sum w * (x - zero) = sum w * x - zero * sum w. Null:
// the operands are no constants.
Bytes bias_without_zero(const tosa::View& view, std::int64_t zero, bool depthwise) {
  const auto bias = view.constant_integers(2), weights = view.constant_integers(1);
  if (!bias || !weights) return {};
  const auto channels = static_cast<std::size_t>(view.out().shape.size(3));
  std::vector<std::int64_t> made(channels);
  const std::size_t taps = weights->size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    std::int64_t sum = 0;
    for (std::size_t t = 0; t < taps; ++t) sum += (*weights)[depthwise ? t * channels + c : c * taps + t];
    // wraps as the sum itself does
    made[c] = static_cast<std::int32_t>(static_cast<std::uint64_t>((*bias)[bias->size() == 1 ? 0 : c] - zero * sum));
  }
  return constant_bytes(DType::i32, std::span<const std::int64_t>(made));
}

// Two weights of 4 bits in a byte, the first in the low bits; each output channel begins a byte.
Bytes packed_rows(const tosa::View& view) {
  const std::vector<std::int64_t> weights = *view.constant_integers(1);
  const auto rows = static_cast<std::size_t>(view.in(1).shape.size(0));
  const std::size_t row = weights.size() / rows, bytes = (row + 1) / 2;
  std::vector<std::int64_t> packed(rows * bytes);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < row; ++i) packed[r * bytes + i / 2] |= (weights[r * row + i] & 15) << (i % 2 * 4);
  return constant_bytes(DType::u8, std::span<const std::int64_t>(packed));
}

// As tosaic_mcu.h says. A pointer has 8 bytes on this computer, where the C is tried.
std::int64_t scratch_bytes(const tosa::View& view, std::int64_t taps, bool depthwise) {
  const std::int64_t pixel = view.in(0).shape.size(3) * static_cast<std::int64_t>(storage_size(view.in(0).dtype));
  if (depthwise) return taps * 8 + pixel;
  return taps == 1 && view.all_are("pad", 0) ? 0 : taps * pixel;
}

bool take_convolution(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const tosa::View view = planning.view(n);
  const bool depthwise = node.op == tosa::op::depthwise_conv2d;
  const DType in = view.in(0).dtype, weight = view.in(1).dtype;
  const bool narrow = weight == DType::i4;
  if ((in != DType::i8 && in != DType::i16) || (weight != DType::i8 && !(narrow && in == DType::i8 && !depthwise)))
    return false;
  if (depthwise && view.in(1).shape.size(3) != 1) return false;
  if (!planning.constant(node.inputs[3]) || !planning.constant(node.inputs[4]) || planning.scalar(node.inputs[4]) != 0)
    return false;
  if (narrow && !planning.constant(node.inputs[1])) return false;
  const auto s = scaled(planning, node.outputs[0]);
  if (!s) return false;
  std::vector<std::uint32_t> nodes{n};
  nodes.insert(nodes.end(), s->nodes.begin(), s->nodes.end());
  std::ranges::sort(nodes);
  if (planning.kernels == Kernels::cmsis_nn) {
    const ScaledOutput out{s->nodes.front(), s->output, s->zero_point, s->low, s->high, s->double_round};
    if (auto call = cmsis_nn_call(planning, view, out, depthwise)) {
      planning.add({std::move(nodes),
                    std::move(call->reads),
                    {s->output},
                    call->body.take(),
                    static_cast<std::uint64_t>(call->scratch_bytes)});
      return true;
    }
  }
  const std::int64_t zero = planning.scalar(node.inputs[3]);
  const Shape &x = view.in(0).shape, &y = view.out().shape;
  ValueId weights = node.inputs[1], bias = node.inputs[2];
  const bool one_bias = view.in(2).shape.elements() != y.size(3);
  const auto add = [&](DType type, Bytes made, std::int64_t elements) {
    return planning.add_constant({type, Shape{elements}, {}}, std::move(made));
  };
  if (in == DType::i8 && (zero != 0 || one_bias)) {
    Bytes made = bias_without_zero(view, zero, depthwise);
    if (made.null()) return false;
    bias = add(DType::i32, std::move(made), y.size(3));
  } else if (one_bias) {
    return false;
  }
  if (narrow) {
    Bytes packed = packed_rows(view);
    const auto bytes = static_cast<std::int64_t>(packed.size());
    weights = add(DType::u8, std::move(packed), bytes);
  }
  std::vector<ValueId> reads{node.inputs[0], weights, bias};
  const int first = depthwise ? 0 : 1;
  const std::int64_t height = view.in(1).shape.size(first), width = view.in(1).shape.size(first + 1);
  const auto& pad = view.ints("pad");
  Writer w;
  print_scaling(w, planning, *s, reads);
  w.line("static const tosaic_window w = {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}};", x.size(0),
         x.size(1), x.size(2), x.size(3), y.size(1), y.size(2), y.size(3), height, width, view.ints("stride")[0],
         view.ints("stride")[1], view.ints("dilation")[0], view.ints("dilation")[1], pad[0], pad[2]);
  const std::int64_t scratch = scratch_bytes(view, height * width, depthwise);
  w.line("tosaic_{}_s{}(&w, &s, {}{}, {}, {}, {}, {});", depthwise ? "depthwise" : "conv2d",
         in == DType::i16 ? "16"
         : narrow         ? "4"
                          : "8",
         name_of_value(node.inputs[0]), in == DType::i8 ? fmt::format(", {}", zero) : "", name_of_value(weights),
         name_of_value(bias), scratch > 0 ? "scratch" : "0", name_of_value(s->output));
  planning.add({std::move(nodes), std::move(reads), {s->output}, w.take(), static_cast<std::uint64_t>(scratch)});
  return true;
}

}  // namespace

bool take_scaled_product(Planning& planning, std::uint32_t n) {
  const Operator op = planning.node(n).op;
  if (op == tosa::op::matmul) return take_matmul(planning, n);
  if (op == tosa::op::conv2d || op == tosa::op::depthwise_conv2d) return take_convolution(planning, n);
  return false;
}

}  // namespace tosaic::c_source
