// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  if (Check c = check_binary(view)) return c;
  if (Check c = check_length(view, 2, 1)) return c;
  const auto shift = view.constant_integers(2);
  if (shift && (shift->front() < 0 || shift->front() > 63))
    return broken("mul.shift-range", "shift {} is outside 0..63", shift->front());
  if (shift && shift->front() != 0 && view.in(0).dtype != DType::i32)
    return broken("mul.shift-dtype", "shift {} needs i32 operands, they are {}", shift->front(),
                  name_of(view.in(0).dtype));
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  TensorType type = infer_broadcast(view)[0];
  return {is_float(type.dtype) || type.dtype == DType::i64 ? type : type.with(DType::i32)};
}

// Integers of any width give an i32: the low 32 bits of the product, or the product >> shift rounded half up.
template <class T>
Status multiply_integers(const Run& run, const Walk& a_walk, const Walk& b_walk, std::int64_t shift) {
  const T* a = static_cast<const T*>(run.in[0].data);
  const T* b = static_cast<const T*>(run.in[1].data);
  auto* out = static_cast<std::int32_t*>(run.out[0].data);
  bool bad = false;
  for_each_position(
      run.out[0].type.shape,
      [&](const auto& at) {
        std::int64_t product = std::int64_t{a[at[0]]} * b[at[1]];
        if (shift > 0) {  // equals (product + 2^(shift-1)) >> shift, which could overflow
          product = ((product >> (shift - 1)) + 1) >> 1;
          bad = bad || !fits<std::int32_t>(product);
        }
        *out++ = static_cast<std::int32_t>(product);
      },
      a_walk, b_walk);
  if (bad) return unpredictable(run, fmt::format("a product shifted right by {} does not fit i32", shift));
  return {};
}

Status eval(const Run& run) {
  if (run.out[0].type.dtype == DType::i64)
    return map_binary<[](auto a, auto b) { return a * b; }, Domain::integers>(run);
  if (is_float(run.out[0].type.dtype)) return map_binary<[](double a, double b) { return a * b; }, Domain::floats>(run);
  const std::int64_t shift = integers_of(run.in[2]).front();
  const Shape& shape = run.out[0].type.shape;
  const Walk a = broadcasting(run.in[0].type.shape, shape), b = broadcasting(run.in[1].type.shape, shape);
  Status status;
  with_integer_storage(run.in[0].type.dtype, [&]<class T>() { status = multiply_integers<T>(run, a, b, shift); });
  return status;
}
}  // namespace

Op tosa_mul() {
  return {.name = "mul",
          .schema_number = 28,
          .spirv_number = 27,
          .summary = "a * b, with broadcasting; i32 products may be shifted right",
          .inputs = {{"input1", "in"}, {"input2", "in"}, {"shift", "i8", 1, 1, false, true}},
          .outputs = {{"output", "out"}},
          .types = with(integers("in", {DType::i8, DType::i16}) + either("in", {DType::i32}), "out", DType::i32) +
                   with_same(floats("in") + int64s("in"), "in", "out"),
          .infer = infer,
          .check = check,
          .eval = eval,
          .elementwise = true,
          .bounds = bounds::product,
          .in_core_aten = [](const View& node, CoreAten& calls) {
            const auto shift = node.constant_integers(2);
            if (!shift || shift->front() != 0 || node.in(0).dtype != node.out().dtype) return false;
            return calls.gives(aten::op::mul_Tensor, {calls.operand(0), calls.operand(1)});
          }};
}
}  // namespace tosaic::tosa
