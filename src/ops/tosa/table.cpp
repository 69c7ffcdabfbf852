// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"
#include "ops/definitions/scaling.h"

namespace tosaic::tosa {
namespace {

std::vector<TensorType> infer(const View& view) {
  return {{view.in(0).dtype == DType::i16 ? DType::i32 : DType::i8, view.in(0).shape, std::nullopt}};
}

Check check(const View& view) {
  const std::int64_t wanted = view.in(0).dtype == DType::i16 ? 513 : 256;
  if (view.in(1).shape.size(0) != wanted)
    return broken("table.table-size", "the table has {} entries, {} needs {}", view.in(1).shape.size(0),
                  name_of(view.in(0).dtype), wanted);
  return std::nullopt;
}

Status eval(const Run& run) {
  if (run.in[0].type.dtype == DType::i8) {
    const auto in = run.in[0].as<std::int8_t>(), table = run.in[1].as<std::int8_t>();
    const auto out = run.out[0].as<std::int8_t>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = table[static_cast<std::size_t>(in[i] + 128)];
    return {};
  }
  const auto in = run.in[0].as<std::int16_t>(), table = run.in[1].as<std::int16_t>();
  const auto out = run.out[0].as<std::int32_t>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto value = interpolated_lookup(table, in[i]);
    if (!value)
      return unpredictable(run, fmt::format("the entries around input {} differ by more than 16 bits hold", in[i]));
    out[i] = *value;
  }
  return {};
}

}  // namespace

Op tosa_table() {
  using enum DType;
  return {
      .name = "table",
      .schema_number = 31,
      .spirv_number = 30,
      .summary = "looks each element up: i8 in 256 entries; i16 in 513, interpolated to a 16.7 fixed-point i32",
      .inputs = {{"input1", "in"}, {.name = "table", .type = "table", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {},
      .outputs = {{"output", "out"}},
      .types = {{{Feature::pro_int}, {{"in", i8}, {"table", i8}, {"out", i8}}},
                {{Feature::int16}, {{"in", i16}, {"table", i16}, {"out", i32}}}},
      .infer = infer,
      .check = check,
      .eval = eval,
      .elementwise = true,
  };
}
}  // namespace tosaic::tosa
