// SPDX-License-Identifier: Apache-2.0
#include "ethosu/weight_order.h"

#include <fmt/format.h>
#include <algorithm>

#include "ethosu/mutate.h"

namespace tosaic::ethosu {
namespace {

constexpr std::int64_t sub_kernel = 8;  // taps per axis at dilation 1
constexpr std::int64_t ifm_group = 8;   // input channels that a MAC unit takes at once

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }
std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// What a walk does at every weight: place(o, y, x, i) for one that exists, zeros(n) for padding. keep_going() is asked
// once per group, so that a walk over absurd sizes stops early.
template <class Visitor>
void walk_u55(const WeightOrder& order, const Weights& shape, int stream, Visitor& visit) {
  const std::int64_t cores = order.streams;
  const std::int64_t outputs = (shape.outputs + cores - 1 - stream) / cores;
  const std::int64_t block = std::max<std::int64_t>(1, (order.ofm_block_depth + cores - 1 - stream) / cores);
  const std::int64_t micro = mutated("order.u55_micro_block") ? order.ofm_micro_depth / 2 : order.ofm_micro_depth;
  const std::int64_t ifm_block = order.part_kernel || order.ifm_bits == 16 ? 16 : 32;
  const std::int64_t round = order.depthwise ? 4 : order.part_kernel ? (order.ifm_bits == 16 ? 2 : 4) : 1;
  const std::int64_t step_y = sub_kernel / order.dilation_y, step_x = sub_kernel / order.dilation_x;

  for (std::int64_t ob = 0; ob < outputs; ob += block) {
    const std::int64_t ofm_depth = std::min(block, outputs - ob);
    for (std::int64_t ib = 0; ib < (order.depthwise ? 1 : shape.inputs); ib += ifm_block) {
      const std::int64_t ifm_depth = order.depthwise     ? 1
                                     : order.part_kernel ? std::min(ifm_block, shape.inputs - ib)
                                                         : ifm_block;
      // Depth-first goes through the IFM micro-blocks innermost, part-kernel outermost.
      const std::int64_t outer = order.part_kernel && !order.depthwise ? divide_up(ifm_depth, ifm_group) : 1;
      const std::int64_t inner = order.part_kernel || order.depthwise ? 1 : divide_up(ifm_depth, ifm_group);
      for (std::int64_t ky = 0; ky < shape.kernel_h; ky += step_y) {
        for (std::int64_t kx = 0; kx < shape.kernel_w; kx += step_x) {
          const std::int64_t h = std::min(step_y, shape.kernel_h - ky), w = std::min(step_x, shape.kernel_w - kx);
          const std::int64_t elements = round_up(h * w, round);
          for (std::int64_t iu = 0; iu < outer; ++iu)
            for (std::int64_t ou = 0; ou < ofm_depth; ou += micro)
              for (std::int64_t e = 0; e < elements; ++e)
                for (std::int64_t in = 0; in < inner; ++in) {
                  if (!visit.keep_going()) return;
                  const std::int64_t i0 = ib + (iu + in) * ifm_group;
                  const std::int64_t lanes = order.depthwise ? 1 : ifm_group;
                  for (std::int64_t o = 0; o < micro; ++o) {
                    const std::int64_t local = ob + ou + o;
                    const std::int64_t real =
                        e < h * w && ou + o < ofm_depth ? std::clamp<std::int64_t>(shape.inputs - i0, 0, lanes) : 0;
                    const std::int64_t channel = mutated("order.u65_interleave") && cores > 1
                                                     ? local + stream * divide_up(shape.outputs, 2)
                                                     : local * cores + stream;
                    for (std::int64_t i = 0; i < real; ++i) visit.place(channel, ky + e / w, kx + e % w, i0 + i);
                    visit.zeros(lanes - real);
                  }
                }
        }
      }
    }
  }
}

struct U85Steps {
  std::int64_t ifm_block, unit, round;
};
U85Steps u85_steps(const WeightOrder& order) {
  U85Steps steps{};
  if (order.part_kernel && !order.depthwise)
    steps.ifm_block = 16;
  else if (order.sparse && order.ifm_bits == 8)
    steps.ifm_block = 128;
  else if (order.ifm_bits == 32 || (order.macs <= 256 && order.ofm_micro_depth == 16))
    steps.ifm_block = 32;
  else
    steps.ifm_block = 64;
  steps.unit = order.depthwise ? 1 : order.part_kernel && order.ifm_bits == 16 && !order.sparse ? 8 : steps.ifm_block;
  steps.round = order.depthwise ? 10 : order.part_kernel ? (order.ifm_bits == 16 || order.sparse ? 10 : 5) : 1;
  return steps;
}

// One micro-block of output channels over one sub-kernel: the strided phases, each in zig-zag, then the padding.
template <class Visitor>
void walk_u85_micro_block(const WeightOrder& order, const Weights& shape, const U85Steps& steps, int stream,
                          std::int64_t ky, std::int64_t kx, std::int64_t i0, std::int64_t o0, Visitor& visit) {
  constexpr std::int64_t interleave = 4;
  const std::int64_t step_y = sub_kernel / order.dilation_y, step_x = sub_kernel / order.dilation_x;
  const std::int64_t h = std::min(step_y, shape.kernel_h - ky), w = std::min(step_x, shape.kernel_w - kx);
  const bool phased = (order.part_kernel || order.depthwise) && !mutated("order.u85_phases");
  const std::int64_t phases_y = phased ? order.stride_y : 1, phases_x = phased ? order.stride_x : 1;
  const std::int64_t lanes = order.depthwise ? 1 : order.sparse ? 16 : ifm_group;
  const std::int64_t depthwise_zeros = order.ifm_bits != 16 && order.macs <= 256 ? 0 : order.macs <= 512 ? 2 : 6;
  std::int64_t left = round_up(h * w, steps.round);
  for (std::int64_t py = 0; py < phases_y; ++py)
    for (std::int64_t px = 0; px < phases_x; ++px) {
      const std::int64_t rows = divide_up(h - py, phases_y), columns = divide_up(w - px, phases_x);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          if (!visit.keep_going()) return;
          --left;
          const bool back = row % 2 == 1 && !mutated("order.u85_zig_zag");
          const std::int64_t y = ky + py + row * phases_y;
          const std::int64_t x = kx + px + (back ? columns - 1 - column : column) * phases_x;
          for (std::int64_t group = 0; group < steps.unit; group += lanes)
            for (std::int64_t q = stream * interleave; q < order.ofm_micro_depth; q += interleave * order.streams)
              for (std::int64_t o = o0 + q; o < o0 + q + interleave; ++o) {
                const std::int64_t first = i0 + group;
                const std::int64_t real =
                    o < shape.outputs ? std::clamp<std::int64_t>(shape.inputs - first, 0, lanes) : 0;
                for (std::int64_t i = 0; i < real; ++i) visit.place(o, y, x, first + i);
                visit.zeros(lanes - real);
              }
          if (order.depthwise && left % steps.round == 0 && !mutated("order.u85_depthwise_padding"))
            visit.zeros(depthwise_zeros * order.ofm_micro_depth / order.streams);
        }
    }
  visit.zeros(std::max<std::int64_t>(left, 0) * steps.unit * order.ofm_micro_depth / order.streams);
  if (left > 0 && order.depthwise) visit.zeros(depthwise_zeros * order.ofm_micro_depth / order.streams);
}

