// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/definitions/bounds.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
using enum DType;
using Pairs = std::initializer_list<std::pair<DType, DType>>;

TypeRows pairs(Feature needs, Pairs list, std::optional<Feature> and_needs = std::nullopt) {
  TypeRows result;
  for (auto [in, out] : list) result.push_back({{needs}, {{"in", in}, {"out", out}}, and_needs});
  return result;
}

TypeRows types() {
  TypeRows result;
  for (DType in : {boolean, i8, i16, i32})
    for (DType out : {boolean, i8, i16, i32})
      if (in != out) result = result + pairs(Feature::pro_int, {{in, out}});
  for (DType integer : {i8, i16, i32})
    result = result + pairs(Feature::pro_fp, {{integer, f16}, {integer, f32}, {f16, integer}, {f32, integer}}) +
             pairs(Feature::bf16, {{integer, bf16}, {bf16, integer}});
  result = result + pairs(Feature::pro_fp, {{f16, f32}, {f32, f16}}) + pairs(Feature::bf16, {{bf16, f32}, {f32, bf16}});
  for (auto [fp8, feature] : {std::pair{f8e4m3, Feature::fp8e4m3}, std::pair{f8e5m2, Feature::fp8e5m2}})
    result = result + pairs(feature, {{fp8, f16}, {fp8, f32}, {f16, fp8}, {f32, fp8}}) +
             pairs(feature, {{fp8, bf16}, {bf16, fp8}}, Feature::bf16);
  // TOSA 1.1.
  result = result + pairs(Feature::pro_fp, {{boolean, f32}, {f32, boolean}}, Feature::v1_1);
  for (DType other : {boolean, i8, i16, i32, f16, f32})
    result = result + pairs(Feature::int64, {{other, i64}, {i64, other}});
  result = result + pairs(Feature::int64, {{bf16, i64}, {i64, bf16}}, Feature::bf16);
  return result;
}

// Nothing in the operands tells the new dtype: it is that of the declared output.
std::vector<TensorType> infer(const View& view) {
  TensorType type = view.in(0).with(std::nullopt);
  return {view.node().outputs.empty() ? type : type.with(view.out().dtype)};
}

// Float to integer rounds to nearest even and saturates; integers narrow by dropping bits; float to float rounds
// once (the 8-bit floats overflow to NaN or infinity, OCP's non-saturating mode).
Status eval(const Run& run) {
  const DType from = run.in[0].type.dtype, to = run.out[0].type.dtype;
  const auto n = static_cast<std::size_t>(run.out[0].type.shape.elements());
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_float(from) && !is_float(to)) {
      const std::int64_t value = element_as_integer(from, run.in[0].data, i);
      store_integer(to, run.out[0].data, i, to == boolean || from == boolean ? value != 0 : value);
    } else if (is_float(to)) {
      const double value = element_as_double(from, run.in[0].data, i);
      store_double(to, run.out[0].data, i, from == boolean ? value != 0 : value);
    } else {
      const double value = element_as_double(from, run.in[0].data, i);
      if (to == boolean) {
        store_integer(to, run.out[0].data, i, value != 0);
      } else {
        if (std::isnan(value)) return unpredictable(run, fmt::format("NaN has no {}", name_of(to)));
        store_double(to, run.out[0].data, i, value);
      }
    }
  }
  return {};
}
}  // namespace

Op tosa_cast() {
  return {.name = "cast",
          .schema_number = 65,
          .spirv_number = 64,
          .summary = "the same values in another dtype",
          .inputs = {{"input", "in"}},
          .outputs = {{"output", "out"}},
          .types = types(),
          .infer = infer,
          .eval = eval,
          .moves = Moves::compared,
          .elementwise = true,
          .bounds = bounds::converted,

          // CAST rounds; what lowerings cast to integers is whole already.
          .in_core_aten = [](const View& node, CoreAten& calls) {
            return calls.gives(aten::op::_to_copy, {calls.operand(0)}, {{"dtype", node.out().dtype}});
          }};
}
}  // namespace tosaic::tosa
