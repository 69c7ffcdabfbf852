// SPDX-License-Identifier: Apache-2.0
// POOL: maximum, minimum, sum and average over a window, the sum over the depth, and the plain copies that are written
// as averages over one element.
#include <fmt/format.h>
#include <algorithm>
#include <bit>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

enum Mode : std::uint32_t {
  max = 0,
  average = 1,
  reduce_sum = 2,
  sum = 3,
  none = 4,
  min = 5,
  argmax_x = 6,
  argmax_y = 7
};

// 1 / n as the hardware divides when it counts the elements itself: 31 bits after the leading one, rounded up.
Scale reciprocal(std::int64_t n) {
  const int k = n == 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(n - 1));
  const int bits = mutated("pool.reciprocal") ? 24 : 31;
  const std::int64_t one = std::int64_t{1} << (bits + k), more = std::int64_t{1} << k;
  return {static_cast<std::uint32_t>((one + more) / n), static_cast<std::uint8_t>(bits + k)};
}

struct Pool {
  Context& context;
  OutputStage& out;
  const WindowInput& in;
  const Kernel& kernel;
  std::uint32_t mode;
  bool divides_by_count = false;
  const std::vector<std::int64_t>* initial = nullptr;

  void run_row(Scratch& scratch, std::int64_t y);

 private:
  using Values = std::vector<std::int64_t>;
  // Rows of the window that lie inside the input.
  std::int64_t gather(Scratch& scratch, std::int64_t y, Values& sums);
  void take(const std::int64_t* from, std::int64_t kx, std::int64_t* to, std::int64_t* positions) const;
  void divide(std::int64_t rows, Values& sums) const;
};

// One pixel of the window joins what has been found.
void Pool::take(const std::int64_t* from, std::int64_t kx, std::int64_t* to, std::int64_t* positions) const {
  const std::int64_t depth = in.window().c;
  switch (mode) {
    case Mode::max:
      for (std::int64_t c = 0; c < depth; ++c) to[c] = std::max(to[c], from[c]);
      break;
    case Mode::min:
      for (std::int64_t c = 0; c < depth; ++c) to[c] = std::min(to[c], from[c]);
      break;
    case Mode::argmax_x:  // the first of equals, as in TOSA
      for (std::int64_t c = 0; c < depth; ++c) {
        const bool better = mutated("pool.argmax_ties") ? from[c] >= to[c] : from[c] > to[c];
        if (better) to[c] = from[c], positions[c] = kx;
      }
      break;
    default:
      for (std::int64_t c = 0; c < depth; ++c) to[c] += from[c];
  }
}

std::int64_t Pool::gather(Scratch& scratch, std::int64_t y, Values& sums) {
  const Shape3 shape = out.shape(), window = in.window();
  const Padding& pad = in.padding();
  const std::int64_t depth = window.c;
  const bool argmax = mode == Mode::argmax_x;
  Values& positions = scratch.positions;
  if (argmax) positions.assign(static_cast<std::size_t>(shape.w * depth), 0);
  std::int64_t* row = Scratch::of(scratch.input, window.w * depth);
  std::int64_t rows = 0;
  for (std::int64_t ky = 0; ky < kernel.h; ++ky) {
    const std::int64_t iy = y * kernel.stride_y + ky * kernel.dilation_y - pad.top;
    if (iy < 0 || iy >= window.h) {
      if (mutated("pool.max_padding") && mode == Mode::max)
        for (auto& s : sums) s = std::max<std::int64_t>(s, 0);
      continue;
    }
    ++rows;
    in.read(scratch, iy, row);
    for (std::int64_t x = 0; x < shape.w; ++x)
      for (std::int64_t kx = 0; kx < kernel.w; ++kx) {
        const std::int64_t ix = x * kernel.stride_x + kx * kernel.dilation_x - pad.left;
        if (ix < 0 || ix >= window.w) continue;
        take(row + ix * depth, kx, sums.data() + x * depth, argmax ? positions.data() + x * depth : nullptr);
      }
  }
  if (argmax)  // the place in the upper half, which the output scale keeps
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = positions[i] << 16;
  return rows;
}

void Pool::divide(std::int64_t rows, Values& sums) const {
  const std::int64_t width = out.shape().w, depth = in.window().c;
  for (std::int64_t x = 0; x < width; ++x) {
    std::int64_t columns = 0;
    for (std::int64_t kx = 0; kx < kernel.w; ++kx) {
      const std::int64_t ix = x * kernel.stride_x + kx * kernel.dilation_x - in.padding().left;
      columns += ix >= 0 && ix < in.window().w;
    }
    const std::int64_t count =
        mutated("pool.count_padding") ? kernel.h * kernel.w : std::max<std::int64_t>(1, rows * columns);
    const Scale scale = reciprocal(count);
    for (std::int64_t c = 0; c < depth; ++c) {
      std::int64_t& value = sums[static_cast<std::size_t>(x * depth + c)];
      value = rescale(value, scale, Rounding::natural);
    }
  }
}

