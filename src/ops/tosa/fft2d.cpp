// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/fourier.h"

namespace tosaic::tosa {
namespace {

std::vector<TensorType> infer(const View& view) {
  const TensorType type = view.in(0).with(std::nullopt);
  return {type, type};
}

Check check(const View& view) {
  if (view.in(0).shape.sizes() != view.in(1).shape.sizes())
    return broken("fft2d.shapes", "the real part is [{}], the imaginary part [{}]", to_string(view.in(0).shape),
                  to_string(view.in(1).shape));
  return check_powers_of_two(view);
}

Status eval(const Run& run) {
  Complex x{as_doubles(run.in[0]), as_doubles(run.in[1])};
  transform_planes(x, run.in[0].type.shape, run.view.flag("inverse") ? 1 : -1);
  store_doubles(run.out[0], 0, x.real);
  store_doubles(run.out[1], 0, x.imag);
  return {};
}

}  // namespace

Op tosa_fft2d() {
  return {
      .name = "fft2d",
      .schema_number = 6,
      .spirv_number = 5,
      .summary = "the 2-D Fourier transform of complex planes, or its inverse without the division",
      .inputs = {{"input_real", "in_out", 3, 3}, {"input_imag", "in_out", 3, 3}},
      .attrs = {{"inverse", AttrKind::boolean}, {"local_bound", AttrKind::boolean}},
      .outputs = {{"output_real", "in_out", 3, 3}, {"output_imag", "in_out", 3, 3}},
      .types = rows({Feature::fft}, "in_out", {DType::f32}),
      .infer = infer,
      .check = check,
      .level = level_fourier,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
