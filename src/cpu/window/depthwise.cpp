// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/depthwise.h"

#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/sharing.h"
#include "cpu/matrix/short_sums.h"
#include "cpu/window/conv.h"
#include "cpu/window/depthwise_kernel.h"
#include "cpu/window/groups_kernel.h"
#include "cpu/window/window.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {
namespace {

template <class T>
const auto& depthwise_kernels() {
  if constexpr (std::is_same_v<T, float>)
    return depthwise_f32_kernels();
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return depthwise_i8_kernels();
  else
    return depthwise_i16_kernels();
}

// T, of the input, is float, std::int8_t or std::int16_t. A channel multiplier m makes m kernels of the same inputs;
// their outputs are interleaved afterwards (rare, so not fast).
template <class T>
struct Depthwise {
  static constexpr bool is_float = std::is_same_v<T, float>;
  static constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  Window window;
  std::int64_t multiplier = 1;
  ValueId input = no_value;
  Epilogue epilogue;
  std::int64_t padded = 0;      // channels, in whole vectors
  struct Part {                 // one of the `multiplier` kernels
    Lines<float> weight, bias;  // f32
    Lines<std::byte> packed;    // i8, i16
    Lines<std::int32_t> term;
    RescaleColumns scales;
    Lines<std::int64_t> wide_bias;  // i16
  };
  std::vector<Part> parts;
  bool by_columns = false;  // see DepthwiseColumns
  // Channels are those of narrow groups, which these kernels do.
  std::conditional_t<is_float, GroupsF32Kernel::Columns, GroupsI8Kernel::Columns> of_groups = nullptr;
  std::vector<T> padding;                         // what lies outside: zero, or the zero point
  std::int64_t rows_per_task = 1, row_parts = 1;  // a task has rows, or one of the parts of a row
  std::size_t tile_bytes = 0, scratch = 0;
  const decltype(depthwise_kernels<T>())& kernels = depthwise_kernels<T>();

  std::int64_t output_rows() const { return window.batch * window.out[1]; }
  // Bytes of what the kernel writes.
  std::int64_t row_elements() const { return window.out[2] * window.channels * multiplier; }

  // `pixels` output pixels from (line pointers, ox) on, by kernel m.
  void pixels(const T* const* lines, std::int64_t ox, std::int64_t count, std::byte* to, std::int64_t m) const {
    const auto [kd, kh, kw] = window.kernel;
    const T* taps[128 + 4];
    std::int64_t t = 0;
    for (std::int64_t x = 0; x < kw; ++x)
      for (std::int64_t y = 0; y < kh; ++y) {
        const std::int64_t ix = ox * window.stride[2] - window.before[2] + x * window.dilation[2];
        const bool inside = ix >= 0 && ix < window.in[2];
        taps[t++] = inside ? lines[y] + ix * window.channels : padding.data();
      }
    // Spare ones advance from pixel to pixel as well: what the first reads is there.
    for (int spare = 0; spare < 3; ++spare) taps[t + spare] = taps[0];
    const Part& part = parts[static_cast<std::size_t>(m)];
    const std::int64_t step = window.stride[2] * window.channels;
    if constexpr (is_float) {
      kernels.pixels({channels_of(part, to), taps, t, count, step});
    } else if constexpr (!is_i8) {
      kernels.pixels({.taps = taps,
                      .tap_count = t,
                      .pixels = count,
                      .step = step,
                      .channels = window.channels,
                      .weight = part.packed.data(),
                      .term = part.term.data(),
                      .multiplier = part.scales.multiplier.data(),
                      .shift = part.scales.shift.data(),
                      .round = part.scales.round.data(),
                      .lowest = epilogue.lowest_quantised,
                      .highest = epilogue.highest_quantised,
                      .out = reinterpret_cast<std::int16_t*>(to),
                      .out_step = window.channels,
                      .bias = part.wide_bias.data(),
                      .sums = epilogue.rescaled ? nullptr : reinterpret_cast<std::int64_t*>(to)});
    } else {
      kernels.pixels({channels_of(part, to), taps, t, count, step,
                      epilogue.rescaled ? nullptr : reinterpret_cast<std::int32_t*>(to)});
    }
  }
  auto channels_of(const Part& part, std::byte* to) const {
    if constexpr (is_float) {
      return DepthwiseF32Channels{.channels = window.channels,
                                  .weight = part.weight.data(),
                                  .weight_stride = padded,
                                  .bias = part.bias.data(),
                                  .lowest = epilogue.lowest,
                                  .highest = epilogue.highest,
                                  .out = reinterpret_cast<float*>(to),
                                  .out_step = window.channels};
    } else {
      return DepthwiseI8Channels{.channels = window.channels,
                                 .weight = part.packed.data(),
                                 .term = part.term.data(),
                                 .multiplier = part.scales.multiplier.data(),
                                 .shift = part.scales.shift.data(),
                                 .round = part.scales.round.data(),
                                 .zero_point = epilogue.output_zp,
                                 .lowest = epilogue.lowest_quantised,
                                 .highest = epilogue.highest_quantised,
                                 .out = reinterpret_cast<std::int8_t*>(to),
                                 .out_step = window.channels};
    }
  }

