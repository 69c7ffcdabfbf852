// SPDX-License-Identifier: Apache-2.0
// CONV and DEPTHWISE: out[y][x][o] = sum over taps and inputs of (ifm - zero point) * weight, then the output stage.
#include <fmt/format.h>
#include <algorithm>

#include "ethosu/conv_kernel.h"
#include "ethosu/operations.h"
#include "ethosu/weights.h"

namespace tosaic::ethosu {
namespace {

struct Convolution {
  Context& context;
  OutputStage& out;
  const WindowInput& in;
  const Kernel& kernel;
  const DecodedWeights& weights;
  bool depthwise;
  // Sums that an earlier operation left, one per OFM element; or null.
  const std::int64_t* initial = nullptr;

  std::int64_t padded_h() const { return (out.shape().h - 1) * kernel.stride_y + kernel.extent_h(); }
  std::int64_t padded_w() const { return (out.shape().w - 1) * kernel.stride_x + kernel.extent_w(); }
  Status run_plainly();
  Status run_fast();
  // The whole input with its padding as zeros: `width` pixels a row, channels [0, stride) of each.
  struct Plane {
    std::int64_t width, stride;
    std::vector<std::int16_t> values;
    const std::int16_t* pixel(const Kernel& kernel, std::int64_t y, std::int64_t x) const {
      return values.data() + (y * kernel.stride_y * width + x * kernel.stride_x) * stride;
    }
  };
  // Stretches of the input whose products add up within 32 bits, and where their weights begin.
  struct Group {
    std::vector<Stretch> stretches;
    std::int64_t first_pair;
  };
  std::vector<Group> groups_of_sums(const Plane& plane) const;
  void run_depthwise(const Plane& plane);
  void run_dense(const Plane& plane);
  void dense_row(const Plane& plane, const Group& group, std::int64_t y, std::int64_t b0, std::int64_t b1,
                 std::int32_t* sums) const;
  void fill(Plane& plane);
  Scratch& of(int thread) const { return context.scratch[static_cast<std::size_t>(thread)]; }
  std::int64_t largest_input() const { return in.operand().layout.type.bytes == 1 ? 510 : 32768; }
  bool sums_fit() const { return weights.largest_sum * largest_input() + out.largest_bias() <= INT32_MAX && !initial; }
  void finish(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int64_t* sums,
              std::int64_t stride);
};

// The obvious loops: what the fast ones are compared with, and what serves rare types.
Status Convolution::run_plainly() {
  const Shape3 shape = out.shape(), window = in.window();
  const Padding& pad = in.padding();
  const std::int64_t row = window.w * window.c;
  if (window.elements() > most_elements / 4)
    return error("ethosu.too-large", fmt::format("an IFM of {} elements", window.elements()));
  std::vector<std::int64_t> plane(static_cast<std::size_t>(window.h * row));
  for (std::int64_t y = 0; y < window.h; ++y) in.read(context.scratch[0], y, plane.data() + y * row);
  context.pool.run(shape.h, [&](std::int64_t y, int thread) {
    Scratch& scratch = of(thread);
    std::int64_t* sums = Scratch::of(scratch.wide_sums, shape.w * shape.c);
    for (std::int64_t x = 0; x < shape.w; ++x)
      for (std::int64_t o = 0; o < shape.c; ++o) {
        std::int64_t sum = 0;
        for (std::int64_t ky = 0; ky < kernel.h; ++ky)
          for (std::int64_t kx = 0; kx < kernel.w; ++kx) {
            const std::int64_t iy = y * kernel.stride_y + ky * kernel.dilation_y - pad.top;
            const std::int64_t ix = x * kernel.stride_x + kx * kernel.dilation_x - pad.left;
            if (iy < 0 || iy >= window.h || ix < 0 || ix >= window.w) continue;
            const std::int64_t* input = plane.data() + iy * row + ix * window.c;
            const std::int16_t* w = weights.dense.of(o) + (ky * kernel.w + kx) * weights.dense.inputs;
            if (depthwise)
              sum += input[o] * w[0];
            else
              for (std::int64_t i = 0; i < window.c; ++i) sum += input[i] * w[i];
          }
        sums[x * shape.c + o] = sum;
      }
    finish(scratch, y, 0, shape.c, sums, shape.c);
  });
  return {};
}

void Convolution::finish(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int64_t* sums,
                         std::int64_t stride) {
  if (initial)
    for (std::int64_t x = 0; x < out.shape().w; ++x)
      for (std::int64_t c = c0; c < c1; ++c)
        sums[x * stride + c - c0] += initial[(y * out.shape().w + x) * out.shape().c + c];
  out.finish_row(scratch, y, c0, c1, sums, stride);
}

void Convolution::fill(Plane& plane) {
  plane.values.assign(static_cast<std::size_t>(padded_h() * plane.width * plane.stride), 0);
  context.pool.run(padded_h(), [&](std::int64_t y, int thread) {
    std::int16_t* row = plane.values.data() + y * plane.width * plane.stride;
    const std::int64_t iy = y - in.padding().top;
    if (iy < 0 || iy >= in.window().h) return;  // the plane is zero from the start
    in.read(of(thread), iy, row + in.padding().left * plane.stride, plane.stride);
  });
}

void Convolution::run_depthwise(const Plane& plane) {
  const Shape3 shape = out.shape();
  std::vector<std::int64_t> offsets;
  for (std::int64_t ky = 0; ky < kernel.h; ++ky)
    for (std::int64_t kx = 0; kx < kernel.w; ++kx)
      offsets.push_back((ky * kernel.dilation_y * plane.width + kx * kernel.dilation_x) * plane.stride);
  const bool short_way = sums_fit();
  context.pool.run(shape.h, [&](std::int64_t y, int thread) {
    Scratch& scratch = of(thread);
    std::int32_t* sums = Scratch::of(scratch.sums, shape.w * plane.stride);
    for (std::int64_t x = 0; x < shape.w; ++x)
      depthwise_pixel({plane.pixel(kernel, y, x), offsets.data(), kernel.h * kernel.w, plane.stride,
                       weights.packed.data(), sums + x * plane.stride});
    if (short_way) return out.finish_row(scratch, y, 0, shape.c, sums, plane.stride);
    std::int64_t* wide = Scratch::of(scratch.wide_sums, shape.w * plane.stride);
    std::copy_n(sums, shape.w * plane.stride, wide);
    finish(scratch, y, 0, shape.c, wide, plane.stride);
  });
}

// Whole kernel rows where they are consecutive.
std::vector<Convolution::Group> Convolution::groups_of_sums(const Plane& plane) const {
  const std::int64_t products = INT32_MAX / std::max<std::int64_t>(1, largest_input() * weights.largest);
  const std::int64_t most_pairs = std::max<std::int64_t>(1, products / 2);
  std::vector<Group> groups(1, Group{{}, 0});
  std::int64_t held = 0, pair = 0;
  const auto add = [&](std::int64_t offset, std::int64_t pairs) {
    while (pairs > 0) {
      if (held == most_pairs) groups.push_back({{}, pair}), held = 0;
      const std::int64_t take = std::min(pairs, most_pairs - held);
      groups.back().stretches.push_back({offset, take});
      offset += 2 * take, pairs -= take, held += take, pair += take;
    }
  };
  for (std::int64_t ky = 0; ky < kernel.h; ++ky) {
    const std::int64_t row = ky * kernel.dilation_y * plane.width * plane.stride;
    if (kernel.dilation_x == 1)
      add(row, kernel.w * plane.stride / 2);
    else
      for (std::int64_t kx = 0; kx < kernel.w; ++kx) add(row + kx * kernel.dilation_x * plane.stride, plane.stride / 2);
  }
  return groups;
}

// The sums of one group for row y and blocks [b0, b1) of outputs.
void Convolution::dense_row(const Plane& plane, const Group& group, std::int64_t y, std::int64_t b0, std::int64_t b1,
                            std::int32_t* sums) const {
  const std::int64_t width = out.shape().w, sum_stride = (b1 - b0) * block_outputs;
  const std::int64_t block_values = kernel.h * kernel.w * plane.stride * block_outputs;
  for (std::int64_t b = b0; b < b1; ++b)
    for (std::int64_t x = 0; x < width; x += most_pixels) {
      DenseCall call;
      call.count = static_cast<int>(std::min<std::int64_t>(most_pixels, width - x));
      for (int p = 0; p < call.count; ++p) call.pixels[p] = plane.pixel(kernel, y, x + p);
      call.stretches = group.stretches.data();
      call.stretch_count = static_cast<std::int64_t>(group.stretches.size());
      call.weights = weights.packed.data() + b * block_values + group.first_pair * 2 * block_outputs;
      call.sums = sums + x * sum_stride + (b - b0) * block_outputs;
      call.stride = sum_stride;
      dense_block(call);
    }
}

void Convolution::run_dense(const Plane& plane) {
  const Shape3 shape = out.shape();
  const std::vector<Group> groups = groups_of_sums(plane);
  const bool short_way = groups.size() == 1 && sums_fit();
  // A row is one task; a row of few pixels is shared by blocks of channels.
  const std::int64_t blocks = (shape.c + block_outputs - 1) / block_outputs;
  const std::int64_t parts = shape.h >= 4 ? 1 : std::min<std::int64_t>(blocks, 4);
  context.pool.run(shape.h * parts, [&](std::int64_t task, int thread) {
    const std::int64_t y = task / parts, part = task % parts;
    const std::int64_t b0 = blocks * part / parts, b1 = blocks * (part + 1) / parts;
    const std::int64_t c0 = b0 * block_outputs, c1 = std::min(b1 * block_outputs, shape.c);
    const std::int64_t sum_stride = (b1 - b0) * block_outputs;
    Scratch& scratch = of(thread);
    std::int32_t* sums = Scratch::of(scratch.sums, shape.w * sum_stride);
    std::vector<std::int64_t>& wide = scratch.wide_sums;
    wide.assign(short_way ? 0 : static_cast<std::size_t>(shape.w * sum_stride), 0);
    for (const Group& group : groups) {
      dense_row(plane, group, y, b0, b1, sums);
      for (std::size_t i = 0; i < wide.size(); ++i) wide[i] += sums[i];
    }
    if (short_way)
      out.finish_row(scratch, y, c0, c1, sums, sum_stride);
    else
      finish(scratch, y, c0, c1, wide.data(), sum_stride);
  });
}

Status Convolution::run_fast() {
  const std::int64_t depth = in.depth();
  Plane plane{padded_w(), depthwise ? (depth + 15) / 16 * 16 : (depth + 1) / 2 * 2, {}};
  if (static_cast<double>(padded_h()) * static_cast<double>(plane.width) * static_cast<double>(plane.stride) >
      static_cast<double>(most_elements))
    return error("ethosu.too-large", fmt::format("an IFM of {}x{}x{}", padded_h(), plane.width, depth));
  fill(plane);
  depthwise ? run_depthwise(plane) : run_dense(plane);
  return {};
}

// U85: weights that an earlier operation computed, in IFM2: [1][outputs][inputs].
Result<std::shared_ptr<const DecodedWeights>> weights_in_ifm2(Context& context, std::int64_t outputs,
                                                              std::int64_t inputs, const Kernel& kernel) {
  TOSAIC_TRY(const Operand operand, ifm2_operand(context.registers, Broadcasts::no));
  if (kernel.h * kernel.w != 1) return error("ethosu.undecidable", "weights from IFM2 with a kernel larger than 1x1");
  if (operand.broadcast.scalar || operand.layout.type.bytes > 2)
    return error("ethosu.undecidable", "weights from IFM2 that are not 8-bit or 16-bit elements in memory");
  const bool fits = operand.layout.type.bytes == 1 ? std::abs(operand.zero_point) <= 255
                                                   : operand.layout.type.is_signed && operand.zero_point == 0;
  if (!fits)
    return error("ethosu.undecidable", fmt::format("weights from IFM2 with zero point {}", operand.zero_point));
  TOSAIC_TRY(const FeatureMap map, place_operand(context, operand, {1, outputs, inputs}, false, "IFM2"));
  if (outputs * inputs > most_elements) return error("ethosu.too-large", "the weights in IFM2");
  auto weights = std::make_shared<DecodedWeights>();
  weights->dense = {outputs, 1, 1, inputs, std::vector<std::int16_t>(static_cast<std::size_t>(outputs * inputs))};
  std::vector<std::int64_t> row(static_cast<std::size_t>(outputs * inputs));
  map.read_row(0, 0, outputs, 0, inputs, row.data());
  for (std::size_t i = 0; i < row.size(); ++i)
    weights->dense.values[i] = static_cast<std::int16_t>(row[i] - operand.zero_point);
  finish_weights(*weights, false);
  return std::shared_ptr<const DecodedWeights>(weights);
}

}  // namespace

Result<OutputStage> run_convolution(Context& context, bool depthwise, bool weights_from_ifm2) {
  const Registers& r = context.registers;
  TOSAIC_TRY(const Kernel kernel, kernel_of(r));
  TOSAIC_TRY(const Accumulation accumulation, accumulation_of(r));
  const bool per_channel = r.get<"OFM_PRECISION", "scale_mode">() == 0;
  if (!per_channel && !r.u85())
    return error("ethosu.undecidable", "a convolution with one global scale: what becomes of its bias is not known");
  TOSAIC_TRY(OutputStage out,
             OutputStage::create(context, per_channel ? Scaling::per_channel : Scaling::global, accumulation));
  const std::int64_t depth = depthwise ? out.shape().c : ifm_depth(r);
  TOSAIC_TRY(const WindowInput in, WindowInput::create(context, out, kernel, depth));
  if (!r.u85() && r.get<"ACC_FORMAT", "acc_format">() == 2)
    return error("ethosu.undecidable", "16-bit float accumulators");
  const Shape3& shape = out.shape();
  TOSAIC_CHECK(context.spend(static_cast<double>(shape.h) * static_cast<double>(shape.w) *
                             static_cast<double>(shape.c) * static_cast<double>(kernel.h) *
                             static_cast<double>(kernel.w) * static_cast<double>(depthwise ? 1 : depth)));
  const int ifm_bits = 8 * in.operand().layout.type.bytes;
  std::shared_ptr<const DecodedWeights> weights;
  if (weights_from_ifm2) {
    if (depthwise) return error("ethosu.undecidable", "depthwise weights from IFM2");
    TOSAIC_TRY(weights, weights_in_ifm2(context, shape.c, depth, kernel));
  } else {
    TOSAIC_TRY(weights, load_weights(context, depthwise, shape.c, depthwise ? 1 : depth, kernel, ifm_bits));
  }
  TOSAIC_TRY(const std::vector<std::int64_t> initial, initial_sums(context, accumulation.from, shape));
  if (r.missing()) return out;  // the caller refuses; nothing is stored

  Convolution conv{context, out, in, kernel, *weights, depthwise, initial.empty() ? nullptr : initial.data()};
  const std::int64_t largest_input = in.operand().layout.type.bytes == 1 ? 510 : 32768;
  const bool taps_fit =
      !depthwise || static_cast<double>(weights->largest_sum) * static_cast<double>(largest_input) < INT32_MAX;
  // Weights of 16 bits (from IFM2) would overflow a pair of products.
  const bool plainly = context.slow || !in.fits_int16() || !taps_fit || weights->largest > 510;
  TOSAIC_CHECK(plainly ? conv.run_plainly() : conv.run_fast());
  TOSAIC_CHECK(out.close(context));
  return out;
}

}  // namespace tosaic::ethosu
