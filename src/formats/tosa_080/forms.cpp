// SPDX-License-Identifier: Apache-2.0
#include "formats/tosa_080/forms.h"

#include <flatbuffers/minireflect.h>
#include <algorithm>
#include <array>

#include "formats/tosa/attributes.h"
#include "formats/tosa/elements.h"
#include "formats/tosa_080/tosa_080.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa_080 {
namespace {

using flatbuffers::TypeTable;
using Names = std::pair<std::string_view, std::string_view>;

// Which operators share an attribute table. Those that are not here have one that bears their name, or none.
constexpr std::array<Names, 18> tables{{{"AVG_POOL2D", "PoolAttribute"},
                                        {"MAX_POOL2D", "PoolAttribute"},
                                        {"CONV2D", "ConvAttribute"},
                                        {"CONV3D", "ConvAttribute"},
                                        {"DEPTHWISE_CONV2D", "ConvAttribute"},
                                        {"TRANSPOSE_CONV2D", "TransposeConvAttribute"},
                                        {"FFT2D", "FFTAttribute"},
                                        {"RFFT2D", "RFFTAttribute"},
                                        {"ARGMAX", "AxisAttribute"},
                                        {"CONCAT", "AxisAttribute"},
                                        {"REVERSE", "AxisAttribute"},
                                        {"REDUCE_ANY", "AxisAttribute"},
                                        {"REDUCE_ALL", "AxisAttribute"},
                                        {"REDUCE_MAX", "AxisAttribute"},
                                        {"REDUCE_MIN", "AxisAttribute"},
                                        {"REDUCE_PRODUCT", "AxisAttribute"},
                                        {"REDUCE_SUM", "AxisAttribute"},
                                        {"DIM", "AxisAttribute"}}};

// Fields whose attribute or operand has another name in TOSA 1.0.
constexpr std::array<Names, 12> renamed{{{"accum_dtype", "acc_type"},
                                         {"new_shape", "shape"},
                                         {"a_zp", "A_zp"},
                                         {"b_zp", "B_zp"},
                                         {"min_int", "min_val"},
                                         {"min_fp", "min_val"},
                                         {"max_int", "max_val"},
                                         {"max_fp", "max_val"},
                                         {"pad_const_int", "pad_const"},
                                         {"pad_const_fp", "pad_const"},
                                         {"double_round", "rounding_mode"},
                                         {"output_shape", ""}}};

// "ArithmeticRightShiftAttribute" of "ARITHMETIC_RIGHT_SHIFT" and "MatMulAttribute" of "MATMUL".
bool bears_name(std::string_view table, std::string_view op) {
  std::string letters;
  for (char c : op)
    if (c != '_') letters += c;
  const std::string_view stem = table.substr(0, table.size() - std::string_view("Attribute").size());
  return std::ranges::equal(stem, letters, {}, [](char c) { return std::toupper(c); });
}

std::uint8_t table_of(std::string_view op) {
  const TypeTable* all = tosa_080_schema::AttributeTypeTable();
  const auto shared = std::ranges::find(tables, op, &Names::first);
  for (std::uint8_t i = 1; i < all->num_elems; ++i)
    if (shared != tables.end() ? shared->second == all->names[i] : bears_name(all->names[i], op)) return i;
  return 0;
}

bool in_row(const tosa::Op& row, std::string_view name) {
  return std::ranges::any_of(row.attrs, [&](const tosa::AttrDef& a) { return a.name == name; }) ||
         std::ranges::any_of(row.inputs, [&](const tosa::Operand& o) { return o.name == name; });
}

FieldKind kind_of(const flatbuffers::TypeCode& code, const TypeTable& table, std::string_view name) {
  if (code.sequence_ref >= 0)
    return table.type_refs[code.sequence_ref]() == tosa_080_schema::DTypeTypeTable() ? FieldKind::dtype
                                                                                     : FieldKind::named;
  switch (code.base_type) {
    case flatbuffers::ET_STRING: return FieldKind::text;
    case flatbuffers::ET_BOOL: return FieldKind::boolean;
    case flatbuffers::ET_SHORT: return FieldKind::i16_list;
    case flatbuffers::ET_UCHAR: return name.ends_with("_fp") ? FieldKind::real : FieldKind::bytes;
    default: return code.is_repeating ? FieldKind::i32_list : FieldKind::i32;
  }
}

std::optional<Form> form(std::uint32_t number, std::string_view name) {
  std::string lower = "tosa.";
  for (char c : name) lower += static_cast<char>(std::tolower(c));
  Form made{tosa::find(Operator(lower)), number, table_of(name), {}};
  if (!made.row) return std::nullopt;
  const TypeTable* all = tosa_080_schema::AttributeTypeTable();
  const TypeTable* table = made.table ? all->type_refs[all->type_codes[made.table].sequence_ref]() : nullptr;
  for (std::size_t i = 0; table && i < table->num_elems; ++i) {
    const std::string_view field = table->names[i];
    const auto other = std::ranges::find(renamed, field, &Names::first);
    const std::string_view of = other != renamed.end() ? other->second : field;
    made.fields.push_back({field, kind_of(table->type_codes[i], *table, field),
                           static_cast<flatbuffers::voffset_t>(4 + 2 * i), in_row(*made.row, of) ? of : ""});
  }
  return made;
}

}  // namespace

