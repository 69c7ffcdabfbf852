// SPDX-License-Identifier: Apache-2.0
// A file of TOSA 0.80 as a graph of TOSA 1.0: fields that are operands there become constants.
#include <fmt/format.h>
#include <algorithm>
#include <unordered_map>

#include "formats/tosa/elements.h"
#include "formats/tosa_080/forms.h"
#include "formats/tosa_080/tosa_080.h"
#include "ir/tensor.h"

namespace tosaic::tosa_080 {
namespace {

using tosa_080_schema::TosaGraph;
using tosa_080_schema::TosaOperator;
using tosa_080_schema::TosaTensor;

constexpr std::int64_t max_elements = std::int64_t{1} << 58;

template <class T>
std::uint32_t size_of(const T* list) {
  return list ? list->size() : 0;
}
std::string text_of(const flatbuffers::String* text) { return text ? text->str() : std::string(); }

// The verified root; nullptr: offsets or lengths point outside the file.
const TosaGraph* root_of(const Bytes& file) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  const std::size_t size = std::min<std::size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(bytes, size, 64, static_cast<flatbuffers::uoffset_t>(size / 4 + 16));
  return tosa_080_schema::VerifyTosaGraphBuffer(verifier) ? tosa_080_schema::GetTosaGraph(bytes) : nullptr;
}

std::optional<TensorType> type_of(const TosaTensor& tensor) {
  const auto dtype = dtype_of(tensor.type());
  if (!dtype || *dtype == DType::shape || tensor.is_unranked() || tensor.variable()) return std::nullopt;
  std::vector<std::int64_t> dims;
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < size_of(tensor.shape()); ++i) {
    const std::int64_t dim = tensor.shape()->Get(i);
    if (dim < 1 || elements > max_elements / dim) return std::nullopt;
    elements *= dim;
    dims.push_back(dim);
  }
  return TensorType{*dtype, Shape(std::move(dims))};
}

class Reader {
 public:
  Reader(const Bytes& file, const TosaGraph& root) : file_(file), root_(root) {}

