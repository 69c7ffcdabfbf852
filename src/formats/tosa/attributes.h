// SPDX-License-Identifier: Apache-2.0
// Operator attributes in the TOSA flatbuffer. The schema's own reflection says which fields an operator's table has,
// in which slots and of which types, so no operator is named here: a field's name is the attribute's name in the IR.
// Fields of kind `body` name the regions of control flow.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tosa_generated.h"

namespace tosaic::tosa_file {

enum class FieldKind : std::uint8_t { i32, boolean, i32_list, bytes, text, dtype, named, body };
struct Field {
  std::string_view name;
  FieldKind kind;
  const flatbuffers::TypeTable* enumeration = nullptr;  // for `named`: the enumerators
  flatbuffers::voffset_t slot = 0;                      // byte position in the vtable
};

// The operator's number in enum Op (also the tag of its attribute table), 0 when there is none. "tosa.conv2d" -> 3.
std::uint16_t schema_number(Operator op);
// "tosa.conv2d"; empty for numbers that TOSA does not have.
std::string op_name(std::uint32_t number);
std::vector<Field> fields_of(std::uint16_t number);

// Writes the attribute table of a node; `bodies` are the names of its regions.
Result<flatbuffers::Offset<void>> write_attributes(flatbuffers::FlatBufferBuilder& builder, const Graph& graph,
                                                   const Node& node, std::span<const std::string> bodies);
// Reads the table of `number` (verified by the flatbuffers verifier) into attrs and body names. `element` is the
// dtype of the operator's first operand: what a `number` attribute (CLAMP's bounds) is stored in.
Status read_attributes(const flatbuffers::Table& table, std::uint16_t number, DType element, Attrs& attrs,
                       std::vector<std::string>& bodies);

}  // namespace tosaic::tosa_file
