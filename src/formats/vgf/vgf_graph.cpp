// SPDX-License-Identifier: Apache-2.0
#include "formats/vgf/vgf_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/spirv/graph_module.h"
#include "ops/tosa_op.h"

namespace tosaic::vgf {
namespace {

struct Format {
  std::uint32_t number;
  DType type;
  bool is_unsigned;
  const char* name;
};
constexpr Format formats[] = {{13, DType::i8, true, "R8_UINT"},
                              {14, DType::i8, false, "R8_SINT"},
                              {14, DType::i4, false, "R8_SINT"},
                              {74, DType::i16, true, "R16_UINT"},
                              {75, DType::i16, false, "R16_SINT"},
                              {76, DType::f16, false, "R16_SFLOAT"},
                              {98, DType::i32, true, "R32_UINT"},
                              {99, DType::i32, false, "R32_SINT"},
                              {100, DType::f32, false, "R32_SFLOAT"},
                              {111, DType::i48, false, "R64_SINT"},
                              {1000460000, DType::boolean, false, "R8_BOOL_ARM"},
                              {1000460001, DType::bf16, false, "R16_SFLOAT_FPENCODING_BFLOAT16_ARM"},
                              {1000460002, DType::f8e4m3, false, "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM"},
                              {1000460003, DType::f8e5m2, false, "R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM"}};

// Is the value read or written as unsigned by a RESCALE?
bool is_unsigned(const Graph& graph, ValueId v) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
    return n.op == "tosa.rescale" && ((n.inputs[0] == v && n.attrs.get_or<bool>("input_unsigned", false)) ||
                                      (n.outputs[0] == v && n.attrs.get_or<bool>("output_unsigned", false)));
  });
}

// 2:4 sparsity along the input channels: of each four neighbours two are zero.
bool is_sparse(const TensorType& type, const Bytes& data) {
  if (type.rank() != 4 || type.shape[1] * type.shape[2] == 1) return false;
  const std::size_t size = storage_size(type.dtype), channels = static_cast<std::size_t>(type.shape[3]);
  const std::byte zero[8] = {};
  for (std::size_t row = 0; row < data.size(); row += channels * size)
    for (std::size_t c = 0; c < channels; c += 4) {
      int zeros = 0;
      for (std::size_t k = c; k < std::min(c + 4, channels); ++k)
        zeros += std::memcmp(data.data() + row + k * size, zero, size) == 0;
      if (zeros < 2) return false;
    }
  return true;
}

std::int32_t sparsity_of(const Graph& graph, ValueId v) {
  constexpr int weight = 1, channels = 3;
  const TensorType& type = graph[v].type;
  const DType known[] = {DType::i4, DType::i8, DType::f16, DType::f32};
  if (std::find(std::begin(known), std::end(known), type.dtype) == std::end(known)) return -1;
  const bool convolves = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
    return (n.op == "tosa.conv2d" || n.op == "tosa.transpose_conv2d") && n.inputs[weight] == v;
  });
  return convolves && is_sparse(type, graph[v].constant) ? channels : -1;
}

}  // namespace

std::optional<std::uint32_t> format_of(DType type, bool is_unsigned) {
  for (const Format& f : formats)
    if (f.type == type && f.is_unsigned == is_unsigned) return f.number;
  return std::nullopt;
}
std::optional<DType> dtype_of_format(std::uint32_t format) {
  for (const Format& f : formats)
    if (f.number == format) return f.type;
  return std::nullopt;
}
std::string name_of_format(std::uint32_t format) {
  for (const Format& f : formats)
    if (f.number == format) return f.name;
  return fmt::format("format {}", format);
}