  Result<Graph> read() {
    if (size_of(root_.regions()) == 0 || size_of(root_.regions()->Get(0)->blocks()) == 0)
      return error("tosa-file.empty", "the file holds no block");
    const auto& block = *root_.regions()->Get(0)->blocks()->Get(0);
    graph_.name = text_of(block.name());
    for (std::uint32_t i = 0; i < size_of(block.tensors()); ++i) {
      const TosaTensor* tensor = block.tensors()->Get(i);
      if (!tensors_.emplace(text_of(tensor->name()), tensor).second) return twice(text_of(tensor->name()));
    }
    for (std::uint32_t i = 0; i < size_of(block.inputs()); ++i) {
      TOSAIC_TRY(ValueId v, define(block.inputs()->Get(i)->str(), false));
      graph_.inputs.push_back(v);
    }
    for (std::uint32_t i = 0; i < size_of(block.operators()); ++i) {
      Status status = operation(*block.operators()->Get(i));
      if (status.ok()) continue;
      status.error().notes.push_back(fmt::format("in operator {} of block '{}'", i, graph_.name));
      return std::move(status.error());
    }
    for (std::uint32_t i = 0; i < size_of(block.outputs()); ++i) {
      TOSAIC_TRY(ValueId v, use(block.outputs()->Get(i)->str()));
      graph_.outputs.push_back(v);
    }
    TOSAIC_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  Status operation(const TosaOperator& op) {
    if (op.op() == tosa_080_schema::Op::CONST) {
      if (size_of(op.outputs()) != 1) return error("tosa-file.operator", "a constant has not one result");
      TOSAIC_TRY(ValueId made, define(op.outputs()->Get(0)->str(), true));
      (void)made;
      return {};
    }
    const auto form = form_of(static_cast<std::uint32_t>(op.op()));
    if (!form || form->row->inputs.empty() || op.op() == tosa_080_schema::Op::COND_IF ||
        op.op() == tosa_080_schema::Op::WHILE_LOOP)
      return error("tosa-file.operator",
                   fmt::format("operator number {} of TOSA 0.80 ({}) cannot be read",
                               static_cast<std::uint32_t>(op.op()), tosa_080_schema::EnumNameOp(op.op())));
    if (static_cast<std::uint8_t>(op.attribute_type()) != form->table || (form->table && !op.attribute()))
      return error("tosa-file.attribute", fmt::format("{} has another operator's attributes", form->row->name));
    Node node;
    node.op = Operator("tosa." + std::string(form->row->name));
    std::vector<ValueId> given, results;
    for (std::uint32_t i = 0; i < size_of(op.inputs()); ++i) {
      TOSAIC_TRY(ValueId v, use(op.inputs()->Get(i)->str()));
      given.push_back(v);
    }
    for (std::uint32_t i = 0; i < size_of(op.outputs()); ++i) {
      TOSAIC_TRY(ValueId v, define(op.outputs()->Get(i)->str(), false));
      results.push_back(v);
    }
    if (results.empty() || given.empty())
      return error("tosa-file.operator", fmt::format("{} has no operand or no result", form->row->name));
    node.outputs = results;
    const auto* table = static_cast<const flatbuffers::Table*>(op.attribute());
    TOSAIC_TRY(node.inputs, operands(*form, given, results[0], table));
    TOSAIC_CHECK(attributes(*form, node, table));
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // In the row's order: those that the file names, and constants of those that are fields.
  Result<std::vector<ValueId>> operands(const Form& form, const std::vector<ValueId>& given, ValueId result,
                                        const flatbuffers::Table* table) {
    std::vector<ValueId> all;
    std::size_t next = 0;
    for (const tosa::Operand& operand : form.row->inputs) {
      const Field* field = operand.list ? nullptr : form.holding(operand.name);
      if (field) {
        TOSAIC_TRY(ValueId v, constant_of(form, operand, *field, given, result, *table));
        all.push_back(v);
        continue;
      }
      if (operand.list)
        for (; next < given.size(); ++next) all.push_back(given[next]);
      else if (next < given.size())
        all.push_back(given[next++]);
      else
        return error("tosa-file.operator", fmt::format("{} lacks its operand {}", form.row->name, operand.name));
    }
    if (next != given.size())
      return error("tosa-file.operator", fmt::format("{} has {} operands", form.row->name, given.size()));
    return all;
  }

  Result<ValueId> constant_of(const Form& form, const tosa::Operand& operand, const Field& field,
                              const std::vector<ValueId>& given, ValueId result, const flatbuffers::Table& table) {
    std::vector<std::int64_t> list = numbers(field, table);
    DType type = graph_[operand.type == "out" ? result : given[0]].type.dtype;
    if (operand.type == "shape") type = DType::shape;
    if (operand.type == "i8") type = DType::i8;
    if (operand.type == "mul") type = table.GetField<std::uint8_t>(slot(form, "scale32"), 0) ? DType::i32 : DType::i16;
    if (operand.type == "weight" && given.size() > 1) type = graph_[given[1]].type.dtype;
    Bytes data;
    if (is_float(type)) {
      double real = 0;
      for (const Field& other : form.fields)
        if (other.of == field.of && other.kind == FieldKind::real) { TOSAIC_TRY(real, real_of(other, table)); }
      list.resize(1);
      data = constant_bytes(type, std::vector<double>{real});
    } else {
      data = constant_bytes(type, list);
    }
    return graph_.add_value(fmt::format("{}_{}_{}", form.row->name, operand.name, graph_.values.size()),
                            {type, Shape{static_cast<std::int64_t>(list.size())}, {}}, std::move(data));
  }

  static flatbuffers::voffset_t slot(const Form& form, std::string_view name) {
    const Field* field = form.holding(name);
    return field ? field->slot : flatbuffers::voffset_t{0};
  }

  static std::vector<std::int64_t> numbers(const Field& field, const flatbuffers::Table& table) {
    if (field.kind == FieldKind::i32_list) {
      const auto* list = table.GetPointer<const flatbuffers::Vector<std::int32_t>*>(field.slot);
      return list ? std::vector<std::int64_t>(list->begin(), list->end()) : std::vector<std::int64_t>();
    }
    if (field.kind == FieldKind::i16_list) {
      const auto* list = table.GetPointer<const flatbuffers::Vector<std::int16_t>*>(field.slot);
      return list ? std::vector<std::int64_t>(list->begin(), list->end()) : std::vector<std::int64_t>();
    }
    return {table.GetField<std::int32_t>(field.slot, 0)};
  }

  static Result<double> real_of(const Field& field, const flatbuffers::Table& table) {
    const auto* bytes = table.GetPointer<const flatbuffers::Vector<std::uint8_t>*>(field.slot);
    if (size_of(bytes) == 0) return 0.0;
    if (bytes->size() < 4) return error("tosa-file.attribute", fmt::format("{} has no four bytes", field.name));
    return element_as_double(DType::f32, reinterpret_cast<const std::byte*>(bytes->data()), 0);
  }

  Status attributes(const Form& form, Node& node, const flatbuffers::Table* table) {
    const DType in = graph_[node.inputs[0]].type.dtype;
    for (const tosa::AttrDef& def : form.row->attrs) {
      const Field* field = form.holding(def.name);
      switch (def.kind) {
        case tosa::AttrKind::nan_mode: node.attrs.set(std::string(def.name), std::string("propagate")); break;
        case tosa::AttrKind::rounding_mode:
          node.attrs.set(std::string(def.name),
                         std::string(table->GetField<std::uint8_t>(field->slot, 0) ? "double_round" : "single_round"));
          break;
        case tosa::AttrKind::resize_mode:
          node.attrs.set(std::string(def.name),
                         std::string(table->GetField<std::uint32_t>(field->slot, 0) == 2 ? "bilinear" : "nearest"));
          break;
        case tosa::AttrKind::dtype: {
          const auto said =
              field ? dtype_of(static_cast<tosa_080_schema::DType>(table->GetField<std::uint32_t>(field->slot, 0)))
                    : std::nullopt;
          node.attrs.set(std::string(def.name), said.value_or(accumulator(in)));
          break;
        }
        case tosa::AttrKind::boolean:
          node.attrs.set(std::string(def.name), field && table->GetField<std::uint8_t>(field->slot, 0) != 0);
          break;
        case tosa::AttrKind::i32:
          node.attrs.set(std::string(def.name), std::int64_t{table->GetField<std::int32_t>(field->slot, 0)});
          break;
        case tosa::AttrKind::i32_list: node.attrs.set(std::string(def.name), numbers(*field, *table)); break;
        case tosa::AttrKind::number: {
          if (!is_float(in)) {
            node.attrs.set(std::string(def.name), numbers(*field, *table)[0]);
            break;
          }
          for (const Field& other : form.fields)
            if (other.of == def.name && other.kind == FieldKind::real) {
              TOSAIC_TRY(const double real, real_of(other, *table));
              node.attrs.set(std::string(def.name), real);
            }
          break;
        }
        case tosa::AttrKind::string: {
          const auto* text =
              field->kind == FieldKind::text ? table->GetPointer<const flatbuffers::String*>(field->slot) : nullptr;
          const auto* bytes = field->kind == FieldKind::bytes
                                  ? table->GetPointer<const flatbuffers::Vector<std::uint8_t>*>(field->slot)
                                  : nullptr;
          node.attrs.set(std::string(def.name), bytes ? std::string(bytes->begin(), bytes->end()) : text_of(text));
          break;
        }
      }
    }
    return {};
  }

  // 0.80 leaves a convolution's accumulator to the types of its operands.
  static DType accumulator(DType in) {
    if (in == DType::i8) return DType::i32;
    return in == DType::i16 ? DType::i48 : DType::f32;
  }

  Result<ValueId> use(const std::string& name) {
    const auto found = defined_.find(name);
    if (found == defined_.end())
      return error("tosa-file.name", fmt::format("'{}' is used, and nothing before it defines it", name));
    return found->second;
  }

  Result<ValueId> define(const std::string& name, bool constant) {
    const auto tensor = tensors_.find(name);
    if (tensor == tensors_.end()) return error("tosa-file.name", fmt::format("there is no tensor named '{}'", name));
    if (defined_.contains(name)) return twice(name);
    const auto type = type_of(*tensor->second);
    if (!type)
      return error("tosa-file.dtype", fmt::format("tensor '{}' has a type or sizes that cannot be read", name));
    Bytes data;
    if (constant) {
      const auto* bytes = tensor->second->data();
      const std::uint64_t needed = tosa_file::packed_size(type->dtype, type->shape.elements());
      if (size_of(bytes) < needed)
        return error("tosa-file.constant-size", fmt::format("constant '{}' of type {} needs {} bytes and has {}", name,
                                                            to_string(*type), needed, size_of(bytes)));
      const auto* first = reinterpret_cast<const std::byte*>(bytes->data());
      data = tosa_file::unpack(type->dtype, type->shape.elements(),
                               file_.slice(static_cast<std::size_t>(first - file_.data()), needed));
    }
    const ValueId v = graph_.add_value(name, *type, std::move(data));
    defined_.emplace(name, v);
    return v;
  }

  static Diagnostic twice(const std::string& name) {
    return error("tosa-file.name", fmt::format("'{}' is defined twice", name));
  }

  Bytes file_;
  const TosaGraph& root_;
  Graph graph_;
  std::unordered_map<std::string, const TosaTensor*> tensors_;
  std::unordered_map<std::string, ValueId> defined_;
};

Bytes aligned(const Bytes& file) {
  return reinterpret_cast<std::uintptr_t>(file.data()) % 8 == 0 ? file : Bytes::copy(file.data(), file.size());
}

}  // namespace

bool is_080(const Bytes& given) {
  const Bytes file = aligned(given);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  if (file.size() < 8 || !flatbuffers::BufferHasIdentifier(bytes, tosa_080_schema::TosaGraphIdentifier())) return false;
  const std::size_t size = std::min<std::size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(bytes, size);
  if (!verifier.VerifyOffset(0)) return false;
  const auto* table = flatbuffers::GetRoot<flatbuffers::Table>(bytes);
  if (!table->VerifyTableStart(verifier) || !table->VerifyOffset(verifier, TosaGraph::VT_VERSION)) return false;
  const auto* version = table->GetPointer<const tosa_080_schema::Version*>(TosaGraph::VT_VERSION);
  return version && version->Verify(verifier) && version->_major() == 0 && version->_minor() == 80;
}

Result<Graph> read(const Bytes& given, const std::string& name) {
  const Bytes file = aligned(given);
  const TosaGraph* root = root_of(file);
  if (!root) return error("tosa-file.corrupt", "an offset or a length points outside the file").at({name, 0, ""});
  auto graph = Reader(file, *root).read();
  if (!graph.ok() && graph.error().place.file.empty()) graph.error().place.file = name;
  return graph;
}

}  // namespace tosaic::tosa_080
