// SPDX-License-Identifier: Apache-2.0
// FFT2D and RFFT2D as their definition says: an invocation adds up a plane for one element of the result. Sums of rows
// first, which keeps what is added of like size.
#include <cmath>
#include <numbers>

#include "shaders/kernels.h"

namespace tosaic::shaders {
namespace {

// cos(2 pi i / size), or the sine; exact at the quarter turns, so that real signals keep real sums.
Bytes turns(std::int64_t size, bool sine) {
  std::vector<float> table;
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
    const double value = sine ? std::sin(angle) : std::cos(angle);
    table.push_back(static_cast<float>(4 * i % size == 0 ? std::round(value) : value));
  }
  return Bytes::of(std::move(table));
}

}  // namespace

// Height and width are powers of two, so that the turns of both axes are those of the larger one. Nothing is fused
// behind two results.
MadeList make_fourier(const Work& work, const Node& node, const Finish& end) {
  if (end.output() != end.root()) return std::nullopt;
  const tosa::View view(work.graph, node);
  const bool has_imaginary = node.inputs.size() > 1;
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  const std::int64_t most = std::max(in.size(1), in.size(2));
  Kernel s(work, std::string(tosa::find(node.op)->name), elements_of(out));
  const Value height = s.param(in.size(1)), width = s.param(in.size(2)), out_width = s.param(out.size(2)),
              all = s.param(most - 1);
  const Buffer real = s.input(node.inputs[0]), imaginary = has_imaginary ? s.input(node.inputs[1]) : real;
  const Buffer cosines = s.constant(DType::f32, turns(most, false)), sines = s.constant(DType::f32, turns(most, true));
  const Value column = s.index() % out_width, line = s.index() / out_width;
  // How far around an element further down, and further right, turns.
  const Value down = line % height * s.param(most / in.size(1)), right = column * s.param(most / in.size(2));
  const Value plane = line / height * height;
  // The inverse turns the other way.
  const bool inverse = has_imaginary && view.flag("inverse");
  const Value zero = s.integer(0), one_more = s.integer(1);
  const Variable sum_real = s.variable(s.real(0)), sum_imaginary = s.variable(s.real(0));
  s.loop(zero, height, one_more, [&](Value y) {
    const Variable row_real = s.variable(s.real(0)), row_imaginary = s.variable(s.real(0));
    s.loop(zero, width, one_more, [&](Value x) {
      const Value at = (plane + y) * width + x, turn = (y * down + x * right) & all;
      const Value c = s.load(cosines, turn), d = s.load(sines, turn), a = s.load(real, at);
      Value re = a * c, im = inverse ? a * d : -(a * d);
      if (has_imaginary) {
        const Value b = s.load(imaginary, at), turned = b * d;
        re = inverse ? re - turned : re + turned;
        im = im + b * c;
      }
      row_real.set(row_real.get() + re);
      row_imaginary.set(row_imaginary.get() + im);
    });
    sum_real.set(sum_real.get() + row_real.get());
    sum_imaginary.set(sum_imaginary.get() + row_imaginary.get());
  });
  s.store(s.output(node.outputs[0]), s.index(), sum_real.get());
  s.store(s.output(node.outputs[1]), s.index(), sum_imaginary.get());
  return one(s);
}

}  // namespace tosaic::shaders
