// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "formats/flat_rope.h"
#include "formats/tosa/elements.h"
#include "formats/tosa_080/forms.h"
#include "formats/tosa_080/tosa_080.h"
#include "ir/tensor.h"

namespace tosaic::tosa_080 {
namespace {

using flatbuffers::Offset;
template <class T>
using List = std::vector<Offset<T>>;

constexpr std::uint64_t largest_file = 0x7fff0000;  // FlatBuffers' offsets have 31 usable bits

// One field's content: a scalar, a list, text or one real number.
struct Content {
  std::int64_t number = 0;
  std::vector<std::int64_t> list = {};
  double real = 0;
  std::string text = {};
};

std::vector<std::int64_t> integers(const Value& value) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = is_float(value.type.dtype)
                  ? 0
                  : element_as_integer(value.type.dtype, value.constant.data(), i);  // a float has no zero point
  return list;
}

Content content_of(const Graph& graph, const Node& node, const Form& form, const Field& field) {
  Content content;
  if (field.of.empty()) {  // TRANSPOSE_CONV2D's output_shape; zero points of a pool that has none
    if (field.kind == FieldKind::i32_list) content.list = graph[node.outputs[0]].type.shape.sizes();
    return content;
  }
  for (std::size_t i = 0; i < form.row->inputs.size() && i < node.inputs.size(); ++i) {
    if (form.row->inputs[i].name != field.of) continue;
    const Value& value = graph[node.inputs[i]];
    content.list = integers(value);
    if (!content.list.empty()) content.number = content.list[0];
    if (is_float(value.type.dtype)) content.real = element_as_double(value.type.dtype, value.constant.data(), 0);
    return content;
  }
  const Attr& attr = *node.attrs.find(field.of);
  if (const auto* whole = std::get_if<std::int64_t>(&attr)) content.number = *whole;
  if (const auto* flag = std::get_if<bool>(&attr)) content.number = *flag;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attr)) content.list = *list;
  if (const auto* real = std::get_if<double>(&attr)) content.real = *real;
  if (const auto* type = std::get_if<DType>(&attr)) content.number = static_cast<std::int64_t>(*stored(*type));
  if (const auto* text = std::get_if<std::string>(&attr)) {
    content.text = *text;
    if (field.of == "rounding_mode") content.number = *text == "double_round";
    if (field.kind == FieldKind::named)
      content.number = static_cast<std::int64_t>(*text == "bilinear" ? tosa_080_schema::ResizeMode::BILINEAR
                                                                     : tosa_080_schema::ResizeMode::NEAREST);
  }
  return content;
}

class Writer {
 public:
  explicit Writer(std::uint64_t room) : builder_(room) {}

