// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/promotion.h"

#include <algorithm>

#include "ir/aten_operators.h"
#include "ops/lowering/mask.h"

namespace tosaic::promotion {
namespace {

enum Kind { boolean, integer, floating };  // each yields to the next
Kind kind_of(DType type) {
  if (type == DType::boolean) return boolean;
  return is_float(type) ? floating : integer;
}

DType computed_as(DType type) { return kind_of(type) == floating || type == DType::i64 ? type : DType::i32; }

// A Python int is PyTorch's i64; where i32 holds it and no tensor says otherwise, that is enough.
DType type_of_scalar(const Operand& o) {
  if (o.is_float) return DType::f32;
  const std::int64_t n = o.integer.value_or(0);
  return n < INT32_MIN || n > INT32_MAX ? DType::i64 : DType::i32;
}

// The number as a constant; exactly, where a double would round it.
Val constant(Builder& b, const Operand& o, DType dtype) {
  if (o.integer && dtype == DType::i64) return b.integers(std::vector<std::int64_t>{*o.integer}, dtype, Shape{});
  return b.scalar(o.number, dtype);
}

// A tensor next to a quantised one: booleans are reals at its scale. Other integers have no scale, and
// narrow ones of its own dtype would pass for quantised values.
Val next_to(Builder& b, Val x, Val quantised) {
  if (x.type().quantised()) return x;
  if (x.dtype() == DType::boolean) return b.rescale(reals_of_mask(x, DType::i8), quantised.type().with(x.shape()));
  if (x.dtype() == quantised.dtype() && x.dtype() != DType::i32)
    b.refuse("aten.mixed-dtypes", "integers that are not quantised among quantised values of the same dtype");
  return x;
}

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  if (kind_of(a) == floating) return DType::f32;  // f16 with bf16 too
  if (storage_size(a) != storage_size(b)) return storage_size(a) > storage_size(b) ? a : b;
  return DType::i16;  // i8 with u8
}

DType result_type(const std::vector<Operand>& operands) {
  // Three classes, each of which counts only where its kind is above what the classes before it gave.
  std::optional<DType> by_class[3];
  for (const Operand& o : operands) {
    const int c = !o.tensor ? 2 : o.tensor->rank() == 0 ? 1 : 0;
    const DType type = o.tensor ? o.tensor->dtype() : type_of_scalar(o);
    by_class[c] = by_class[c] ? promoted(*by_class[c], type) : type;
  }
  std::optional<DType> result;
  for (const auto& type : by_class)
    if (type && (!result || kind_of(*type) > kind_of(*result))) result = type;
  return result.value_or(DType::f32);
}

Operand Operand::of(const Call& call, std::string_view name) {
  if (const auto* argument = call.schema().argument(name); argument && argument->is_tensor())
    if (auto tensor = call.optional_tensor(name)) return {tensor};
  if (call.is_float_scalar(name)) return {std::nullopt, call.number(name), true};
  const std::int64_t whole = call.integer(name);
  return {std::nullopt, static_cast<double>(whole), false, whole};
}

Val Promoted::finished(Val y) const { return y.type().quantised() ? y : y.builder().cast(y, result); }

Promoted promote(Builder& b, const std::vector<Operand>& operands, Compute compute) {
  Promoted p;
  std::optional<Val> quantised;
  for (const Operand& o : operands)
    if (o.tensor && o.tensor->type().quantised()) quantised = o.tensor;
  if (quantised) {
    p.result = quantised->dtype();
    for (const Operand& o : operands)
      p.values.push_back(o.tensor ? next_to(b, *o.tensor, *quantised) : b.like(*quantised, o.number));
    return p;
  }
  p.result = result_type(operands);
  const DType dtype = compute == Compute::arithmetic ? computed_as(p.result) : p.result;
  for (const Operand& o : operands) p.values.push_back(o.tensor ? b.cast(*o.tensor, dtype) : constant(b, o, dtype));
  return p;
}

Promoted promote(Builder& b, const Call& call, std::initializer_list<std::string_view> names, Compute compute) {
  std::vector<Operand> operands;
  for (auto name : names) operands.push_back(Operand::of(call, name));
  // True together with booleans leaves them booleans, 1 does not. Which of the two a number was, the program's result
  // tells.
  const bool booleans = std::all_of(operands.begin(), operands.end(), [](const Operand& o) {
    return o.tensor ? o.tensor->dtype() == DType::boolean : !o.is_float && (o.number == 0 || o.number == 1);
  });
  if (booleans && !call.declared().empty() && call.declared()[0].dtype == DType::boolean)
    for (Operand& o : operands)
      if (!o.tensor) o.tensor = b.scalar(o.number, DType::boolean);
  Promoted p = promote(b, operands, compute);
  if (call.schema().in_place && operands[0].tensor && !operands[0].tensor->type().quantised())
    p.result = operands[0].tensor->dtype();
  return p;
}

bool is_real(Val x) { return is_float(x.dtype()) || x.type().quantised(); }

Attr scalar_attribute(const Call& call, std::string_view name) {
  if (call.is_float_scalar(name)) return call.number(name);
  return call.integer(name);
}

Val as_real(Val x) { return is_real(x) ? x : x.builder().aten(aten::op::_to_copy, {x}, {{"dtype", DType::f32}}); }

Val as_float(Val x) { return is_real(x) ? x : x.builder().cast(x, DType::f32); }

}  // namespace tosaic::promotion
