// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/fourier.h"

namespace tosaic::tosa {
namespace {

// [N, H, W] -> [N, H, W/2 + 1]: the other half of a real signal's transform is this one's conjugate.
std::vector<TensorType> infer(const View& view) {
  TensorType type = view.in(0).with(std::nullopt);
  type.shape.set(2, floor_div(type.shape[2], 2) + 1);
  return {type, type};
}

Status eval(const Run& run) {
  const Shape &in = run.in[0].type.shape, &out = run.out[0].type.shape;
  Complex x{as_doubles(run.in[0]), {}};
  x.imag.resize(x.real.size());
  transform_planes(x, in, -1);
  const auto half = static_cast<std::size_t>(out.size(2));
  for (std::int64_t row = 0; row < in.size(0) * in.size(1); ++row) {
    const auto from = static_cast<std::size_t>(row * in.size(2));
    store_doubles(run.out[0], row * out.size(2), std::span(x.real).subspan(from, half));
    store_doubles(run.out[1], row * out.size(2), std::span(x.imag).subspan(from, half));
  }
  return {};
}

}  // namespace

Op tosa_rfft2d() {
  return {
      .name = "rfft2d",
      .schema_number = 9,
      .spirv_number = 8,
      .summary = "the 2-D Fourier transform of real planes, the half that is not redundant",
      .inputs = {{"input_real", "in_out", 3, 3}},
      .attrs = {{"local_bound", AttrKind::boolean}},
      .outputs = {{"output_real", "in_out", 3, 3}, {"output_imag", "in_out", 3, 3}},
      .types = rows({Feature::fft}, "in_out", {DType::f32}),
      .infer = infer,
      .check = check_powers_of_two,
      .level = level_fourier,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