  // Pixels [first, last) of output row `row` by kernel m: those whose taps touch padding at the ends of lines one by
  // one, those between in one call.
  void row(const T* in, std::int64_t row, std::int64_t first, std::int64_t last, std::byte* to, std::int64_t element,
           std::int64_t m) const {
    const std::int64_t n = row / window.out[1], oy = row % window.out[1];
    const T* lines[128];
    for (std::int64_t y = 0; y < window.kernel[1]; ++y) {
      const std::int64_t iy = oy * window.stride[1] - window.before[1] + y * window.dilation[1];
      const bool inside = iy >= 0 && iy < window.in[1];
      lines[y] = inside ? in + (n * window.in[1] + iy) * window.in[2] * window.channels : padding.data();
    }
    if constexpr (is_float || is_i8) {
      if (by_columns) {
        return (of_groups ? of_groups : kernels.columns)(
            {channels_of(parts[static_cast<std::size_t>(m)], to),
             {lines, window.kernel[1], window.stride[2], window.in[2], window.before[2], first, last, padding[0]}});
      }
    }
    const std::int64_t width = window.out[2], stride = window.stride[2],
                       reach = (window.kernel[2] - 1) * window.dilation[2];
    // x0 = ox * stride - before >= 0, x0 + reach < in.
    const std::int64_t begin = std::min(width, (window.before[2] + stride - 1) / stride);
    const std::int64_t limit = window.in[2] - reach + window.before[2];
    const std::int64_t end = std::clamp(limit <= 0 ? 0 : (limit - 1) / stride + 1, begin, width);
    const std::int64_t pixel = window.channels * element;
    for (std::int64_t ox = first; ox < last;) {
      const std::int64_t count = ox >= begin && ox < end ? std::min(end, last) - ox : 1;
      pixels(lines, ox, count, to + (ox - first) * pixel, m);
      ox += count;
    }
  }

  void run_pixels(const Frame& frame, std::int64_t r, std::int64_t first, std::int64_t last, std::byte* memory) const {
    const T* in = static_cast<const T*>(frame.read(input));
    const std::int64_t element = epilogue.element, pixel = window.channels * multiplier;
    const std::int64_t begin = (r * window.out[2] + first) * pixel;  // elements of the output
    std::byte* to = epilogue.sums(frame, begin, memory);
    if (multiplier == 1) {
      row(in, r, first, last, to, element, 0);
    } else {
      std::byte* plain = memory + tile_bytes / 2;
      for (std::int64_t m = 0; m < multiplier; ++m) {
        row(in, r, first, last, plain, element, m);
        for (std::int64_t i = 0; i < (last - first) * window.channels; ++i)
          std::memcpy(to + (i * multiplier + m) * element, plain + i * element, static_cast<std::size_t>(element));
      }
    }
    epilogue.finish(frame, begin, begin + (last - first) * pixel, memory, memory + tile_bytes);
  }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const std::int64_t width = window.out[2];
    if (row_parts > 1) {
      const std::int64_t part = task % row_parts;
      return run_pixels(frame, task / row_parts, width * part / row_parts, width * (part + 1) / row_parts, memory);
    }
    const std::int64_t last = std::min(output_rows(), (task + 1) * rows_per_task);
    for (std::int64_t r = task * rows_per_task; r < last; ++r) run_pixels(frame, r, 0, width, memory);
  }
};

