// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  for (std::size_t i : {1u, 2u}) {
    if (Check c = check_length(view, i, 1)) return c;
    const auto zero_point = constant_scalar(view, i);
    if (zero_point && *zero_point != 0 && view.in(0).dtype != DType::i8)
      return broken(i == 1 ? "negate.input-zero-point" : "negate.output-zero-point",
                    "zero point {} needs an i8 operand, it is {}", *zero_point, name_of(view.in(0).dtype));
  }
  return std::nullopt;
}

// out = zo - (in - zi), saturated to i8 and i16; i32 must not overflow.
Status eval(const Run& run) {
  const DType dtype = run.out[0].type.dtype;
  if (is_float(dtype)) return map_unary<[](double x) { return 0 - x; }>(run);
  if (dtype == DType::i32 || dtype == DType::i64) return map_unary<[](auto x) { return -x; }, Domain::integers>(run);
  const std::int64_t zeros = integers_of(run.in[1]).front() + integers_of(run.in[2]).front();
  const auto [lowest, highest] = range_of(dtype);
  with_integer_storage(dtype, [&, lowest = lowest, highest = highest]<class T>() {
    const auto in = run.in[0].as<T>();
    const auto out = run.out[0].as<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(std::clamp(zeros - in[i], lowest, highest));
  });
  return {};
}
}  // namespace

Op tosa_negate() {
  return {.name = "negate",
          .schema_number = 41,
          .spirv_number = 40,
          .summary = "-x, element by element; i8 with zero points",
          .inputs = {{"input1", "in_out"},
                     {"input1_zp", "in_out", 1, 1, false, true},
                     {"output_zp", "in_out", 1, 1, false, true}},
          .outputs = {{"output", "in_out"}},
          .types = integers("in_out", {DType::i8, DType::i16, DType::i32}) + floats("in_out") + int64s("in_out"),
          .infer = same_as_input,
          .check = check,
          .eval = eval,
          .elementwise = true,
          .bounds = bounds::negative,
          .core_aten = aten::op::neg};
}
}  // namespace tosaic::tosa
