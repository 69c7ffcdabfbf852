// SPDX-License-Identifier: Apache-2.0
#include "formats/tosa/attributes.h"

#include <flatbuffers/minireflect.h>
#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "formats/tosa/elements.h"
#include "ir/tensor.h"

namespace tosaic::tosa_file {
namespace {

using flatbuffers::TypeTable;
using flatbuffers::voffset_t;

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// The TypeTable of an operator's attribute table: the union's member with the operator's number.
const TypeTable* table_of(std::uint16_t number) {
  const TypeTable* attribute = tosa_schema::AttributeTypeTable();
  if (number == 0 || number >= attribute->num_elems) return nullptr;
  return attribute->type_refs[attribute->type_codes[number].sequence_ref]();
}

Diagnostic wrong(const Node& node, std::string_view name, std::string_view want) {
  return located(error("tosa-file.attribute", fmt::format("{} has no attribute '{}' of type {}", node.op, name, want)),
                 node.loc);
}

template <class T>
Result<T> need(const Node& node, std::string_view name, std::string_view want) {
  const Attr* attr = node.attrs.find(name);
  const T* value = attr ? std::get_if<T>(attr) : nullptr;
  if (!value) return wrong(node, name, want);
  return *value;
}

// A byte field: text as it is, or one number as an element of the first operand's dtype.
Result<std::vector<std::uint8_t>> byte_field(const Graph& graph, const Node& node, std::string_view name) {
  const Attr* attr = node.attrs.find(name);
  if (const auto* text = attr ? std::get_if<std::string>(attr) : nullptr)
    return std::vector<std::uint8_t>(text->begin(), text->end());
  if (!attr || node.inputs.empty() || node.inputs[0] == no_value) return wrong(node, name, "number");
  const DType type = graph[node.inputs[0]].type.dtype;
  std::vector<std::byte> element(storage_size(type));
  if (const auto* integer = std::get_if<std::int64_t>(attr))
    store_integer(type, element.data(), 0, *integer);
  else if (const auto* real = std::get_if<double>(attr))
    store_double(type, element.data(), 0, *real);
  else
    return wrong(node, name, "number");
  const Bytes packed = pack(type, Bytes::of(std::move(element)));
  const auto* first = reinterpret_cast<const std::uint8_t*>(packed.data());
  return std::vector<std::uint8_t>(first, first + packed.size());
}

Result<std::vector<std::int32_t>> int_list(const Node& node, std::string_view name) {
  TOSAIC_TRY(auto wide, need<std::vector<std::int64_t>>(node, name, "int[]"));
  std::vector<std::int32_t> narrow;
  for (std::int64_t v : wide) {
    if (v < std::numeric_limits<std::int32_t>::min() || v > std::numeric_limits<std::int32_t>::max())
      return located(error("tosa-file.attribute", fmt::format("{}: {} = {} does not fit 32 bits", node.op, name, v)),
                     node.loc);
    narrow.push_back(static_cast<std::int32_t>(v));
  }
  return narrow;
}

Result<std::uint32_t> enumerator(const Node& node, const Field& field) {
  if (field.kind == FieldKind::dtype) {
    TOSAIC_TRY(DType type, need<DType>(node, field.name, "dtype"));
    if (auto stored = schema_dtype(type)) return static_cast<std::uint32_t>(*stored);
    return wrong(node, field.name, "TOSA dtype");
  }
  TOSAIC_TRY(std::string text, need<std::string>(node, field.name, "string"));
  for (std::uint32_t i = 1; i < field.enumeration->num_elems; ++i)
    if (lower_case(field.enumeration->names[i]) == text) return i;
  return located(error("tosa-file.attribute", fmt::format("{}: {} cannot be '{}'", node.op, field.name, text)),
                 node.loc);
}

}  // namespace

std::uint16_t schema_number(Operator op) {
  if (!op.is_tosa()) return 0;
  const TypeTable* ops = tosa_schema::OpTypeTable();
  for (std::uint16_t i = 1; i < ops->num_elems; ++i)
    if (lower_case(ops->names[i]) == op.base()) return i;
  return 0;
}

std::string op_name(std::uint32_t number) {
  const TypeTable* ops = tosa_schema::OpTypeTable();
  return number == 0 || number >= ops->num_elems ? "" : "tosa." + lower_case(ops->names[number]);
}

std::vector<Field> fields_of(std::uint16_t number) {
  std::vector<Field> fields;
  const TypeTable* table = table_of(number);
  for (std::size_t i = 0; table && i < table->num_elems; ++i) {
    const flatbuffers::TypeCode code = table->type_codes[i];
    Field field{table->names[i], FieldKind::i32, nullptr, static_cast<voffset_t>(4 + 2 * i)};
    if (code.sequence_ref >= 0) {
      field.enumeration = table->type_refs[code.sequence_ref]();
      if (field.enumeration == tosa_schema::DTypeTypeTable())
        field.kind = FieldKind::dtype;
      else if (field.enumeration != tosa_schema::BlockSizeTypeTable())  // whose enumerators are named after the number
        field.kind = FieldKind::named;
    } else if (code.base_type == flatbuffers::ET_STRING) {
      field.kind = field.name.ends_with("_graph") ? FieldKind::body : FieldKind::text;
    } else if (code.base_type == flatbuffers::ET_BOOL) {
      field.kind = FieldKind::boolean;
    } else if (code.base_type == flatbuffers::ET_UCHAR) {
      field.kind = FieldKind::bytes;
    } else if (code.is_repeating) {
      field.kind = FieldKind::i32_list;
    }
    fields.push_back(field);
  }
  return fields;
}

Result<flatbuffers::Offset<void>> write_attributes(flatbuffers::FlatBufferBuilder& builder, const Graph& graph,
                                                   const Node& node, std::span<const std::string> bodies) {
  // Vectors and strings must be complete before the table starts: everything is turned into an offset or a scalar
  // first.
  struct Element {
    Field field;
    std::uint64_t value = 0;  // the scalar, or the offset
  };
  std::vector<Element> elements;
  std::size_t body = 0;
  for (const Field& field : fields_of(schema_number(node.op))) {
    Element element{field};
    switch (field.kind) {
      case FieldKind::i32: {
        TOSAIC_TRY(auto value, need<std::int64_t>(node, field.name, "int"));
        element.value = static_cast<std::uint64_t>(value);
        if (static_cast<std::int32_t>(value) != value) return wrong(node, field.name, "32-bit int");
        break;
      }
      case FieldKind::boolean: {
        TOSAIC_TRY(element.value, need<bool>(node, field.name, "bool"));
        break;
      }
      case FieldKind::dtype:
      case FieldKind::named: {
        TOSAIC_TRY(element.value, enumerator(node, field));
        break;
      }
      case FieldKind::i32_list: {
        TOSAIC_TRY(auto list, int_list(node, field.name));
        element.value = builder.CreateVector(list).o;
        break;
      }
      case FieldKind::bytes: {
        TOSAIC_TRY(auto bytes, byte_field(graph, node, field.name));
        builder.ForceVectorAlignment(bytes.size(), 1, 8);
        element.value = builder.CreateVector(bytes).o;
        break;
      }
      case FieldKind::text: {
        TOSAIC_TRY(auto text, need<std::string>(node, field.name, "string"));
        element.value = builder.CreateString(text).o;
        break;
      }
      case FieldKind::body:
        if (body == bodies.size()) return wrong(node, field.name, "region");
        element.value = builder.CreateString(bodies[body++]).o;
        break;
    }
    elements.push_back(element);
  }
  const flatbuffers::uoffset_t start = builder.StartTable();
  for (const Element& e : elements) {
    switch (e.field.kind) {
      case FieldKind::i32: builder.AddElement(e.field.slot, static_cast<std::int32_t>(e.value), 0); break;
      case FieldKind::boolean:
        builder.AddElement(e.field.slot, static_cast<std::uint8_t>(e.value), std::uint8_t{0});
        break;
      case FieldKind::dtype:
      case FieldKind::named: builder.AddElement(e.field.slot, static_cast<std::uint32_t>(e.value), 0u); break;
      default: builder.AddOffset(e.field.slot, flatbuffers::Offset<void>(static_cast<flatbuffers::uoffset_t>(e.value)));
    }
  }
  return flatbuffers::Offset<void>(builder.EndTable(start));
}

Status read_attributes(const flatbuffers::Table& table, std::uint16_t number, DType element, Attrs& attrs,
                       std::vector<std::string>& bodies) {
  using IntVector = flatbuffers::Vector<std::int32_t>;
  using ByteVector = flatbuffers::Vector<std::uint8_t>;
  auto missing = [&](const Field& field) {
    return error("tosa-file.attribute", fmt::format("{}: attribute '{}' is missing", op_name(number), field.name));
  };
  for (const Field& field : fields_of(number)) {
    const std::string name(field.name);
    switch (field.kind) {
      case FieldKind::i32: attrs.set(name, std::int64_t{table.GetField<std::int32_t>(field.slot, 0)}); break;
      case FieldKind::boolean: attrs.set(name, table.GetField<std::uint8_t>(field.slot, 0) != 0); break;
      case FieldKind::dtype: {
        const auto stored = table.GetField<std::uint32_t>(field.slot, 0);
        const auto type = dtype_of(static_cast<tosa_schema::DType>(stored));
        if (!type)
          return error("tosa-file.attribute",
                       fmt::format("{}: {} has no dtype numbered {}", op_name(number), name, stored));
        attrs.set(name, *type);
        break;
      }
      case FieldKind::named: {
        const auto stored = table.GetField<std::uint32_t>(field.slot, 0);
        if (stored == 0 || stored >= field.enumeration->num_elems)
          return error("tosa-file.attribute",
                       fmt::format("{}: {} has no value numbered {}", op_name(number), name, stored));
        attrs.set(name, lower_case(field.enumeration->names[stored]));
        break;
      }
      case FieldKind::i32_list: {
        const auto* list = table.GetPointer<const IntVector*>(field.slot);
        if (!list) return missing(field);
        attrs.set(name, std::vector<std::int64_t>(list->begin(), list->end()));
        break;
      }
      case FieldKind::text:
      case FieldKind::body: {
        const auto* text = table.GetPointer<const flatbuffers::String*>(field.slot);
        if (!text && field.kind == FieldKind::body) return missing(field);
        if (field.kind == FieldKind::body)
          bodies.push_back(text->str());
        else
          attrs.set(name, text ? text->str() : std::string());
        break;
      }
      case FieldKind::bytes: {
        const auto* bytes = table.GetPointer<const ByteVector*>(field.slot);
        if (number ==
            static_cast<std::uint16_t>(tosa_schema::Op::CUSTOM)) {  // bytes that only the operator's owner reads
          attrs.set(name, bytes ? std::string(bytes->begin(), bytes->end()) : std::string());
          break;
        }
        if (!bytes) return missing(field);
        // TOSA's own serializer fills up to 8 bytes.
        const bool whole = bytes->size() == packed_size(element, 1);
        const bool filled = bytes->size() == 8 && packed_size(element, 1) < 8;
        if (!whole && !filled)
          return error("tosa-file.attribute",
                       fmt::format("{}: {} holds {} bytes, but an element of {} has {}", op_name(number), name,
                                   bytes->size(), name_of(element), packed_size(element, 1)));
        const Bytes one = unpack(element, 1, Bytes::copy(bytes->data(), packed_size(element, 1)));
        if (is_float(element))
          attrs.set(name, element_as_double(element, one.data(), 0));
        else
          attrs.set(name, element_as_integer(element, one.data(), 0));
        break;
      }
    }
  }
  return {};
}

}  // namespace tosaic::tosa_file