void make_part(Depthwise<float>& conv, const Graph& graph, const Node& node, std::int64_t m) {
  auto& part = conv.parts[static_cast<std::size_t>(m)];
  const auto* weight = reinterpret_cast<const float*>(graph[node.inputs[1]].constant.data());
  const auto bias = graph[node.inputs[2]].constant.as<float>();
  const std::int64_t channels = conv.window.channels, taps = conv.window.taps(), multiplier = conv.multiplier;
  const std::vector<std::int64_t> order = taps_by_columns(conv.window.kernel[1], conv.window.kernel[2], 1);
  part.weight.assign(static_cast<std::size_t>(taps * conv.padded), 0.0f);
  part.bias.assign(static_cast<std::size_t>(conv.padded), 0.0f);
  for (std::int64_t c = 0; c < channels; ++c) {
    part.bias[static_cast<std::size_t>(c)] = bias[bias.size() == 1 ? 0 : static_cast<std::size_t>(c * multiplier + m)];
    for (std::int64_t t = 0; t < taps; ++t)
      part.weight[static_cast<std::size_t>(t * conv.padded + c)] =
          weight[(order[static_cast<std::size_t>(t)] * channels + c) * multiplier + m];
  }
}

// The channel of each place of the constants: see DepthwiseI16Call. Places past the last channel repeat one.
std::vector<std::int64_t> channels_in_order(const DepthwiseI16Kernels& kernels, std::int64_t channels) {
  std::vector<std::int64_t> order;
  const std::int64_t width = kernels.lanes * kernels.vectors;
  for (std::int64_t chunk = 0; chunk * width < channels; ++chunk) {
    const std::int64_t first = std::max<std::int64_t>(0, std::min(chunk * width, channels - width));
    for (std::int64_t v = 0; v < kernels.vectors; ++v)
      for (std::int64_t i = 0; i < kernels.lanes; ++i)
        order.push_back(std::min(first + depthwise_i16_channel(kernels.vectors, v, i), channels - 1));
  }
  return order;
}

bool make_part(Depthwise<std::int16_t>& conv, const Graph& graph, const Node& node, std::int64_t m) {
  auto& part = conv.parts[static_cast<std::size_t>(m)];
  const auto* weight = reinterpret_cast<const std::int8_t*>(graph[node.inputs[1]].constant.data());
  const auto bias = graph[node.inputs[2]].constant.as<std::int64_t>();
  const Epilogue& e = conv.epilogue;
  const std::int64_t of_tap = conv.window.channels * conv.multiplier;
  const std::vector<std::int64_t> order = channels_in_order(conv.kernels, conv.window.channels);
  std::vector<std::int8_t> ordered, shifts;
  std::vector<std::int32_t> multipliers;
  for (std::int64_t t = 0; t < conv.window.taps(); ++t)
    for (const std::int64_t c : order) ordered.push_back(weight[t * of_tap + c * conv.multiplier + m]);
  part.packed =
      pack_depthwise({conv.kernels.lanes * conv.kernels.vectors, conv.kernels.group, conv.kernels.weight_bytes},
                     taps_by_columns(conv.window.kernel[1], conv.window.kernel[2], 1), ordered.data(),
                     std::ssize(order), std::ssize(order), 1, only_scalar(graph, node.inputs[4]));
  for (const std::int64_t c : order) {
    const auto at = static_cast<std::size_t>(c * conv.multiplier + m);
    part.wide_bias.push_back(bias[bias.size() == 1 ? 0 : at]);
    part.term.push_back(e.rescaled ? static_cast<std::int32_t>(part.wide_bias.back()) : 0);
    if (!e.rescaled) continue;
    multipliers.push_back(e.multiplier[e.multiplier.size() == 1 ? 0 : at]);
    shifts.push_back(e.shift[e.shift.size() == 1 ? 0 : at]);
  }
  if (e.rescaled) part.scales = rescale_columns(multipliers, shifts, std::ssize(order), conv.kernels.lanes);
  return true;
}