  Result<Rope> write(const Graph& graph) {
    std::vector<char> kept = operands_of(graph);
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      if (!kept[v]) continue;
      TOSAIC_CHECK(tensor(graph[v]));
      if (graph[v].is_constant()) operators_.push_back(constant(graph[v]));
    }
    for (const Node& node : graph.nodes) operators_.push_back(operation(graph, node));
    const auto name = builder_.CreateString("main");
    const auto inputs = strings(graph, graph.inputs), outputs = strings(graph, graph.outputs);
    const auto operators = builder_.CreateVector(operators_);
    const auto tensors = builder_.CreateVector(tensors_);
    const auto block = tosa_080_schema::CreateTosaBasicBlock(builder_, name, operators, tensors, inputs, outputs);
    const auto region = tosa_080_schema::CreateTosaRegion(builder_, name, builder_.CreateVector(&block, 1));
    const auto version = tosa_080_schema::CreateVersion(builder_, 0, 80, 1, false);
    builder_.Finish(tosa_080_schema::CreateTosaGraph(builder_, version, builder_.CreateVector(&region, 1)),
                    tosa_080_schema::TosaGraphIdentifier());
    return file_.finished();
  }

 private:
  // What nodes read as tensors: constants that are fields are none.
  static std::vector<char> operands_of(const Graph& graph) {
    std::vector<char> kept(graph.values.size(), 0);
    for (const auto* list : {&graph.inputs, &graph.outputs})
      for (ValueId v : *list) kept[v] = 1;
    for (const Node& node : graph.nodes) {
      for (ValueId v : tensors_of(node)) kept[v] = 1;
      for (ValueId v : node.outputs) kept[v] = 1;
    }
    return kept;
  }
  static std::vector<ValueId> tensors_of(const Node& node) {
    const Form form = *form_of(node.op);
    std::vector<ValueId> tensors;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const tosa::Operand& operand = form.row->inputs[std::min(i, form.row->inputs.size() - 1)];
      if (operand.list || !form.is_field(operand.name)) tensors.push_back(node.inputs[i]);
    }
    return tensors;
  }

  Status tensor(const Value& value) {
    TOSAIC_TRY(const std::vector<std::int32_t> dims, tosa_file::dims_of(value));
    Offset<flatbuffers::Vector<std::uint8_t>> data;
    if (value.is_constant()) data = file_.bytes(tosa_file::pack(value.type.dtype, value.constant), 8);
    const auto name = builder_.CreateString(value.name);
    tensors_.push_back(tosa_080_schema::CreateTosaTensor(builder_, name, builder_.CreateVector(dims),
                                                         *stored(value.type.dtype), data));
    return {};
  }

  Offset<tosa_080_schema::TosaOperator> constant(const Value& value) {
    const auto output = builder_.CreateString(value.name);
    const auto outputs = builder_.CreateVector(&output, 1);
    return tosa_080_schema::CreateTosaOperator(builder_, tosa_080_schema::Op::CONST, tosa_080_schema::Attribute::NONE,
                                               0, builder_.CreateVector(List<flatbuffers::String>()), outputs);
  }

  Offset<tosa_080_schema::TosaOperator> operation(const Graph& graph, const Node& node) {
    const Form form = *form_of(node.op);
    const Offset<void> attributes = form.table ? table(graph, node, form) : Offset<void>();
    const auto inputs = strings(graph, tensors_of(node)), outputs = strings(graph, node.outputs);
    return tosa_080_schema::CreateTosaOperator(builder_, static_cast<tosa_080_schema::Op>(form.number),
                                               static_cast<tosa_080_schema::Attribute>(form.table), attributes, inputs,
                                               outputs);
  }

  // Vectors and strings have to be complete before the table starts.
  Offset<void> table(const Graph& graph, const Node& node, const Form& form) {
    std::vector<std::pair<Field, std::uint64_t>> filled;
    for (const Field& field : form.fields) {
      const Content content = content_of(graph, node, form, field);
      filled.emplace_back(field, vector_of(field.kind, content));
    }
    const flatbuffers::uoffset_t start = builder_.StartTable();
    for (const auto& [field, value] : filled) {
      switch (field.kind) {
        case FieldKind::boolean:
          builder_.AddElement(field.slot, static_cast<std::uint8_t>(value), std::uint8_t{0});
          break;
        case FieldKind::i32: builder_.AddElement(field.slot, static_cast<std::int32_t>(value), 0); break;
        case FieldKind::dtype:
        case FieldKind::named: builder_.AddElement(field.slot, static_cast<std::uint32_t>(value), 0u); break;
        default: builder_.AddOffset(field.slot, Offset<void>(static_cast<flatbuffers::uoffset_t>(value)));
      }
    }
    return {builder_.EndTable(start)};
  }

  std::uint64_t vector_of(FieldKind kind, const Content& content) {
    switch (kind) {
      case FieldKind::i32_list:
        return builder_.CreateVector(std::vector<std::int32_t>(content.list.begin(), content.list.end())).o;
      case FieldKind::i16_list:
        return builder_.CreateVector(std::vector<std::int16_t>(content.list.begin(), content.list.end())).o;
      case FieldKind::real: {  // f32, whatever the operand's type
        const Bytes bytes = constant_bytes(DType::f32, std::vector<double>{content.real});
        builder_.ForceVectorAlignment(bytes.size(), 1, 8);
        return builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()).o;
      }
      case FieldKind::bytes:
        return builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(content.text.data()), content.text.size()).o;
      case FieldKind::text: return builder_.CreateString(content.text).o;
      default: return static_cast<std::uint64_t>(content.number);
    }
  }

  Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> strings(const Graph& graph,
                                                                   const std::vector<ValueId>& ids) {
    List<flatbuffers::String> list;
    for (ValueId v : ids) list.push_back(builder_.CreateString(graph[v].name));
    return builder_.CreateVector(list);
  }

  flatbuffers::FlatBufferBuilder builder_;
  formats::FlatRope file_{builder_};
  List<tosa_080_schema::TosaTensor> tensors_;
  List<tosa_080_schema::TosaOperator> operators_;
};

// What the constants and the rest of it need, counted generously: FlatBufferBuilder aborts beyond its largest size.
std::uint64_t room_for(const Graph& graph) {
  std::uint64_t room = 1024;
  for (const Value& v : graph.values)
    room += 2 * v.constant.size() + 8 * v.name.size() + 8 * static_cast<std::size_t>(v.type.shape.rank()) + 128;
  for (const Node& node : graph.nodes) room += 512 + 64 * (node.inputs.size() + node.outputs.size());
  return room;
}

}  // namespace

Result<Rope> write(const Graph& graph) {
  TOSAIC_CHECK(verify(graph));
  for (const Node& node : graph.nodes)
    if (const auto why = beyond(tosa::View(graph, node)))
      return located(error("tosa-file.version", fmt::format("{}: {}", node.op, why->message))
                         .hint("write TOSA 1.0, with --target tosa-int or tosa-fp"),
                     node.loc);
  const std::uint64_t room = room_for(graph);
  if (room > largest_file)
    return error("tosa-file.too-large",
                 fmt::format("the graph needs about {} MB, but a TOSA 0.80 file holds 2 GB with all of its constants",
                             room >> 20))
        .hint("write TOSA 1.0, which keeps large constants outside the file, or quantise the weights to 8 bits");
  return Writer(room).write(graph);
}

}  // namespace tosaic::tosa_080
