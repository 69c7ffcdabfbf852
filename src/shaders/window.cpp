// SPDX-License-Identifier: Apache-2.0
// Pools and RESIZE: an invocation makes one element, or a group the mean of a whole image.
#include "ir/sized_attribute.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/scaling.h"
#include "shaders/functions.h"
#include "shaders/group_fold.h"

namespace tosaic::shaders {
namespace {

// The part of a window that lies inside the input: [begin, end).
struct Part {
  Value begin, end;
};
struct Axis {
  Value size, kernel, before, stride, out;
  Part covered(Value o) const {
    const Value first = o * stride - before;
    return {largest(first, first.shader->integer(0)), smallest(first + kernel, size)};
  }
};

// Of kernel, stride or pad: of a pool over a whole image it may be a size.
Dim window_number(const Node& node, std::string_view name, std::size_t i) {
  return sized_attribute(node.attrs, name, i).value_or(node.attrs.get<std::vector<std::int64_t>>(name)[i]);
}

// sum / count by TOSA's reciprocal of each count that there can be; + output zero point, held to the dtype.
Value mean_of_integers(Kernel& s, const tosa::View& view, Value sum, Value count, std::int64_t most) {
  std::vector<std::int32_t> multipliers{0}, shifts{0};
  for (std::int64_t n = 1; n <= most; ++n) {
    const tosa::ReciprocalScale scale = tosa::reciprocal_scale(static_cast<std::uint32_t>(n));
    multipliers.push_back(scale.multiplier);
    shifts.push_back(scale.shift);
  }
  const Buffer multiplier = s.integers(multipliers), shift = s.integers(shifts);
  const Value by = s.load(shift, count), before = by - 1;
  const Value bit = s.integer(1) << (before & 31), is_low = before < 32, zero = s.integer(0);
  const Value half{&s, s.select(is_low, bit, zero).id, Kind::wide, s.select(is_low, zero, bit).id};
  const Value product = s.wide_product(sum, s.load(multiplier, count), true);
  const Value mean = shift_right_wide(add_wide(product, half), by).low_word();
  const IntegerRange range = range_of(view.out().dtype);
  return clamped(mean + s.param((*view.constant_integers(2))[0]), range.lowest, range.highest);
}

}  // namespace

MadeList make_pool(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  const bool is_mean = node.op == tosa::op::avg_pool2d, floating = is_float(view.in(0).dtype);
  const auto kernel = [&](std::size_t i) { return window_number(node, "kernel", i); };
  const bool quads = reads_texels(work.tier) && has_quads(view.in(0).dtype) && end.has_quads(work.graph, out[3]);
  const int lanes = quads ? 4 : 1;
  Kernel s(work, std::string(node.op.base()), floor_div(elements_of(out), lanes));
  const Value channels = s.param(out[3]);
  const auto axis = [&](std::size_t i) {
    const int dim = static_cast<int>(i) + 1;
    return Axis{s.param(in[dim]), s.param(kernel(i)), s.param(window_number(node, "pad", 2 * i)),
                s.param(window_number(node, "stride", i)), s.param(out[dim])};
  };
  const Axis y = axis(0), x = axis(1);
  const Value first = quads ? s.index() * 4 : s.index();
  const Value pixel = first / channels, channel = first % channels;
  const Value row = pixel / x.out, image = row / y.out;
  const Part rows = y.covered(row % y.out), columns = x.covered(pixel % x.out);
  const auto load = [&](Value iy, Value ix) {
    return load_lanes(s, node.inputs[0], ((image * y.size + iy) * x.size + ix) * channels + channel, lanes);
  };
  const bool ignores = !is_mean && floating && view.text("nan_mode") == "ignore";
  const Value nothing = floating ? s.real(0) : s.integer(0);
  std::vector<Variable> results;
  for (Value begin :
       is_mean ? std::vector<Value>(static_cast<std::size_t>(lanes), nothing) : load(rows.begin, columns.begin))
    results.push_back(s.variable(begin));
  std::optional<Value> zero_point;
  if (is_mean && !floating) zero_point = s.param((*view.constant_integers(1))[0]);
  s.loop(rows.begin, rows.end, s.integer(1), [&](Value iy) {
    s.loop(columns.begin, columns.end, s.integer(1), [&](Value ix) {
      const std::vector<Value> elements = load(iy, ix);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const Value before = results[i].get();
        results[i].set(!is_mean     ? larger(before, elements[i], ignores)
                       : zero_point ? before + (elements[i] - *zero_point)
                                    : before + elements[i]);
      }
    });
  });
  const Value count = (rows.end - rows.begin) * (columns.end - columns.begin);
  std::vector<Value> values;
  s.repeat(lanes, [&](int i) {
    const Value value = results[static_cast<std::size_t>(i)].get();
    values.push_back(!is_mean   ? value
                     : floating ? value / s.signed_to_real(count)
                                : mean_of_integers(s, view, value, count,
                                                   most(min(kernel(0), in[1])) * most(min(kernel(1), in[2]))));
  });
  end.store_lanes(s, first, values);
  return one(s);
}

