// SPDX-License-Identifier: Apache-2.0
#include "c_source/cmsis_nn.h"

#include <algorithm>

namespace tosaic::c_source {
namespace {

// CMSIS-NN's shift of a multiplier in Q31. Built for single rounding, it computes (P + 2^(s-1)) >> s exactly where s is
// above 31; below, it shifts sums to the left first, which may lose bits. Empty: it is not so.
std::vector<std::int64_t> q31_shifts(const std::vector<std::int64_t>& shifts, std::size_t channels) {
  std::vector<std::int64_t> made;
  for (std::size_t c = 0; c < channels; ++c) {
    const std::int64_t shift = shifts[shifts.size() == 1 ? 0 : c];
    if (shift <= 31) return {};
    made.push_back(31 - shift);
  }
  return made;
}

// The most that its variants for Helium, for DSP instructions and in plain C ask for.
std::int64_t buffer_bytes(std::int64_t taps, std::int64_t channels, bool depthwise) {
  constexpr std::int64_t channels_at_once = 124;
  if (depthwise) return taps * std::max(4 * channels_at_once, 2 * channels);
  return 4 * ((taps * channels + 15) / 16 * 16);
}

}  // namespace

std::optional<CmsisNnCall> cmsis_nn_call(Planning& planning, const tosa::View& view, const ScaledOutput& out,
                                         bool depthwise) {
  const Shape &x = view.in(0).shape, &y = view.out().shape;
  const auto channels = static_cast<std::size_t>(y.size(3));
  const auto &stride = view.ints("stride"), &dilation = view.ints("dilation"), &pad = view.ints("pad");
  if (view.in(0).dtype != DType::i8 || view.in(1).dtype != DType::i8 || planning.type(out.value).dtype != DType::i8)
    return std::nullopt;
  if (depthwise && (x.size(0) != 1 || dilation[0] != 1 || dilation[1] != 1)) return std::nullopt;
  const auto integers = [&](std::size_t i) {
    return tosa::View(planning.graph, planning.node(out.rescale)).constant_integers(i);
  };
  const auto multipliers = integers(1), shifts = integers(2), biases = view.constant_integers(2);
  if (out.double_round || !multipliers || !shifts || !biases) return std::nullopt;
  const std::vector<std::int64_t> q31 = q31_shifts(*shifts, channels);
  if (q31.empty()) return std::nullopt;

  CmsisNnCall call;
  call.reads = {view.node().inputs[0], view.node().inputs[1]};
  const auto array = [&](std::vector<std::int64_t> list) {
    if (list.size() == 1) list.resize(channels, list.front());
    const std::span<const std::int64_t> each(list);
    call.reads.push_back(planning.add_constant({DType::i32, Shape{y.size(3)}, {}}, constant_bytes(DType::i32, each)));
    return name_of_value(call.reads.back());
  };
  const int first = depthwise ? 0 : 1;
  const std::int64_t height = view.in(1).shape.size(first), width = view.in(1).shape.size(first + 1);
  call.scratch_bytes = buffer_bytes(height * width, x.size(3), depthwise);
  Writer& w = call.body;
  w.line("const cmsis_nn_context context = {{scratch, {}}};", call.scratch_bytes);
  w.line("const cmsis_nn_per_channel_quant_params scales = {{(int32_t *){}, (int32_t *){}}};", array(*multipliers),
         array(q31));
  w.line("const cmsis_nn_dims in = {{{}, {}, {}, {}}}, out = {{{}, {}, {}, {}}};", x.size(0), x.size(1), x.size(2),
         x.size(3), y.size(0), y.size(1), y.size(2), y.size(3));
  w.line("const cmsis_nn_dims filter = {{{}, {}, {}, {}}}, biases = {{1, 1, 1, {}}};", depthwise ? 1 : y.size(3),
         height, width, x.size(3), y.size(3));
  const std::string_view name = depthwise ? "depthwise_conv" : "convolve";
  w.line("const cmsis_nn_{}conv_params how = {{{}, {}, {}{{{}, {}}}, {{{}, {}}}, {{{}, {}}}, {{{}, {}}}}};",
         depthwise ? "dw_" : "", -planning.scalar(view.node().inputs[3]), out.zero_point, depthwise ? "1, " : "",
         stride[1], stride[0], pad[2], pad[0], dilation[1], dilation[0], out.low, out.high);
  // It does not look at the size that it is given, and another version may need more.
  w.line("if (arm_{}_wrapper_s8_get_buffer_size(&how, &in, &filter, &out) > context.size) __builtin_trap();", name);
  w.line("arm_{}_wrapper_s8(&context, &how, &scales, &in, {}, &filter, {}, &biases, {}, &out, {});", name,
         name_of_value(view.node().inputs[0]), name_of_value(view.node().inputs[1]), array(*biases),
         name_of_value(out.value));
  return call;
}

}  // namespace tosaic::c_source
