// SPDX-License-Identifier: Apache-2.0
// FFT2D and RFFT2D: rows, then columns, in place in the outputs.
#include <cmath>
#include <numbers>

#include "c_source/elements.h"
#include "c_source/writer.h"
#include "ir/tosa_operators.h"

namespace tosaic::c_source {
namespace {

// cos(2 pi k / size) for half a turn, or the sine; exact at the quarter turns, as the interpreter has it.
Bytes turns(std::int64_t size, bool sine) {
  std::vector<float> table;
  for (std::int64_t k = 0; k < (size + 1) / 2; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    const double value = sine ? std::sin(angle) : std::cos(angle);
    table.push_back(static_cast<float>(4 * k % size == 0 ? std::round(value) : value));
  }
  return Bytes::of(std::move(table));
}

}  // namespace

bool take_fourier(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const bool of_reals = node.op == tosa::op::rfft2d;
  if (!of_reals && node.op != tosa::op::fft2d) return false;
  const tosa::View view = planning.view(n);
  const Shape &in = view.in(0).shape, &out = view.out().shape;
  const std::int64_t batches = in.size(0), height = in.size(1), width = in.size(2), out_width = out.size(2);
  // Sizes are powers of two, so that the turns of the shorter axis are among those of the longer one.
  const std::int64_t most = std::max(height, width);
  const auto table = [&](bool sine) {
    return planning.add_constant({DType::f32, Shape{(most + 1) / 2}, {}}, turns(most, sine));
  };
  const ValueId cosines = table(false), sines = table(true);
  const std::string real = name_of_value(node.outputs[0]), imaginary = name_of_value(node.outputs[1]);
  const int inverse = !of_reals && view.flag("inverse");
  Writer w;
  w.line("const tosaic_turns t = {{{}, {}, {}, {}}};", name_of_value(cosines), name_of_value(sines), most, inverse);
  if (!of_reals) {
    w.line("memcpy({}, {}, {});", real, name_of_value(node.inputs[0]), view.out().storage_bytes());
    w.line("memcpy({}, {}, {});", imaginary, name_of_value(node.inputs[1]), view.out().storage_bytes());
  }
  w.open("for (int32_t row = 0; row < {}; ++row)", batches * height);
  if (of_reals)
    w.line("tosaic_rfft(&t, {1}, {0} + row * {1}, {2} + row * {4}, {3} + row * {4});", name_of_value(node.inputs[0]),
           width, real, imaginary, out_width);
  else
    w.line("tosaic_fft(&t, {0}, 1, {1} + row * {0}, {2} + row * {0});", width, real, imaginary);
  w.close();
  w.loop("n", batches);
  w.open("for (int32_t x = 0; x < {}; ++x)", out_width);
  w.line("tosaic_fft(&t, {0}, {1}, {2} + n * {4} + x, {3} + n * {4} + x);", height, out_width, real, imaginary,
         height * out_width);
  w.close();
  w.close();
  std::vector<ValueId> reads = node.inputs;
  reads.insert(reads.end(), {cosines, sines});
  planning.add({{n}, std::move(reads), node.outputs, w.take()});
  return true;
}

}  // namespace tosaic::c_source