bool has_one_window(const tosa::View& view) {
  const Shape& in = view.in(0).shape;
  const Dim height = window_number(view.node(), "kernel", 0), width = window_number(view.node(), "kernel", 1);
  return in[1] == height && in[2] == width && view.all_are("pad", 0) &&
         GroupFold::takes({in[0], height * width, in[3]}, view.in(0).dtype);
}

MadeList make_shared_pool(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& in = view.in(0).shape;
  const Lines lines{in[0], in[1] * in[2], in[3]};
  Kernel s(work, "avg_pool2d", GroupFold::groups_of(lines));
  const bool floating = is_float(view.in(0).dtype);
  std::optional<Value> zero_point;
  if (!floating) zero_point = s.param((*view.constant_integers(1))[0]);
  const Buffer input = s.input(node.inputs[0]);
  GroupFold fold(
      s, lines,
      [&](Value element) {
        const Value x = s.load(input, element);
        return zero_point ? x - *zero_point : x;
      },
      [&](Value a, Value b) { return a + b; });
  const Value count = s.param(lines.size);
  fold.for_lines([&](Value line, Value sum) {
    end.store(s, line,
              floating ? sum / s.signed_to_real(count) : mean_of_integers(s, view, sum, count, most(lines.size)));
  });
  return one(s);
}

namespace {

// The two neighbours of an output position, and how far it lies after the first, in units of 1/n.
struct Sample {
  Value first, second, distance, n;
};
Sample sample(Kernel& s, const Dim& size, std::int64_t n, std::int64_t d, std::int64_t offset, Value o) {
  const Value scale = s.param(n), last = s.param(size - 1), zero = s.integer(0);
  // Offsets reach down to -n: one more n makes everything positive, for an unsigned quotient.
  const Value at = o * s.param(d) + s.param(offset + n);
  const Value whole = at / scale - 1;
  return {smallest(largest(whole, zero), last), smallest(largest(whole + 1, zero), last), at - (whole + 1) * scale,
          scale};
}

// v00 * (uy - dy) * (ux - dx) + ... of integers; i16 gives sums of 48 bits.
Value weighed(Kernel& s, const Value (&v)[4], const Value (&weight)[4], DType result) {
  const Sum sum = Sum::of(s, result);
  for (int i = 0; i < 4; ++i)
    sum.add(storage_size(result) == 8 ? s.wide_product(v[i], weight[i], true) : v[i] * weight[i]);
  return sum.sum.get();
}

}  // namespace

MadeList make_resize(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  const auto scale = *view.constant_integers(1), offset = *view.constant_integers(2);
  const bool bilinear = view.text("mode") == "bilinear";
  Kernel s(work, "resize", elements_of(out));
  const Value channels = s.param(out[3]), width = s.param(out[2]), height = s.param(out[1]), in_width = s.param(in[2]),
              in_height = s.param(in[1]);
  const Buffer input = s.input(node.inputs[0]);
  const Value pixel = s.index() / channels, channel = s.index() % channels;
  const Value row = pixel / width, image = row / height;
  const Sample y = sample(s, in[1], scale[0], scale[1], offset[0], row % height);
  const Sample x = sample(s, in[2], scale[2], scale[3], offset[1], pixel % width);
  const auto load = [&](Value iy, Value ix) {
    return s.load(input, ((image * in_height + iy) * in_width + ix) * channels + channel);
  };
  if (!bilinear) {
    const auto near = [&](const Sample& a) { return s.select(a.distance * 2 >= a.n, a.second, a.first); };
    end.store(s, s.index(), load(near(y), near(x)));
    return one(s);
  }
  const Value v[] = {load(y.first, x.first), load(y.first, x.second), load(y.second, x.first),
                     load(y.second, x.second)};
  if (!is_float(view.in(0).dtype)) {
    const Value weight[] = {(y.n - y.distance) * (x.n - x.distance), (y.n - y.distance) * x.distance,
                            y.distance * (x.n - x.distance), y.distance * x.distance};
    end.store(s, s.index(), weighed(s, v, weight, view.out().dtype));
    return one(s);
  }
  const Value dy = s.signed_to_real(y.distance) / s.signed_to_real(y.n),
              dx = s.signed_to_real(x.distance) / s.signed_to_real(x.n), unit = s.real(1);
  const Value sum =
      v[0] * (unit - dy) * (unit - dx) + v[1] * (unit - dy) * dx + v[2] * dy * (unit - dx) + v[3] * dy * dx;
  end.store(s, s.index(), sum);
  return one(s);
}

}  // namespace tosaic::shaders
