// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/definitions/bounds.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View& view) { return {view.in(0)}; }

Status eval(const Run& run) {
  std::memcpy(run.out[0].data, run.in[0].data, run.in[0].type.storage_bytes());
  return {};
}
}  // namespace

Op tosa_identity() {
  using enum DType;
  return {
      .name = "identity",
      .schema_number = 68,
      .spirv_number = 0xffff,
      .summary = "the operand itself",
      .inputs = {{"input1", "in_out"}},
      .attrs = {},
      .outputs = {{"output", "in_out"}},
      .types = either("in_out", {boolean, i8, i16, i32}) + rows({Feature::int4}, "in_out", {i4}) +
               rows({Feature::int16}, "in_out", {i48}) + fp8s("in_out") + floats("in_out") + int64s("in_out"),
      .infer = infer,
      .eval = eval,
      .moves = Moves::all,
      .elementwise = true,
      .bounds = bounds::first,
      .core_aten = aten::op::clone,
  };
}
}  // namespace tosaic::tosa