// What stands next to the packed weights: the bias less zero_terms(c), what the zero points make of channel c's
// weights, and its scale.
template <class ZeroTerms>
void add_constants(Depthwise<std::int8_t>& conv, std::span<const std::int32_t> bias, std::int64_t m,
                   const ZeroTerms& zero_terms) {
  auto& part = conv.parts[static_cast<std::size_t>(m)];
  part.term.assign(static_cast<std::size_t>(conv.padded), 0);
  const Epilogue& e = conv.epilogue;
  std::vector<std::int32_t> multipliers;
  std::vector<std::int8_t> shifts;
  for (std::int64_t c = 0; c < conv.window.channels; ++c) {
    const auto at = static_cast<std::size_t>(c * conv.multiplier + m);
    part.term[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(bias[bias.size() == 1 ? 0 : at] - zero_terms(c));
    if (!e.rescaled) continue;
    multipliers.push_back(e.multiplier[e.multiplier.size() == 1 ? 0 : at]);
    shifts.push_back(e.shift[e.shift.size() == 1 ? 0 : at]);
  }
  if (e.rescaled) part.scales = rescale_columns(multipliers, shifts, conv.window.channels, conv.kernels.lanes);
}

bool make_part(Depthwise<std::int8_t>& conv, const Graph& graph, const Node& node, std::int64_t m) {
  auto& part = conv.parts[static_cast<std::size_t>(m)];
  const auto* weight = reinterpret_cast<const std::int8_t*>(graph[node.inputs[1]].constant.data());
  const auto bias = graph[node.inputs[2]].constant.as<std::int32_t>();
  const std::int64_t channels = conv.window.channels, taps = conv.window.taps(), multiplier = conv.multiplier;
  const std::int32_t input_zp = only_scalar(graph, node.inputs[3]), weight_zp = only_scalar(graph, node.inputs[4]);
  const DepthwiseI8Kernels& kernels = conv.kernels;
  part.packed =
      pack_depthwise({conv.kernels.lanes, kernels.group, kernels.weight_bytes},
                     taps_by_columns(conv.window.kernel[1], conv.window.kernel[2], conv.by_columns ? kernels.group : 1),
                     weight + m, channels, channels * multiplier, multiplier, weight_zp);
  if (part.packed.empty()) return false;
  add_constants(conv, bias, m, [&](std::int64_t c) {
    std::int64_t sum = 0;
    for (std::int64_t t = 0; t < taps; ++t) sum += weight[(t * channels + c) * multiplier + m] - weight_zp;
    return (input_zp + kernels.offset) * sum;
  });
  return true;
}

// Groups of `own` channels have weights [channel][y][x][own]. Where in a channel's they are multiplied one after the
// other:
std::vector<std::int64_t> products_by_columns(const Window& window, std::int64_t own) {
  std::vector<std::int64_t> order;
  for (const std::int64_t tap : taps_by_columns(window.kernel[1], window.kernel[2], 1))
    for (std::int64_t i = 0; i < own; ++i) order.push_back(tap * own + i);
  return order;
}
// work(first channel) for each chunk of `lanes` channels; the last one ends with the last channel.
template <class Work>
void for_chunks_of(std::int64_t channels, std::int64_t lanes, const Work& work) {
  for (std::int64_t c = 0; c < channels; c += lanes) work(std::min(c, channels - lanes));
}

bool make_groups(Depthwise<float>& conv, const Graph& graph, const Node& node, std::int64_t own) {
  const auto* weight = reinterpret_cast<const float*>(graph[node.inputs[1]].constant.data());
  const auto bias = graph[node.inputs[2]].constant.as<float>();
  const std::int64_t channels = conv.window.channels, of_channel = conv.window.taps() * own;
  auto& part = conv.parts[0];
  const std::int64_t lanes = groups_f32_kernel().lanes;
  const std::vector<std::int64_t> order = products_by_columns(conv.window, own);
  for_chunks_of(channels, lanes, [&](std::int64_t first) {
    for (const std::int64_t product : order)
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        part.weight.push_back(weight[(first + lane) * of_channel + product]);
  });
  for (std::int64_t c = 0; c < channels; ++c)
    part.bias.push_back(bias[bias.size() == 1 ? 0 : static_cast<std::size_t>(c)]);
  return true;
}
bool make_groups(Depthwise<std::int8_t>& conv, const Graph& graph, const Node& node, std::int64_t own) {
  const GroupsI8Kernel& kernel = groups_i8_kernel();
  const auto* weight = reinterpret_cast<const std::int8_t*>(graph[node.inputs[1]].constant.data());
  const std::int32_t input_zp = only_scalar(graph, node.inputs[3]), weight_zp = only_scalar(graph, node.inputs[4]);
  const std::int64_t channels = conv.window.channels, of_channel = conv.window.taps() * own;
  auto& packed = conv.parts[0].packed;
  const std::vector<std::int64_t> order = products_by_columns(conv.window, own);
  bool fits = true;
  for_chunks_of(channels, kernel.lanes, [&](std::int64_t first) {
    const auto chunk = pack_depthwise({kernel.lanes, kernel.at_once, kernel.weight_bytes}, order,
                                      weight + first * of_channel, kernel.lanes, 1, of_channel, weight_zp);
    packed.insert(packed.end(), chunk.begin(), chunk.end());
    fits &= !chunk.empty();
  });
  if (!fits) return false;
  add_constants(conv, graph[node.inputs[2]].constant.as<std::int32_t>(), 0, [&](std::int64_t c) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < of_channel; ++i) sum += weight[c * of_channel + i] - weight_zp;
    return (input_zp + kernel.offset) * sum;
  });
  return true;
}

