// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "formats/flat_rope.h"
#include "formats/tosa/attributes.h"
#include "formats/tosa/elements.h"
#include "formats/tosa/location.h"
#include "formats/tosa/tosa_file.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa_file {
namespace {

using flatbuffers::Offset;
using flatbuffers::String;
template <class T>
using List = std::vector<Offset<T>>;
using Strings = Offset<flatbuffers::Vector<Offset<String>>>;

// FlatBuffers' offsets have 31 usable bits.
constexpr std::uint64_t largest_file = 0x7fff0000, all_inside = std::numeric_limits<std::uint64_t>::max();
constexpr int deepest = 64;  // control flow within control flow

// What the constants and the rest of it need; names and table entries are counted generously.
std::uint64_t room_for(const Graph& graph, std::uint64_t least_outside, int depth = 0) {
  std::uint64_t room = 0;
  for (const Value& value : graph.values) {
    const bool outside = depth == 0 && value.constant.size() >= least_outside;
    room += (outside ? 0 : value.constant.size()) + 8 * value.name.size() +
            8 * static_cast<std::size_t>(value.type.shape.rank()) + 128;
  }
  for (const Node& node : graph.nodes) {
    room += 256 + 8 * (node.inputs.size() + node.outputs.size());
    if (node.loc) room += location_text(*node.loc).size();
    for (const Graph& body : node.regions)
      if (depth < deepest) room += room_for(body, least_outside, depth + 1);
  }
  return room;
}

class Writer {
 public:
  explicit Writer(std::uint64_t least_outside = all_inside) : least_outside_(least_outside) {}

  Result<Rope> write(const Graph& graph) {
    TOSAIC_CHECK(claim(graph));
    builder_ = flatbuffers::FlatBufferBuilder(claimed_);
    main_ = &graph;
    names_[&graph] = "main";  // Arm's reference model finds the entry by this name, as region and as block
    taken_.insert("main");
    name_bodies(graph);
    TOSAIC_CHECK(region(graph));
    const bool newer = is_newer(graph);  // 1.1 is a draft
    auto version = tosa_schema::CreateVersion(builder_, 1, newer ? 1 : 0, 0, newer);
    auto root = tosa_schema::CreateTosaGraph(builder_, version, builder_.CreateVector(regions_));
    builder_.Finish(root, tosa_schema::TosaGraphIdentifier());
    return file_.finished();
  }
  std::vector<std::pair<std::string, Bytes>> take_outside() { return std::move(outside_); }

 private:
  static bool is_newer(const Graph& graph) {
    const auto newer_type = [](const Value& v) { return v.type.dtype == DType::i64 || is_of_blocks(v.type.dtype); };
    return std::ranges::any_of(graph.values, newer_type) || std::ranges::any_of(graph.nodes, [&](const Node& node) {
             return tosa::needs_1_1(tosa::View(graph, node)) || std::ranges::any_of(node.regions, is_newer);
           });
  }

  // FlatBufferBuilder aborts beyond its largest size, so the bytes are counted before anything is built.
  Status claim(const Graph& graph) {
    if (nested(graph, 0))
      return error("tosa-file.nesting", fmt::format("control flow is nested more than {} deep", deepest));
    claimed_ = room_for(graph, least_outside_);
    if (claimed_ > largest_file)
      return error("tosa-file.too-large",
                   fmt::format("the graph needs about {} MB, but a TOSA flatbuffer holds 2 GB", claimed_ >> 20))
          .hint("take the .pte, which keeps large constants outside the flatbuffer, or quantise the weights to 8 bits");
    return {};
  }
  static bool nested(const Graph& graph, int depth) {
    if (depth > deepest) return true;
    for (const Node& node : graph.nodes)
      for (const Graph& body : node.regions)
        if (nested(body, depth + 1)) return true;
    return false;
  }