bool Form::is_field(std::string_view operand) const { return holding(operand) != nullptr; }

const Field* Form::holding(std::string_view attribute_or_operand) const {
  const auto found = std::ranges::find(fields, attribute_or_operand, &Field::of);
  return found == fields.end() ? nullptr : &*found;
}

std::optional<Form> form_of(std::uint32_t number) {
  const TypeTable* ops = tosa_080_schema::OpTypeTable();
  if (number == 0 || number >= ops->num_elems) return std::nullopt;
  return form(number, ops->names[number]);
}

std::optional<Form> form_of(Operator op) {
  const TypeTable* ops = tosa_080_schema::OpTypeTable();
  for (std::uint32_t i = 1; i < ops->num_elems; ++i)
    if (std::ranges::equal(op.base(), std::string_view(ops->names[i]), {}, [](char c) { return std::toupper(c); }))
      return form(i, ops->names[i]);
  return std::nullopt;
}

// By the enumerator that both schemas have.
std::optional<tosa_080_schema::DType> stored(DType type) {
  const auto newer = tosa_file::schema_dtype(type);
  if (!newer) return std::nullopt;
  const std::string_view name = tosa_schema::EnumNameDType(*newer);
  for (const auto older : tosa_080_schema::EnumValuesDType())
    if (tosa_080_schema::EnumNameDType(older) == name) return older;
  return std::nullopt;
}

std::optional<DType> dtype_of(tosa_080_schema::DType type) {
  for (const auto newer : tosa_schema::EnumValuesDType()) {
    const auto ours = tosa_file::dtype_of(newer);
    if (ours && stored(*ours) == type) return ours;
  }
  return std::nullopt;
}

tosa::Check beyond(const tosa::View& view) {
  using tosa::broken;
  const Node& node = view.node();
  const std::string_view op = node.op.base();
  const auto form = form_of(node.op);
  const auto label = [&](std::string_view rule) { return fmt::format("tosa-0.80.{}.{}", op, rule); };
  if (!form || !node.regions.empty() || form->row->inputs.empty())
    return broken(label("operator"), "TOSA 0.80's files have no {} here", op);
  for (const auto* list : {&node.inputs, &node.outputs})
    for (ValueId v : *list) {
      const DType type = view.graph()[v].type.dtype;
      if (type == DType::bf16) return broken(label("type"), "TOSA 0.80's files have no agreed form of bf16 constants");
      if (!stored(type)) return broken(label("type"), "TOSA 0.80 has no {}", name_of(type));
    }
  for (std::size_t i = 0; i < node.inputs.size() && i < form->row->inputs.size(); ++i) {
    const tosa::Operand& operand = form->row->inputs[i];
    const Field* field = operand.list ? nullptr : form->holding(operand.name);
    if (!field && operand.type == "shape")
      return broken(label("operand"), "{} is a field that TOSA 0.80 lacks", operand.name);
    if (!field || !operand.constant) continue;
    if (view.constant(i).null()) return broken(label("operand"), "{} is known only at run time", operand.name);
    const auto numbers = field->kind == FieldKind::i16_list ? view.constant_integers(i) : std::nullopt;
    if (numbers && std::ranges::any_of(*numbers, [](std::int64_t n) { return n != static_cast<std::int16_t>(n); }))
      return broken(label("operand"), "{} has values beyond 16 bits", operand.name);
  }
  if (const Attr* nan = node.attrs.find("nan_mode"); nan && *nan == Attr(std::string("ignore")))
    return broken(label("nan"), "TOSA 0.80 has no nan_mode: NaN propagates");
  if (const Attr* rounding = node.attrs.find("rounding_mode");
      rounding && *rounding == Attr(std::string("inexact_round")))
    return broken(label("rounding"), "TOSA 0.80 has no inexact_round");
  return std::nullopt;
}

}  // namespace tosaic::tosa_080