// Can sums be RESCALEd in i32?
template <class T>
bool sums_fit(const Graph& graph, const Node& node) {
  if constexpr (std::is_same_v<T, std::int16_t>) {
    const Value &weight = graph[node.inputs[1]], &bias = graph[node.inputs[2]];
    const Shape& shape = weight.type.shape;
    const std::int64_t taps = shape.size(0) * shape.size(1), columns = shape.size(2) * shape.size(3);
    return ShortSums({reinterpret_cast<const std::int8_t*>(weight.constant.data()), columns, taps, 1, columns,
                      only_scalar(graph, node.inputs[4])},
                     bias.constant.as<std::int64_t>())
        .fit_i32();
  }
  return Depthwise<T>::is_i8;
}

// Before its weights are packed.
template <class T>
std::shared_ptr<Depthwise<T>> begin(const Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  auto conv = std::make_shared<Depthwise<T>>();
  conv->window = window_of(planning.graph, node);
  conv->input = node.inputs[0];
  conv->window.channels = conv->window.pixel;
  conv->padded = (conv->window.channels + conv->kernels.lanes - 1) / conv->kernels.lanes * conv->kernels.lanes;
  conv->epilogue = find_epilogue(planning, n, sums_fit<T>(planning.graph, node));
  return conv;
}

template <class T>
void add_step(Planning& planning, std::uint32_t n, const std::shared_ptr<Depthwise<T>>& conv) {
  const T outside =
      Depthwise<T>::is_i8 ? static_cast<T>(only_scalar(planning.graph, planning.node(n).inputs[3])) : T{0};
  // A line, and what a vector of a pixel's last channels reads past it.
  conv->padding.assign(static_cast<std::size_t>(conv->window.channels * conv->window.in[2] + 64), outside);
  const std::int64_t rows = conv->output_rows();
  const std::int64_t wanted = wanted_tasks(planning.threads);
  // At least a few thousand multiplications a task.
  const std::int64_t row_work = std::max<std::int64_t>(1, conv->row_elements() * conv->window.taps());
  conv->rows_per_task = std::max({std::int64_t{1}, (rows + wanted - 1) / wanted, 32768 / row_work});
  if (conv->rows_per_task == 1)
    conv->row_parts = std::clamp<std::int64_t>(wanted / rows, 1, std::min(conv->window.out[2], row_work / 8192 + 1));
  const std::int64_t tile = conv->row_elements() * 8;
  conv->tile_bytes = conv->epilogue.chain || conv->multiplier > 1 ? 2 * align_up(static_cast<std::size_t>(tile)) : 0;
  conv->scratch = conv->tile_bytes + conv->epilogue.chain_bytes();
  Step step{.kernel = conv->of_groups          ? Depthwise<T>::is_float ? "groups_f32" : "groups_i8"
                      : Depthwise<T>::is_float ? "depthwise_f32"
                      : Depthwise<T>::is_i8    ? "depthwise_i8"
                                               : "depthwise_i16",
            .nodes = {n},
            .reads = {conv->input}};
  conv->epilogue.describe(step);
  step.scratch_per_thread = conv->scratch;
  step.run = [conv, rows](const Frame& frame) -> Status {
    const std::int64_t tasks = (rows + conv->rows_per_task - 1) / conv->rows_per_task * conv->row_parts;
    frame.pool.run(tasks, [&](std::int64_t task, int thread) {
      conv->run_task(frame, task, frame.scratch + static_cast<std::size_t>(thread) * conv->scratch);
    });
    return {};
  };
  planning.add(std::move(step));
}