  // Regions are found by name in the file, so each body gets one of its own; its graph's name where that is free.
  void name_bodies(const Graph& graph) {
    for (const Node& node : graph.nodes)
      for (const Graph& body : node.regions) {
        std::string name = body.name;
        for (int i = 1; name.empty() || !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", body.name, i);
        names_[&body] = name;
        name_bodies(body);
      }
  }

  Status region(const Graph& graph) {
    if (!graph.states.empty())
      return error("tosa-file.state", fmt::format("'{}' is a buffer that outlives a run, which a TOSA graph holds as a "
                                                  "variable only",
                                                  graph.states[0].name))
          .hint("pass the buffer in and out as an ordinary input and output");
    List<tosa_schema::TosaTensor> tensors;
    List<tosa_schema::TosaShape> shapes;
    List<tosa_schema::TosaOperator> operators;
    std::vector<char> used(graph.values.size(), 0);
    for (const std::vector<ValueId>* ids : {&graph.inputs, &graph.outputs})
      for (ValueId v : *ids) used[v] = 1;
    for (const Node& node : graph.nodes) {
      if (node.op == tosa::op::variable) continue;  // its initial value is stored with the variable
      for (const std::vector<ValueId>* ids : {&node.inputs, &node.outputs})
        for (ValueId v : *ids)
          if (v != no_value) used[v] = 1;
    }
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      if (!used[v]) continue;
      TOSAIC_CHECK(value(graph[v], &graph == main_, tensors, shapes));
      if (graph[v].is_constant()) operators.push_back(constant(graph[v]));
    }
    TOSAIC_CHECK(variables(graph, tensors));
    for (const Node& node : graph.nodes) {
      if (node.op == tosa::op::variable) continue;  // the tensor is the declaration
      auto written = operation(graph, node);
      if (!written.ok()) return located(std::move(written.error()), node.loc);
      operators.push_back(*written);
    }
    auto name = builder_.CreateString(names_[&graph]);
    auto inputs = strings(graph, graph.inputs), outputs = strings(graph, graph.outputs);
    auto operator_list = builder_.CreateVector(operators);
    auto tensor_list = builder_.CreateVector(tensors);
    auto shape_list = builder_.CreateVector(shapes);
    auto block =
        tosa_schema::CreateTosaBasicBlock(builder_, name, operator_list, tensor_list, inputs, outputs, shape_list);
    regions_.push_back(tosa_schema::CreateTosaRegion(builder_, name, builder_.CreateVector(&block, 1)));
    for (const Node& node : graph.nodes)
      for (const Graph& body : node.regions) TOSAIC_CHECK(region(body));
    return {};
  }

  // Variables are tensors that are marked so; a block lists those that it declares or touches.
  Status variables(const Graph& graph, List<tosa_schema::TosaTensor>& tensors) {
    std::set<std::string> touched;
    for (const Node& node : graph.nodes) {
      const auto* name = tosa::is_variable(node.op) ? node.attrs.find("name") : nullptr;
      const auto* text = name ? std::get_if<std::string>(name) : nullptr;
      if (!text) continue;
      if (node.op == tosa::op::variable) {
        TOSAIC_TRY(Declared declared, declaration(graph, node));
        if (!declared_.emplace(*text, std::move(declared)).second)
          return error("tosa-file.variable", fmt::format("variable '{}' is declared twice", *text));
      }
      touched.insert(*text);
    }
    std::set<std::string_view> names;
    for (const Value& v : graph.values) names.insert(v.name);
    for (const std::string& name : touched) {
      const auto found = declared_.find(name);
      if (found == declared_.end())
        return error("tosa-file.variable", fmt::format("variable '{}' is used before it is declared", name));
      std::string tensor_name = name;
      while (names.contains(tensor_name)) tensor_name += "_variable";
      variable_tensors_[{&graph, name}] = tensor_name;
      const Declared& v = found->second;
      Offset<flatbuffers::Vector<std::uint8_t>> data;
      if (!v.initial.null()) data = bytes(v.initial);
      auto written_name = builder_.CreateString(tensor_name);
      auto dims = builder_.CreateVector(v.dims);
      tensors.push_back(tosa_schema::CreateTosaTensor(builder_, written_name, dims, v.dtype, data, true, false,
                                                      builder_.CreateString(name)));
    }
    return {};
  }

  struct Declared {
    tosa_schema::DType dtype;
    std::vector<std::int32_t> dims;
    Bytes initial;  // packed; null: none
  };
  static Result<Declared> declaration(const Graph& graph, const Node& node) {
    const auto dtype = schema_dtype(node.attrs.get_or("type", DType::shape));
    if (!dtype || *dtype == tosa_schema::DType::SHAPE)
      return located(error("tosa-file.variable", "a variable has no type that TOSA stores"), node.loc);
    Declared declared{*dtype, {}, {}};
    for (std::int64_t d : node.attrs.get_or<std::vector<std::int64_t>>("var_shape", {})) {
      if (d < 1 || d > std::numeric_limits<std::int32_t>::max())
        return located(error("tosa-file.size", fmt::format("a variable has the dimension {}", d)), node.loc);
      declared.dims.push_back(static_cast<std::int32_t>(d));
    }
    if (!node.inputs.empty()) {
      const Value& initial = graph[node.inputs[0]];
      if (!initial.is_constant())
        return located(error("tosa-file.variable", "the initial value of a variable is not a constant"), node.loc);
      declared.initial = pack(initial.type.dtype, initial.constant);
    }
    return declared;
  }

  Offset<flatbuffers::Vector<std::uint8_t>> bytes(const Bytes& packed) { return file_.bytes(packed, 8); }

