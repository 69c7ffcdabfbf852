// SPDX-License-Identifier: Apache-2.0
// The words in which the operator files under ops/tosa/ write their rows: type tables, broken rules, REQUIREs.
// Private to src/ops.
#pragma once
#include <fmt/format.h>

#include "ops/definitions/core_aten.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {

// ---- type tables. Each gives rows that bind `variable` to one dtype after the other; `+` joins them.
using TypeRows = std::vector<TypeRow>;
TypeRows rows(std::vector<Feature> needs, std::string_view variable, std::initializer_list<DType> dtypes);
TypeRows integers(std::string_view variable, std::initializer_list<DType> dtypes);  // PRO-INT
TypeRows either(std::string_view variable, std::initializer_list<DType> dtypes);    // PRO-INT or PRO-FP
TypeRows floats(std::string_view variable);  // f16 and f32 with PRO-FP, bf16 with EXT-BF16
TypeRows fp8s(std::string_view variable);    // each with its extension
TypeRows int64s(std::string_view variable);  // EXT-INT64, of TOSA 1.1
TypeRows operator+(TypeRows a, const TypeRows& b);
// The same rows with one more variable: bound to `dtype`, or to what `like` is bound to.
TypeRows with(TypeRows rows, std::string_view variable, DType dtype);
TypeRows with_same(TypeRows rows, std::string_view like, std::string_view variable);
// The same rows as 1.1 has them, where 1.0 does not.
TypeRows since_1_1(TypeRows rows);
// bool, i8, i16, i32, i64 and every float: what moves data may move (TRANSPOSE, PAD, ...).
TypeRows any_data(std::string_view variable);

// ---- rules. broken("mul.shift-range", "shift {} is outside 0..63", 70)
template <class... Args>
Check broken(std::string label, fmt::format_string<Args...> format, Args&&... args) {
  return Violation{std::move(label), fmt::format(format, std::forward<Args>(args)...)};
}

// "<op>.<operand>-length": operand i must be a list of `length` elements.
Check check_length(const View& view, std::size_t i, std::int64_t length);
// "<op>.axis": the attribute axis must name a dim of operand 0.
Check check_axis(const View& view);
// The first element of a constant operand; nullopt: not a constant, or empty.
std::optional<double> constant_scalar(const View& view, std::size_t i);

// ---- evaluation
// The Diagnostic of a REQUIRE that does not hold; `why` follows the operator's name.
Status unpredictable(const Run& run, const std::string& why);
// The elements of an integer or shape operand.
std::vector<std::int64_t> integers_of(const TensorView& tensor);
inline bool ignores_nan(const View& view) { return view.text("nan_mode") == "ignore"; }

// ---- shapes
// Output: the type of the first operand, without scales.
std::vector<TensorType> same_as_input(const View& view);

}  // namespace tosaic::tosa