Result<File> from_graph(const Graph& graph) {
  const std::string partition = "graph_partition_0";
  TOSAIC_TRY(spirv::GraphModule module, spirv::write_graph(graph, partition));
  File file;
  auto add_resource = [&](ValueId v, Category category) -> Result<std::uint32_t> {
    const TensorType& type = graph[v].type;
    const auto format = format_of(type.dtype, is_unsigned(graph, v));
    if (!format)
      return error("vgf.format", fmt::format("tensor '{}' is {}, for which Vulkan has no format", graph[v].name,
                                             name_of(type.dtype)));
    Resource r{
        category == Category::constant ? none : tensor_descriptor, *format, category, type.shape.dims(), {}, none, {}};
    file.resources.push_back(std::move(r));
    return static_cast<std::uint32_t>(file.resources.size() - 1);
  };

  Segment segment{Kind::graph, "graph_segment_0", 0, {DescriptorSet{0, {}}}, {}, {}, {}, {}, {}};
  for (std::uint32_t id = 0; id < module.constants.size(); ++id) {
    const ValueId v = module.constants[id];
    TOSAIC_TRY(const std::uint32_t resource, add_resource(v, Category::constant));
    file.constants.push_back({resource, sparsity_of(graph, v), graph[v].constant});
    segment.constants.push_back({id, id});
  }
  std::vector<Slot>& bound = segment.sets[0].slots;
  std::map<ValueId, Slot> slot_of_output;
  auto bind = [&](ValueId v, Category category) -> Result<Slot> {
    TOSAIC_TRY(const std::uint32_t resource, add_resource(v, category));
    bound.push_back({static_cast<std::uint32_t>(bound.size()), resource});
    return bound.back();
  };
  for (ValueId v : graph.inputs) {
    TOSAIC_TRY(const Slot slot, bind(v, Category::input));
    segment.inputs.push_back(slot);
    file.input_names.push_back(graph[v].name);
  }
  for (ValueId v : module.outputs) {
    TOSAIC_TRY(const Slot slot, bind(v, Category::output));
    segment.outputs.push_back(slot);
    slot_of_output[v] = slot;
  }
  file.inputs = segment.inputs;
  for (ValueId v : graph.outputs) {
    file.outputs.push_back(slot_of_output[v]);
    file.output_names.push_back(graph[v].name);
  }
  file.segments.push_back(std::move(segment));
  file.modules.push_back({Kind::graph, partition, partition, Language::spirv, Bytes::of(std::move(module.words))});
  return file;
}

Result<TensorType> type_of(const File& file, std::uint32_t resource) {
  const Resource& r = file.resources[resource];
  const auto dtype = dtype_of_format(r.format);
  if (!dtype)
    return error("vgf.format", fmt::format("resource {} has Vulkan's {}, which no TOSA tensor has", resource,
                                           name_of_format(r.format)));
  for (std::int64_t d : r.shape)
    if (d < 0) return error("vgf.dynamic", fmt::format("resource {} has a dim that the file leaves open", resource));
  return TensorType{*dtype, Shape(r.shape), std::nullopt};
}

Result<Graph> graph_of(const File& file, const Segment& segment) {
  const Module& module = file.modules[segment.module];
  if (module.language != Language::spirv)
    return error("vgf.no-code", fmt::format("module '{}' of segment '{}' holds no SPIR-V", module.name, segment.name));
  std::vector<std::pair<spirv::Word, spirv::OutsideConstant>> constants;
  for (const GraphConstant& c : segment.constants) {
    TOSAIC_TRY(TensorType type, type_of(file, file.constants[c.constant].resource));
    constants.push_back({c.id, {std::move(type), file.constants[c.constant].data}});
  }
  TOSAIC_TRY(Graph part, spirv::read_graph(module.code.as<spirv::Word>(), module.entry_point, constants));
  if (part.inputs.size() != segment.inputs.size() || part.outputs.size() != segment.outputs.size())
    return error("vgf.corrupt",
                 fmt::format("segment '{}' has {} inputs and {} outputs, its graph {} and {}", segment.name,
                             segment.inputs.size(), segment.outputs.size(), part.inputs.size(), part.outputs.size()));
  return part;
}

namespace {

class Joiner {
 public:
  explicit Joiner(const File& file) : file_(file) {}

  Result<Graph> join() {
    graph_.name = "main";
    for (std::size_t i = 0; i < file_.inputs.size(); ++i) {
      TOSAIC_TRY(TensorType type, type_of(file_, file_.inputs[i].resource));
      const bool named = i < file_.input_names.size() && !file_.input_names[i].empty();
      const ValueId v = graph_.add_value(named ? file_.input_names[i] : fmt::format("input_{}", i), std::move(type));
      graph_.inputs.push_back(v);
      value_of_[root(file_.inputs[i].resource)] = v;
    }
    for (const Segment& segment : file_.segments) TOSAIC_CHECK(append(segment));
    for (std::size_t i = 0; i < file_.outputs.size(); ++i) {
      const auto found = value_of_.find(root(file_.outputs[i].resource));
      if (found == value_of_.end()) return error("vgf.unconnected", fmt::format("nothing computes model output {}", i));
      graph_.outputs.push_back(found->second);
      if (i < file_.output_names.size() && !file_.output_names[i].empty() &&
          std::find(graph_.inputs.begin(), graph_.inputs.end(), found->second) == graph_.inputs.end())
        graph_[found->second].name = file_.output_names[i];
    }
    make_names_unique(graph_);
    return std::move(graph_);
  }