template <class Visitor>
void walk_u85(const WeightOrder& order, const Weights& shape, int stream, Visitor& visit) {
  const U85Steps steps = u85_steps(order);
  const std::int64_t step_y = sub_kernel / order.dilation_y, step_x = sub_kernel / order.dilation_x;
  const std::int64_t ifm_blocks = order.depthwise ? 1 : divide_up(shape.inputs, steps.ifm_block);
  bool forward = true;
  for (std::int64_t ob = 0; ob < shape.outputs; ob += order.ofm_block_depth, forward = !forward) {
    const std::int64_t ofm_depth = std::min(order.ofm_block_depth, shape.outputs - ob);
    for (std::int64_t n = 0; n < ifm_blocks; ++n) {
      const bool onward = forward || mutated("order.u85_serpentine");
      const std::int64_t ib = (onward ? n : ifm_blocks - 1 - n) * steps.ifm_block;
      const std::int64_t ifm_depth = order.depthwise ? 1 : std::min(steps.ifm_block, shape.inputs - ib);
      for (std::int64_t kx = 0; kx < shape.kernel_w; kx += step_x)
        for (std::int64_t ky = 0; ky < shape.kernel_h; ky += step_y)
          for (std::int64_t unit = 0; unit < ifm_depth; unit += steps.unit)
            for (std::int64_t ou = 0; ou < ofm_depth; ou += order.ofm_micro_depth) {
              if (!visit.keep_going()) return;
              walk_u85_micro_block(order, shape, steps, stream, ky, kx, ib + unit, ob + ou, visit);
            }
    }
  }
}

template <class Visitor>
void walk(const WeightOrder& order, const Weights& shape, int stream, Visitor& visit) {
  if (order.u85)
    walk_u85(order, shape, stream, visit);
  else
    walk_u55(order, shape, stream, visit);
}

struct Counter {
  std::size_t count = 0, limit = 0;
  bool keep_going() const { return count <= limit; }
  void place(std::int64_t, std::int64_t, std::int64_t, std::int64_t) { ++count; }
  void zeros(std::int64_t n) { count += static_cast<std::size_t>(n); }
};

struct Placer {
  const std::int16_t* next;
  Weights& weights;
  bool padding_is_zero = true;
  bool keep_going() const { return true; }
  void place(std::int64_t o, std::int64_t y, std::int64_t x, std::int64_t i) {
    weights.values[static_cast<std::size_t>(((o * weights.kernel_h + y) * weights.kernel_w + x) * weights.inputs + i)] =
        *next++;
  }
  void zeros(std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) padding_is_zero &= next[k] == 0;
    next += n;
  }
};

}  // namespace

std::size_t count_weights(const WeightOrder& order, const Weights& shape, int stream, std::size_t limit) {
  Counter counter{0, limit};
  walk(order, shape, stream, counter);
  return counter.keep_going() ? counter.count : 0;
}

Status arrange_weights(const WeightOrder& order, const std::vector<std::int16_t>& decoded, int stream,
                       Weights& weights) {
  Placer placer{decoded.data(), weights};
  walk(order, weights, stream, placer);
  if (!placer.padding_is_zero)
    return error("ethosu.weights", "the weight stream has values where the traversal order pads with zeros")
        .note("block depth or traversal in the commands differ from those the weights were encoded for");
  return {};
}

}  // namespace tosaic::ethosu
