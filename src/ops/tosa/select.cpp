// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View& view) {
  Shape shape = broadcast_shape(broadcast_shape(view.in(0).shape, view.in(1).shape), view.in(2).shape);
  return {TensorType{view.in(1).dtype, std::move(shape), std::nullopt}};
}

Status eval(const Run& run) {
  const Shape& shape = run.out[0].type.shape;
  const auto* condition = static_cast<const std::uint8_t*>(run.in[0].data);
  with_storage(run.out[0].type.dtype, [&]<class T>() {
    const T* a = static_cast<const T*>(run.in[1].data);
    const T* b = static_cast<const T*>(run.in[2].data);
    T* out = static_cast<T*>(run.out[0].data);
    for_each_position(
        shape, [&](const auto& at) { *out++ = condition[at[0]] ? a[at[1]] : b[at[2]]; },
        broadcasting(run.in[0].type.shape, shape), broadcasting(run.in[1].type.shape, shape),
        broadcasting(run.in[2].type.shape, shape));
  });
  return {};
}
}  // namespace

Op tosa_select() {
  return {.name = "select",
          .schema_number = 45,
          .spirv_number = 44,
          .summary = "a where the condition is true, b elsewhere, with broadcasting",
          .inputs = {{"input1", "bool"}, {"input2", "in_out"}, {"input3", "in_out"}},
          .outputs = {{"output", "in_out"}},
          .types = either("in_out", {DType::boolean}) + integers("in_out", {DType::i8, DType::i16, DType::i32}) +
                   floats("in_out") + int64s("in_out"),
          .infer = infer,
          .check = [](const View& view) { return check_broadcast(view, 3); },
          .eval = eval,
          .moves = Moves::chosen,
          .elementwise = true,
          .bounds = bounds::second_or_third,
          .core_aten = aten::op::where_self};
}
}  // namespace tosaic::tosa
