// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/pool.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/definitions/rest.h"
#include "ops/lowering/slicing.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// Windows must end where the input does (spec MAX_POOL2D: the output size divides exactly): more padding where
// the last one hangs over, less padding or input where some elements are never reached.
Val fitted(Builder& b, Val x, int axis, std::int64_t overhang, std::int64_t& pad_after) {
  if (overhang >= 0 || pad_after + overhang >= 0) {
    pad_after += overhang;
    return x;
  }
  const std::int64_t cut = -overhang - pad_after;
  pad_after = 0;
  return b.slice_axis(x, axis, 0, x.dim(axis) - cut);
}

struct Fitted {
  Val x;
  Ints pads;  // top, bottom, left, right
};
Fitted fit(Builder& b, const std::string& op, Val x, const Pooling& p) {
  Fitted f{x, {p.padding[0], p.padding[0], p.padding[1], p.padding[1]}};
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Coverage c =
        coverage(b, op, x.dim(1 + i), p.kernel[k], p.stride[k], p.padding[k], p.dilation[k], p.ceil_mode);
    // What is left at the end, or lacks, would be another node at another size.
    const std::int64_t more = p.ceil_mode ? p.stride[k] - 1 : 0, padded = p.padding[k] + more;
    if (b.spec() && b.spec()->has(tosa::sizes_vary) && padded < p.kernel[k])
      f.pads[2 * k + 1] = padded;
    else
      f.x = fitted(b, f.x, 1 + i, c.overhang, f.pads[2 * k + 1]);
  }
  return f;
}

// A dilated maximum: each of the dilation's phases is a tensor of its own, pooled without dilation and stride; the
// phases are then put together again and every stride-th result is kept.
Val dilated_max(Builder& b, Val x, const Ints& pads, const Pooling& p) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const std::int64_t dy = p.dilation[0], dx = p.dilation[1];
  const std::int64_t h = x.dim(1) + pads[0] + pads[1], w = x.dim(2) + pads[2] + pads[3];
  const std::int64_t extra_h = (dy - h % dy) % dy, extra_w = (dx - w % dx) % dx;
  x = b.pad(x, {0, pads[0], pads[2], 0}, {0, pads[1] + extra_h, pads[3] + extra_w, 0}, lowest);
  const std::int64_t n = x.dim(0), rows = (h + extra_h) / dy, columns = (w + extra_w) / dx, c = x.dim(3);
  Val phases = b.reshape(b.transpose(b.reshape(x, {n, rows, dy, columns, dx, c}), {0, 2, 4, 1, 3, 5}),
                         {n * dy * dx, rows, columns, c});
  Val pooled = b.max_pool2d(phases, p.kernel, {1, 1}, {0, 0, 0, 0});
  const std::int64_t oh = pooled.dim(1), ow = pooled.dim(2);
  Val y =
      b.reshape(b.transpose(b.reshape(pooled, {n, dy, dx, oh, ow, c}), {0, 3, 1, 4, 2, 5}), {n, oh * dy, ow * dx, c});
  const std::int64_t reach_h = h - (p.kernel[0] - 1) * dy, reach_w = w - (p.kernel[1] - 1) * dx;
  y = strided_slice(y, 1, 0, (reach_h - 1) / p.stride[0] + 1, p.stride[0]);
  return strided_slice(y, 2, 0, (reach_w - 1) / p.stride[1] + 1, p.stride[1]);
}

}  // namespace

Pooling pooling_of(Builder& b, const Call& call, int spatial) {
  Pooling p;
  p.kernel = call.spread("kernel_size", spatial);
  p.stride = call.spread("stride", spatial);
  if (p.stride.empty()) p.stride = p.kernel;
  p.padding = call.spread("padding", spatial);
  p.dilation = call.schema().argument("dilation") ? call.spread("dilation", spatial)
                                                  : Ints(static_cast<std::size_t>(spatial), 1);
  p.ceil_mode = call.flag("ceil_mode");
  const std::string& op = call.schema().name;
  for (const auto* list : {&p.kernel, &p.stride, &p.padding, &p.dilation}) {
    if (static_cast<int>(list->size()) != spatial)
      b.refuse("aten." + op + ".arguments", fmt::format("{} numbers for {} spatial dims", list->size(), spatial));
    for (std::int64_t n : *list)
      if (n > INT32_MAX) b.refuse("aten." + op + ".arguments", fmt::format("{} has more than 32 bits", n));
  }
  for (std::size_t i = 0; i < p.kernel.size(); ++i)
    if (p.kernel[i] < 1 || p.stride[i] < 1 || p.dilation[i] < 1 || p.padding[i] < 0 || 2 * p.padding[i] > p.kernel[i])
      b.refuse("aten." + op + ".arguments",
               fmt::format("kernel {}, stride {}, dilation {}, padding {} (at most half the kernel)", p.kernel[i],
                           p.stride[i], p.dilation[i], p.padding[i]));
  if (spatial == 1) {
    p.kernel.insert(p.kernel.begin(), 1);
    p.stride.insert(p.stride.begin(), 1);
    p.padding.insert(p.padding.begin(), 0);
    p.dilation.insert(p.dilation.begin(), 1);
  }
  return p;
}