template <class T>
bool take(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const auto conv = begin<T>(planning, n);
  if (conv->window.taps() > 128) return false;
  conv->multiplier = planning.type(node.inputs[1]).shape.size(3);
  if constexpr (Depthwise<T>::is_float || Depthwise<T>::is_i8) {
    const bool can = Depthwise<T>::is_i8 ? conv->epilogue.rescaled : conv->window.channels >= conv->kernels.lanes;
    conv->by_columns = conv->kernels.columns && can && conv->window.dilation[2] == 1 &&
                       takes_columns(conv->window.kernel[1], conv->window.kernel[2], conv->window.stride[2]);
  }
  conv->parts.resize(static_cast<std::size_t>(conv->multiplier));
  for (std::int64_t m = 0; m < conv->multiplier; ++m) {
    if constexpr (Depthwise<T>::is_float)
      make_part(*conv, planning.graph, node, m);
    else if (!make_part(*conv, planning.graph, node, m))
      return false;
  }
  add_step(planning, n, conv);
  return true;
}

// Of as many sums as channels.
template <class T, class Kernel>
bool take_narrow_groups(Planning& planning, std::uint32_t n, const Kernel& kernel) {
  const Node& node = planning.node(n);
  const TensorType& weight = planning.type(node.inputs[1]);
  const std::int64_t own = weight.shape.size(3);
  const auto conv = begin<T>(planning, n);
  const Window& window = conv->window;
  conv->of_groups = kernel.columns_of(own);
  conv->by_columns = true;
  if (!conv->of_groups || weight.dtype == DType::i4 || weight.shape.size(0) != window.channels ||
      window.channels < kernel.lanes || (Depthwise<T>::is_i8 && !conv->epilogue.rescaled) || window.dilation[2] != 1 ||
      window.kernel[1] != 3 || !takes_columns(window.kernel[1], window.kernel[2], window.stride[2]))
    return false;
  conv->parts.resize(1);
  if (!make_groups(*conv, planning.graph, node, own)) return false;
  give_back_joined(planning, node, window_of(planning.graph, node));
  add_step(planning, n, conv);
  return true;
}

}  // namespace

bool take_depthwise(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::depthwise_conv2d) return false;
  if (!planning.only_first_computed(node)) return false;
  const DType in = planning.type(node.inputs[0]).dtype;
  if (in == DType::f32) return take<float>(planning, n);
  const DType weight = planning.type(node.inputs[1]).dtype;
  if (in == DType::i8) return take<std::int8_t>(planning, n);
  if (in == DType::i16 && weight == DType::i8) return take<std::int16_t>(planning, n);
  return false;
}

bool take_groups(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != extension::op::grouped_conv2d) return false;
  if (is_convolution_of_floats(planning.graph, node))
    return take_narrow_groups<float>(planning, n, groups_f32_kernel());
  return is_convolution_of_i8(planning.graph, node) && take_narrow_groups<std::int8_t>(planning, n, groups_i8_kernel());
}

}  // namespace tosaic::cpu
