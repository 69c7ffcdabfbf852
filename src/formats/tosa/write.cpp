// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>

#include "formats/tosa/attributes.h"
#include "formats/tosa/elements.h"
#include "formats/tosa/location.h"
#include "formats/tosa/tosa_file.h"

namespace tosaic::tosa_file {
namespace {

using flatbuffers::Offset;
using flatbuffers::String;
template <class T>
using List = std::vector<Offset<T>>;
using Strings = Offset<flatbuffers::Vector<Offset<String>>>;

// FlatBuffers' offsets have 31 usable bits.
constexpr std::uint64_t largest_file = 0x7fff0000;

class Writer {
 public:
  Result<Bytes> write(const Graph& graph) {
    TOSAIC_CHECK(claim(graph, 0));
    names_[&graph] = "main";  // Arm's reference model finds the entry by this name, as region and as block
    taken_.insert("main");
    name_bodies(graph);
    TOSAIC_CHECK(region(graph));
    auto version = tosa_schema::CreateVersion(builder_, 1, 0, 0, false);
    auto root = tosa_schema::CreateTosaGraph(builder_, version, builder_.CreateVector(regions_));
    builder_.Finish(root, tosa_schema::TosaGraphIdentifier());
    auto owner = std::make_shared<flatbuffers::DetachedBuffer>(builder_.Release());
    const void* data = owner->data();
    const std::size_t size = owner->size();
    return Bytes(std::move(owner), data, size);
  }

 private:
  // FlatBufferBuilder aborts beyond its largest size, so the bytes are counted before anything is built. Names and
  // table entries are counted generously.
  Status claim(const Graph& graph, int depth) {
    if (depth > 64) return error("tosa-file.nesting", "control flow is nested more than 64 deep");
    for (const Value& value : graph.values)
      claimed_ += value.constant.size() + 8 * value.name.size() + 8 * value.type.shape.dims().size() + 128;
    for (const Node& node : graph.nodes) {
      claimed_ += 256 + 8 * (node.inputs.size() + node.outputs.size());
      if (node.loc) claimed_ += location_text(*node.loc).size();
      for (const Graph& body : node.regions) TOSAIC_CHECK(claim(body, depth + 1));
    }
    if (claimed_ > largest_file)
      return error("tosa-file.too-large",
                   fmt::format("the graph needs about {} MB, but a TOSA flatbuffer holds 2 GB", claimed_ >> 20))
          .hint("split the model, or quantise its weights to 8 bits");
    return {};
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
    for (const Node& node : graph.nodes)
      for (const std::vector<ValueId>* ids : {&node.inputs, &node.outputs})
        for (ValueId v : *ids)
          if (v != no_value) used[v] = 1;
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      if (!used[v]) continue;
      TOSAIC_CHECK(value(graph[v], tensors, shapes));
      if (graph[v].is_constant()) operators.push_back(constant(graph[v]));
    }
    for (const Node& node : graph.nodes) {
      auto written = operation(graph, node);
      if (!written.ok()) return located(std::move(written.error()), node.loc);
      operators.push_back(*written);
    }
    auto name = builder_.CreateString(names_[&graph]);
    auto inputs = strings(graph, graph.inputs), outputs = strings(graph, graph.outputs);
    auto block = tosa_schema::CreateTosaBasicBlock(builder_, name, builder_.CreateVector(operators),
                                                   builder_.CreateVector(tensors), inputs, outputs,
                                                   builder_.CreateVector(shapes));
    regions_.push_back(tosa_schema::CreateTosaRegion(builder_, name, builder_.CreateVector(&block, 1)));
    for (const Node& node : graph.nodes)
      for (const Graph& body : node.regions) TOSAIC_CHECK(region(body));
    return {};
  }

  Status value(const Value& value, List<tosa_schema::TosaTensor>& tensors, List<tosa_schema::TosaShape>& shapes) {
    const auto dtype = schema_dtype(value.type.dtype);
    if (!dtype)
      return error("tosa-file.dtype",
                   fmt::format("'{}' has type {}, which TOSA 1.0 does not have", value.name, to_string(value.type)));
    Offset<flatbuffers::Vector<std::uint8_t>> data;
    if (value.is_constant()) {
      if (value.constant.size() != value.type.storage_bytes())
        return internal_error(fmt::format("constant '{}' of type {} has {} bytes", value.name, to_string(value.type),
                                          value.constant.size()));
      const Bytes packed = pack(value.type.dtype, value.constant);
      builder_.ForceVectorAlignment(packed.size(), 1, 8);
      data = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size());
    }
    auto name = builder_.CreateString(value.name);
    if (value.type.dtype == DType::shape) {
      if (value.type.rank() != 1) return internal_error(fmt::format("shape value '{}' is not of rank 1", value.name));
      shapes.push_back(
          tosa_schema::CreateTosaShape(builder_, name, static_cast<std::uint32_t>(value.type.shape[0]), data));
      return {};
    }
    std::vector<std::int32_t> dims;
    for (std::int64_t d : value.type.shape) {
      if (d < 1 || d > std::numeric_limits<std::int32_t>::max())
        return error("tosa-file.size", fmt::format("'{}' is {}, but a TOSA dimension is between 1 and 2147483647",
                                                   value.name, to_string(value.type)));
      dims.push_back(static_cast<std::int32_t>(d));
    }
    tensors.push_back(tosa_schema::CreateTosaTensor(builder_, name, builder_.CreateVector(dims), *dtype, data));
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
    if (number == 0) return error("tosa-file.not-tosa", fmt::format("{} is not an operator of TOSA 1.0", node.op));
    std::vector<std::string> bodies;
    for (const Graph& body : node.regions) bodies.push_back(names_[&body]);
    for (ValueId v : node.inputs)
      if (v == no_value) return internal_error(fmt::format("{} lacks an operand", node.op));
    TOSAIC_TRY(auto attributes, write_attributes(builder_, graph, node, bodies));
    auto inputs = strings(graph, node.inputs), outputs = strings(graph, node.outputs);
    Offset<tosa_schema::OpLocation> location;
    if (const std::string text = node.loc ? location_text(*node.loc) : ""; !text.empty())
      location = tosa_schema::CreateOpLocation(builder_, builder_.CreateSharedString(text));
    return tosa_schema::CreateTosaOperator(builder_, static_cast<tosa_schema::Op>(number),
                                           static_cast<tosa_schema::Attribute>(number), attributes, inputs, outputs,
                                           location);
  }

  Strings strings(const Graph& graph, const std::vector<ValueId>& ids) {
    List<String> list;
    for (ValueId v : ids)
      if (v != no_value) list.push_back(builder_.CreateString(graph[v].name));
    return builder_.CreateVector(list);
  }

  flatbuffers::FlatBufferBuilder builder_{1 << 16};
  std::uint64_t claimed_ = 0;
  std::map<const Graph*, std::string> names_;
  std::set<std::string> taken_;
  List<tosa_schema::TosaRegion> regions_;
};

}  // namespace

Result<Bytes> write(const Graph& graph) {
  TOSAIC_CHECK(verify(graph));
  return Writer().write(graph);
}

}  // namespace tosaic::tosa_file