void Pool::run_row(Scratch& scratch, std::int64_t y) {
  const Shape3 shape = out.shape();
  const std::int64_t depth = in.window().c;
  const std::int64_t start = mode == Mode::max || mode == Mode::argmax_x ? INT64_MIN
                             : mode == Mode::min                         ? INT64_MAX
                                                                         : 0;
  Values& sums = scratch.wide_sums;
  sums.assign(static_cast<std::size_t>(shape.w * depth), start);
  const std::int64_t rows = gather(scratch, y, sums);
  if (initial)
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += (*initial)[static_cast<std::size_t>(y * shape.w * depth) + i];
  if (divides_by_count) divide(rows, sums);
  if (mode != Mode::reduce_sum) return out.finish_row(scratch, y, 0, shape.c, sums.data(), shape.c);
  for (std::int64_t x = 0; x < shape.w; ++x) {
    std::int64_t total = 0;
    for (std::int64_t c = 0; c < depth; ++c) total += sums[static_cast<std::size_t>(x * depth + c)];
    sums[static_cast<std::size_t>(x)] = total;
  }
  out.finish_row(scratch, y, 0, 1, sums.data(), 1);
}

}  // namespace

Result<OutputStage> run_pool(Context& context, std::uint32_t mode) {
  const Registers& r = context.registers;
  if (mode > (r.u85() ? 7u : 2u)) return error("ethosu.reserved", fmt::format("pooling mode {}", mode));
  TOSAIC_TRY(const Kernel kernel, kernel_of(r));
  const bool per_channel = r.get<"OFM_PRECISION", "scale_mode">() == 0;
  TOSAIC_TRY(const Accumulation accumulation, accumulation_of(r));
  if (mode == Mode::argmax_y) return error("ethosu.undecidable", "ARGMAX along y: not seen and checked");
  if (mode == Mode::none && accumulation.from == Sums::reset)
    return error("ethosu.undecidable", "pooling mode NONE without accumulators");
  if (mode != Mode::none && (accumulation.from != Sums::reset || accumulation.stays))
    return error("ethosu.undecidable", fmt::format("pooling mode {} with accumulators of other operations", mode));
  TOSAIC_TRY(OutputStage out,
             OutputStage::create(context, per_channel ? Scaling::per_channel : Scaling::global, accumulation));
  const Shape3& shape = out.shape();
  if (mode == Mode::none) {
    TOSAIC_TRY(std::vector<std::int64_t> sums, initial_sums(context, accumulation.from, shape));
    if (r.missing()) return out;
    for (std::int64_t y = 0; y < shape.h; ++y)
      out.finish_row(context.scratch[0], y, 0, shape.c, sums.data() + y * shape.w * shape.c, shape.c);
    TOSAIC_CHECK(out.close(context));
    return out;
  }
  if (mode == Mode::reduce_sum && (shape.c != 1 || kernel.h * kernel.w != 1))
    return error("ethosu.undecidable",
                 fmt::format("REDUCE_SUM with a kernel of {}x{} and an OFM depth of {}", kernel.h, kernel.w, shape.c));
  if (mode == Mode::argmax_x && kernel.h != 1) return error("ethosu.undecidable", "ARGMAX along x over several rows");
  const std::int64_t depth = mode == Mode::reduce_sum ? ifm_depth(r) : shape.c;
  TOSAIC_TRY(const WindowInput in, WindowInput::create(context, out, kernel, depth));
  TOSAIC_CHECK(context.spend(
      (static_cast<double>(shape.w) * static_cast<double>(kernel.w) + static_cast<double>(in.window().w)) *
      static_cast<double>(shape.h) * static_cast<double>(kernel.h) * static_cast<double>(depth)));
  if (shape.w * depth > most_elements) return error("ethosu.too-large", "an OFM row");
  Pool pool{context, out, in, kernel, mode};
  if (mode == Mode::average) {
    // U55 and U65 multiply by OFM_SCALE, which holds 1/n, unless there is padding; U85 always counts.
    const bool small = kernel.h <= 8 && kernel.w <= 8;
    if (per_channel && (kernel.h * kernel.w != 1 || in.padding().any()))
      return error("ethosu.undecidable", "an average over several elements with a scale per channel");
    pool.divides_by_count = r.u85() ? small : in.padding().any();
    if (!r.u85() && pool.divides_by_count && !out.global_scale().unit())
      return error("ethosu.undecidable", "an average with padding and a scale besides: how they combine is not known");
    if (r.u85() && !small) return error("ethosu.undecidable", fmt::format("an average over {}x{}", kernel.h, kernel.w));
    if (r.u85() && !out.global_scale().unit() && kernel.h * kernel.w != 1)
      return error("ethosu.undecidable",
                   "an average over several elements and a scale besides: how they combine is not known");
    if (r.u85() && kernel.h * kernel.w == 1) pool.divides_by_count = false;
  }
  if (r.missing()) return out;
  context.pool.run(
      shape.h, [&](std::int64_t y, int thread) { pool.run_row(context.scratch[static_cast<std::size_t>(thread)], y); });
  TOSAIC_CHECK(out.close(context));
  return out;
}

}  // namespace tosaic::ethosu