  Status value(const Value& value, bool of_main, List<tosa_schema::TosaTensor>& tensors,
               List<tosa_schema::TosaShape>& shapes) {
    const auto dtype = schema_dtype(value.type.dtype);
    if (!dtype)
      return error("tosa-file.dtype",
                   fmt::format("'{}' has type {}, which TOSA does not have", value.name, to_string(value.type)));
    Offset<flatbuffers::Vector<std::uint8_t>> data;
    std::uint64_t size_outside = 0;
    if (value.is_constant()) {
      if (value.constant.size() != value.type.storage_bytes())
        return internal_error(fmt::format("constant '{}' of type {} has {} bytes", value.name, to_string(value.type),
                                          value.constant.size()));
      const Bytes packed = pack(value.type.dtype, value.constant);
      if (of_main && value.type.dtype != DType::shape && value.constant.size() >= least_outside_) {
        outside_.emplace_back(value.name, packed);
        size_outside = packed.size();
      } else {
        data = bytes(packed);
      }
    }
    auto name = builder_.CreateString(value.name);
    if (value.type.dtype == DType::shape) {
      if (value.type.rank() != 1) return internal_error(fmt::format("shape value '{}' is not of rank 1", value.name));
      shapes.push_back(
          tosa_schema::CreateTosaShape(builder_, name, static_cast<std::uint32_t>(value.type.shape.size(0)), data));
      return {};
    }
    TOSAIC_TRY(const std::vector<std::int32_t> dims, dims_of(value));
    tensors.push_back(tosa_schema::CreateTosaTensor(builder_, name, builder_.CreateVector(dims), *dtype, data, false,
                                                    false, 0, 0, size_outside));
    return {};
  }

  Offset<tosa_schema::TosaOperator> constant(const Value& value) {
    const bool shape = value.type.dtype == DType::shape;
    auto output = builder_.CreateString(value.name);
    auto outputs = builder_.CreateVector(&output, 1);
    auto inputs = builder_.CreateVector(List<String>());
    const flatbuffers::uoffset_t start = builder_.StartTable();
    const Offset<void> empty(builder_.EndTable(start));
    return tosa_schema::CreateTosaOperator(
        builder_, shape ? tosa_schema::Op::CONST_SHAPE : tosa_schema::Op::CONST,
        shape ? tosa_schema::Attribute::ConstShapeAttribute : tosa_schema::Attribute::ConstAttribute, empty, inputs,
        outputs);
  }

  Result<Offset<tosa_schema::TosaOperator>> operation(const Graph& graph, const Node& node) {
    const std::uint16_t number = schema_number(node.op);
    if (number == 0) return error("tosa-file.not-tosa", fmt::format("{} is not an operator of TOSA", node.op));
    std::vector<std::string> bodies;
    for (const Graph& body : node.regions) bodies.push_back(names_[&body]);
    for (ValueId v : node.inputs)
      if (v == no_value) return internal_error(fmt::format("{} lacks an operand", node.op));
    TOSAIC_TRY(auto attributes, write_attributes(builder_, graph, node, bodies));
    auto inputs = strings(graph, node.inputs), outputs = strings(graph, node.outputs);
    if (node.op == tosa::op::variable_read) inputs = variable(graph, node);
    if (node.op == tosa::op::variable_write) outputs = variable(graph, node);
    Offset<tosa_schema::OpLocation> location;
    if (const std::string text = node.loc ? location_text(*node.loc) : ""; !text.empty())
      location = tosa_schema::CreateOpLocation(builder_, builder_.CreateSharedString(text));
    return tosa_schema::CreateTosaOperator(builder_, static_cast<tosa_schema::Op>(number),
                                           static_cast<tosa_schema::Attribute>(number), attributes, inputs, outputs,
                                           location);
  }

  Strings variable(const Graph& graph, const Node& node) {
    const std::string& name = variable_tensors_[{&graph, node.attrs.get_or<std::string>("name", "")}];
    return builder_.CreateVectorOfStrings(std::vector<std::string>{name});
  }

  Strings strings(const Graph& graph, const std::vector<ValueId>& ids) {
    List<String> list;
    for (ValueId v : ids)
      if (v != no_value) list.push_back(builder_.CreateString(graph[v].name));
    return builder_.CreateVector(list);
  }

  flatbuffers::FlatBufferBuilder builder_;
  formats::FlatRope file_{builder_};
  std::uint64_t least_outside_, claimed_ = 0;
  std::vector<std::pair<std::string, Bytes>> outside_;
  const Graph* main_ = nullptr;
  std::map<const Graph*, std::string> names_;
  std::set<std::string> taken_;
  List<tosa_schema::TosaRegion> regions_;
  std::map<std::string, Declared> declared_;                                      // variables, by their names
  std::map<std::pair<const Graph*, std::string>, std::string> variable_tensors_;  // their tensors in each block
};

}  // namespace

Result<Rope> write(const Graph& graph) {
  TOSAIC_CHECK(verify(graph));
  return Writer().write(graph);
}

Result<Parts> write_parts(const Graph& graph, std::uint64_t least_bytes) {
  TOSAIC_CHECK(verify(graph));
  Writer writer(std::max<std::uint64_t>(least_bytes, 1));
  TOSAIC_TRY(Rope file, writer.write(graph));
  return Parts{std::move(file), writer.take_outside()};
}

bool fits(const Graph& graph) { return room_for(graph, all_inside) <= largest_file; }

}  // namespace tosaic::tosa_file