Coverage coverage(Builder& b, const std::string& op, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding, std::int64_t dilation, bool ceil_mode) {
  const std::int64_t span = (kernel - 1) * dilation + 1, room = size + 2 * padding - span;
  if (room < 0)
    b.refuse("aten." + op + ".kernel-size",
             fmt::format("a window of {} does not fit the padded input of {}", span, size + 2 * padding));
  std::int64_t outputs = room / stride + 1;
  if (ceil_mode && room % stride != 0) {
    ++outputs;
    if ((outputs - 1) * stride >= size + padding)
      --outputs;  // a window must start inside the input or its left padding
  }
  return {outputs, (outputs - 1) * stride + span - size - 2 * padding};
}

Val max_pooled(Builder& b, const std::string& op, Val x, const Pooling& p) {
  Fitted f = fit(b, op, x, p);
  if (p.dilation[0] != 1 || p.dilation[1] != 1) return dilated_max(b, f.x, f.pads, p);
  return b.max_pool2d(f.x, p.kernel, p.stride, f.pads);
}

Val max_indices(Builder& b, const std::string& op, Val x, const Pooling& p) {
  constexpr std::int64_t most_taps = 128;  // each is a step of the program
  const std::size_t n = p.kernel.size();
  const bool integer = !is_float(x.dtype());
  if (integer) x = b.as_i32(x);
  Ints outputs, before(n + 2, 0), after(n + 2, 0), distance(n, 1);
  std::int64_t taps = 1;
  for (std::size_t k = 0; k < n; ++k) {
    const Coverage c = coverage(b, op, x.dim(static_cast<int>(k) + 1), p.kernel[k], p.stride[k], p.padding[k],
                                p.dilation[k], p.ceil_mode);
    outputs.push_back(c.outputs);
    before[k + 1] = p.padding[k];
    after[k + 1] = std::max<std::int64_t>(p.padding[k] + c.overhang, 0);
    if (p.kernel[k] > most_taps || (taps *= p.kernel[k]) > most_taps)
      b.refuse("aten." + op + ".window",
               fmt::format("the indices of maxima in windows of over {} elements", most_taps));
  }
  for (std::size_t k = n - 1; k-- > 0;) distance[k] = distance[k + 1] * x.dim(static_cast<int>(k) + 2);

  // Of each output: where its window begins, and how far from there its first element inside the input is.
  Ints begin, first, at(n, 0);
  for (bool more = true; more;) {
    std::int64_t start = 0, skipped = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const std::int64_t place = at[k] * p.stride[k] - p.padding[k];
      start += place * distance[k];
      if (place < 0) skipped += (-place + p.dilation[k] - 1) / p.dilation[k] * p.dilation[k] * distance[k];
    }
    begin.push_back(start);
    first.push_back(skipped);
    more = false;
    for (std::size_t k = n; k-- > 0 && !more;) {
      more = ++at[k] < outputs[k];
      if (!more) at[k] = 0;
    }
  }
  Ints dims = outputs;
  dims.insert(dims.begin(), 1);
  dims.push_back(1);

  Val padded = b.pad(x, before, after,
                     integer ? std::numeric_limits<std::int32_t>::lowest() : -std::numeric_limits<double>::infinity());
  std::optional<Val> best;
  const bool exact = distance[0] * x.dim(1) <= 1 << 24;
  const DType counted = !integer && exact ? DType::f32 : DType::i32;
  Val place = b.cast(b.integers(first, DType::i32, Shape(dims)), counted);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Val y = padded;
    std::int64_t rest = tap, offset = 0;
    for (std::size_t k = n; k-- > 0; rest /= p.kernel[k]) {
      const std::int64_t step = rest % p.kernel[k] * p.dilation[k];
      y = strided_slice(y, static_cast<int>(k) + 1, step, outputs[k], p.stride[k]);
      offset += step * distance[k];
    }
    if (best) {
      Val better = b.binary(tosa::op::greater, y, *best);
      if (!integer)
        better = b.binary(tosa::op::logical_or, better,
                          b.unary(tosa::op::logical_not, b.binary(tosa::op::equal, y, y)));  // NaN
      place = b.select(better, b.scalar(static_cast<double>(offset), counted), place);
      y = b.select(better, y, *best);
    }
    best = y;
  }
  place = b.add(place, b.cast(b.integers(begin, DType::i32, Shape(dims)), counted));
  return b.broadcast_to(place, best->shape());
}