 private:
  // Resources of one alias group are the same memory.
  std::uint32_t root(std::uint32_t resource) const {
    const std::uint32_t group = file_.resources[resource].alias_group;
    if (group == none) return resource;
    for (std::uint32_t r = 0; r < file_.resources.size(); ++r)
      if (file_.resources[r].alias_group == group) return r;
    return resource;
  }

  Status append(const Segment& segment) {
    if (segment.kind != Kind::graph)
      return error("vgf.compute-segment", fmt::format("segment '{}' is a shader, not a TOSA graph", segment.name))
          .hint("tosaic runs files of graph segments on the CPU");
    TOSAIC_TRY(const Graph part, graph_of(file_, segment));
    std::vector<ValueId> moved(part.values.size(), no_value);
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      const std::uint32_t resource = root(segment.inputs[i].resource);
      const auto found = value_of_.find(resource);
      if (found == value_of_.end())
        return error("vgf.unconnected",
                     fmt::format("segment '{}' reads resource {}, which nothing has computed", segment.name, resource));
      TOSAIC_CHECK(agree(segment, graph_[found->second].type, part[part.inputs[i]].type));
      moved[part.inputs[i]] = as_read(found->second, part[part.inputs[i]].type);
    }
    for (ValueId v = 0; v < part.values.size(); ++v)
      if (moved[v] == no_value) moved[v] = graph_.add_value(part[v].name, part[v].type, part[v].constant);
    for (Node node : part.nodes) {
      for (ValueId& v : node.inputs) v = moved[v];
      for (ValueId& v : node.outputs) v = moved[v];
      graph_.nodes.push_back(std::move(node));
    }
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
      TOSAIC_TRY(const TensorType type, type_of(file_, segment.outputs[i].resource));
      TOSAIC_CHECK(agree(segment, type, part[part.outputs[i]].type));
      value_of_[root(segment.outputs[i].resource)] = as_read(moved[part.outputs[i]], type);
    }
    return {};
  }

  // Tensors of rank 0 are [1] in a module.
  ValueId as_read(ValueId v, const TensorType& type) {
    if (graph_[v].type.shape == type.shape) return v;
    const ValueId shape =
        graph_.add_value("shape", {DType::shape, {type.rank()}, std::nullopt}, Bytes::of(type.shape.dims()));
    const ValueId reshaped = graph_.add_value(graph_[v].name, {graph_[v].type.dtype, type.shape, std::nullopt});
    graph_.nodes.push_back({"tosa.reshape", {v, shape}, {}, {reshaped}, nullptr, {}});
    return reshaped;
  }

  static Status agree(const Segment& segment, const TensorType& resource, const TensorType& in_module) {
    if (storage_size(resource.dtype) == storage_size(in_module.dtype) &&
        resource.shape.elements() == in_module.shape.elements())
      return {};
    return error("vgf.corrupt", fmt::format("segment '{}': a resource is {}, its module takes {}", segment.name,
                                            to_string(resource), to_string(in_module)));
  }

  const File& file_;
  Graph graph_;
  std::map<std::uint32_t, ValueId> value_of_;  // by resource
};

}  // namespace

Result<Graph> to_graph(const File& file) { return Joiner(file).join(); }

Result<Graph> read_graph(const Bytes& bytes, const std::string& name) {
  auto read = [&]() -> Result<Graph> {
    TOSAIC_TRY(const File file, vgf::read(bytes));
    TOSAIC_TRY(Graph graph, to_graph(file));
    TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
    return graph;
  };
  auto graph = read();
  if (!graph.ok()) return std::move(graph.error()).at({name, 0, ""});
  return graph;
}

}  // namespace tosaic::vgf
