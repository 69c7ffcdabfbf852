// SPDX-License-Identifier: Apache-2.0
// How a node of TOSA 1.0 stands in a flatbuffer of TOSA 0.80: its number, its attribute table, and which operand or
// attribute each field of the table is. Read off the schema's reflection and the operator's row; where the two versions
// name a thing differently, a table of names says so.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ops/definitions/tosa_op.h"
#include "tosa_080_generated.h"

namespace tosaic::tosa_080 {

enum class FieldKind : std::uint8_t { i32, boolean, i32_list, i16_list, real, dtype, named, text, bytes };
struct Field {
  std::string_view name;
  FieldKind kind;
  flatbuffers::voffset_t slot;
  std::string_view of;  // the attribute or operand of TOSA 1.0; empty: neither, what it holds follows from the types
};

struct Form {
  const tosa::Op* row = nullptr;
  std::uint32_t number = 0;  // in enum Op
  std::uint8_t table = 0;    // in union Attribute; 0: none
  std::vector<Field> fields;
  // The operands that are fields.
  bool is_field(std::string_view operand) const;
  const Field* holding(std::string_view attribute_or_operand) const;
};
// nullopt: TOSA 0.80 has no such operator ("tosa.sin"), or it is none of TOSA 1.0's (FULLY_CONNECTED, DIM).
std::optional<Form> form_of(Operator op);
std::optional<Form> form_of(std::uint32_t number);

std::optional<tosa_080_schema::DType> stored(DType type);
std::optional<DType> dtype_of(tosa_080_schema::DType type);

}  // namespace tosaic::tosa_080