// AVG_POOL2D divides by the number of elements inside the input. PyTorch also counts the padding when
// count_include_pad, but never what ceil_mode hangs over; divisor_override replaces the count.
Val avg_pooled(Builder& b, const std::string& op, Val x, const Pooling& p) {
  Fitted f = fit(b, op, x, p);
  const bool padded = p.padding[0] != 0 || p.padding[1] != 0;
  if (p.divisor) {
    if (*p.divisor == 0) b.refuse("aten." + op + ".divisor", "divisor_override is 0");
    x = b.pad(f.x, {0, f.pads[0], f.pads[2], 0}, {0, f.pads[1], f.pads[3], 0}, 0.0);
    const double factor = static_cast<double>(p.kernel[0] * p.kernel[1]) / static_cast<double>(*p.divisor);
    return b.scaled(b.avg_pool2d(x, p.kernel, p.stride, {0, 0, 0, 0}), factor);
  }
  if (p.count_include_pad && padded) {
    const std::int64_t bottom = std::min(f.pads[1], p.padding[0]), right = std::min(f.pads[3], p.padding[1]);
    x = b.pad(f.x, {0, f.pads[0], f.pads[2], 0}, {0, bottom, right, 0}, 0.0);
    return b.avg_pool2d(x, p.kernel, p.stride, {0, f.pads[1] - bottom, 0, f.pads[3] - right});
  }
  return b.avg_pool2d(f.x, p.kernel, p.stride, f.pads);
}

namespace {
// Pools the planes of N,D,H,W,C, then the depth; `pool(x, first)` pools N,H,W,C by the dims from `first` on.
template <class F>
Val by_planes_then_depth(Builder& b, Val x, F pool) {
  const std::int64_t n = x.dim(0), d = x.dim(1), c = x.dim(4);
  Val planes = pool(b.reshape(x, {n * d, x.dim(2), x.dim(3), c}), true);
  const std::int64_t h = planes.dim(1), w = planes.dim(2);
  Val y = pool(b.reshape(planes, {n, d, h * w, c}), false);
  return b.reshape(y, {n, y.dim(1), h, w, c});
}
}  // namespace

Val volume_pooled(Builder& b, const std::string& op, Val x, const Pooling& p, Pool kind) {
  return by_planes_then_depth(b, x, [&](Val y, bool planes) {
    Pooling q = p;
    for (auto* list : {&q.kernel, &q.stride, &q.padding, &q.dilation}) {
      if (planes)
        list->erase(list->begin());
      else
        *list = {list->front(), list == &q.padding ? 0 : 1};
    }
    if (p.divisor && planes) q.divisor = 1;  // sums first, the division at the end
    return kind == Pool::maximum ? max_pooled(b, op, y, q) : avg_pooled(b, op, y, q);
  });
}

Val adaptive_volume_pooled(Builder& b, const std::string& op, Val x, Ints outputs, Pool kind) {
  if (outputs.size() != 3) b.refuse("aten." + op + ".output-size", "no output size");
  return by_planes_then_depth(b, x, [&](Val y, bool planes) {
    return adaptive_pooled(b, op, y, planes ? Ints{outputs[1], outputs[2]} : Ints{outputs[0], y.dim(2)}, kind);
  });
}

namespace {
// Consecutive outputs whose bins have one length and one distance: a plain pool over a slice.
struct Run {
  std::int64_t start, length, stride, count;
};
std::vector<Run> runs_of(std::int64_t in, std::int64_t out) {
  std::vector<Run> runs;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t start = i * in / out, length = ((i + 1) * in + out - 1) / out - start;
    if (!runs.empty()) {
      Run& last = runs.back();
      const std::int64_t distance = start - (last.start + (last.count - 1) * last.stride);
      if (last.length == length && distance > 0 && (last.count == 1 || distance == last.stride)) {
        last.stride = distance;
        ++last.count;
        continue;
      }
    }
    runs.push_back({start, length, 1, 1});
  }
  return runs;
}
}  // namespace

Val adaptive_pooled(Builder& b, const std::string& op, Val x, Ints outputs, Pool kind) {
  if (outputs.size() != 2) b.refuse("aten." + op + ".output-size", "no output size");
  for (auto n : outputs)
    if (n < 1) b.refuse("aten." + op + ".output-size", fmt::format("output size {}", n));
  std::vector<Val> rows;
  for (const Run& y : runs_of(x.dim(1), outputs[0])) {
    Val band = b.slice_axis(x, 1, y.start, (y.count - 1) * y.stride + y.length);
    std::vector<Val> parts;
    for (const Run& r : runs_of(x.dim(2), outputs[1])) {
      Val part = b.slice_axis(band, 2, r.start, (r.count - 1) * r.stride + r.length);
      parts.push_back(kind == Pool::average
                          ? b.avg_pool2d(part, {y.length, r.length}, {y.stride, r.stride}, {0, 0, 0, 0})
                          : b.max_pool2d(part, {y.length, r.length}, {y.stride, r.stride}, {0, 0, 0, 0}));
    }
    rows.push_back(b.concat(parts, 2));
  }
  return b.concat(rows, 1);
}

}  // namespace tosaic
