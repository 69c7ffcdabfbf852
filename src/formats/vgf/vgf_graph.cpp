// SPDX-License-Identifier: Apache-2.0
#include "formats/vgf/vgf_graph.h"

#include <fmt/format.h>
#include <cstring>

#include <algorithm>
#include <map>
#include <set>

#include "formats/vgf/shader.h"
#include "formats/vgf/split.h"
#include "formats/vgf/vulkan_names.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::vgf {
namespace {

struct Format {
  std::uint32_t number;
  DType type;
  bool is_unsigned;
};
constexpr Format formats[] = {{13, DType::i8, true},
                              {14, DType::i8, false},
                              {14, DType::i4, false},
                              {74, DType::i16, true},
                              {75, DType::i16, false},
                              {76, DType::f16, false},
                              {98, DType::i32, true},
                              {99, DType::i32, false},
                              {100, DType::f32, false},
                              {111, DType::i48, false},
                              {1000460000, DType::boolean, false},
                              {1000460001, DType::bf16, false},
                              {1000460002, DType::f8e4m3, false},
                              {1000460003, DType::f8e5m2, false}};

// What nodes make of values: read or written as unsigned by a RESCALE; weights of a convolution.
struct Uses {
  explicit Uses(const Graph& graph) : is_unsigned(graph.values.size()), convolved(graph.values.size()) {
    constexpr int weight = 1;
    for (const Node& n : graph.nodes)
      if (n.op == tosa::op::rescale) {
        if (n.attrs.get_or<bool>("input_unsigned", false)) is_unsigned[n.inputs[0]] = true;
        if (n.attrs.get_or<bool>("output_unsigned", false)) is_unsigned[n.outputs[0]] = true;
      } else if (n.op == tosa::op::conv2d || n.op == tosa::op::transpose_conv2d) {
        convolved[n.inputs[weight]] = true;
      }
  }
  std::vector<bool> is_unsigned, convolved;
};

// 2:4 sparsity along the input channels: of each four neighbours two are zero.
bool is_sparse(const TensorType& type, const Bytes& data) {
  if (type.rank() != 4 || type.shape.size(1) * type.shape.size(2) == 1) return false;
  const std::size_t size = storage_size(type.dtype), channels = static_cast<std::size_t>(type.shape.size(3));
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

std::int32_t sparsity_of(const Graph& graph, const Uses& uses, ValueId v) {
  constexpr int channels = 3;
  const TensorType& type = graph[v].type;
  const DType known[] = {DType::i4, DType::i8, DType::f16, DType::f32};
  if (std::find(std::begin(known), std::end(known), type.dtype) == std::end(known)) return -1;
  return uses.convolved[v] && is_sparse(type, graph[v].constant) ? channels : -1;
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
  constexpr std::size_t prefix = std::string_view("VK_FORMAT_").size();
  if (dtype_of_format(format)) return vulkan_name(VulkanEnum::format, format).substr(prefix);
  return fmt::format("format {}", format);
}

namespace {

// The file of a graph: its segments in order, and the resources that they share.
class Maker {
 public:
  Maker(const Graph& graph, const spirv::WriteOptions& options)
      : parts_(split(graph)), whole_(parts_.whole), uses_(whole_), options_(options) {}

  Result<File> make() {
    number_bindings();
    std::vector<spirv::GraphModule> modules(parts_.list.size());
    for (std::size_t p = 0; p < modules.size(); ++p) {
      if (parts_.list[p].shader) continue;
      TOSAIC_TRY(modules[p], module_of(p));
      for (ValueId v : modules[p].constants) TOSAIC_CHECK(add_constant(v));
    }
    for (const auto& [place, v] : places_) {
      TOSAIC_TRY(const std::uint32_t resource, add_resource(v, place.category));
      slots_[place] = {place.binding, resource};
    }
    for (std::size_t p = 0; p < modules.size(); ++p) {
      if (parts_.list[p].shader) {
        TOSAIC_CHECK(add_shader(p));
      } else {
        add_graph(p, std::move(modules[p]));
      }
    }
    for (ValueId v : whole_.inputs) {
      file_.inputs.push_back(taken(v));
      file_.input_names.push_back(whole_[v].name);
    }
    for (ValueId v : whole_.outputs) {
      file_.outputs.push_back(given(v));
      file_.output_names.push_back(whole_[v].name);
    }
    return std::move(file_);
  }

 private:
  // Inputs, intermediate tensors and outputs have bindings in this order. A value that is both an input and an output
  // is two tensors.
  struct Place {
    std::uint32_t binding;
    Category category;
    auto operator<=>(const Place&) const = default;
  };
  void number_bindings() {
    std::uint32_t next = 0;
    auto number = [&](std::map<ValueId, Place>& of, ValueId v, Category category) {
      if (of.contains(v)) return;
      places_.push_back({{next++, category}, v});
      of[v] = places_.back().first;
    };
    for (ValueId v : whole_.inputs) number(taken_, v, Category::input);
    for (const Part& part : parts_.list)
      for (ValueId v : part.graph.outputs)
        if (std::find(whole_.outputs.begin(), whole_.outputs.end(), v) == whole_.outputs.end()) {
          number(given_, v, Category::intermediate);
          taken_.emplace(v, given_[v]);
        }
    for (ValueId v : whole_.outputs) {
      number(given_, v, Category::output);
      taken_.emplace(v, given_[v]);
    }
  }
  Slot taken(ValueId v) const { return slots_.at(taken_.at(v)); }
  Slot given(ValueId v) const { return slots_.at(given_.at(v)); }

  Result<spirv::GraphModule> module_of(std::size_t p) const {
    const Graph& graph = parts_.list[p].graph;
    std::vector<spirv::Word> bindings;
    for (ValueId v : graph.inputs) bindings.push_back(taken_.at(v).binding);
    std::set<ValueId> outputs;
    for (ValueId v : graph.outputs)
      if (outputs.insert(v).second) bindings.push_back(given_.at(v).binding);
    return spirv::write_graph(graph, fmt::format("graph_partition_{}", p), options_, bindings);
  }

  Result<std::uint32_t> add_resource(ValueId v, Category category) {
    const TensorType& type = whole_[v].type;
    const auto format = format_of(type.dtype, uses_.is_unsigned[v]);
    if (!format)
      return error("vgf.format", fmt::format("tensor '{}' is {}, for which Vulkan has no format", whole_[v].name,
                                             name_of(type.dtype)));
    return add({category == Category::constant ? none : tensor_descriptor,
                *format,
                category,
                type.shape.sizes(),
                {},
                none,
                {}});
  }
  std::uint32_t add(Resource resource) {
    file_.resources.push_back(std::move(resource));
    return static_cast<std::uint32_t>(file_.resources.size() - 1);
  }
  Status add_constant(ValueId v) {
    if (constants_.contains(v)) return {};
    TOSAIC_TRY(const std::uint32_t resource, add_resource(v, Category::constant));
    constants_[v] = static_cast<std::uint32_t>(file_.constants.size());
    file_.constants.push_back({resource, sparsity_of(whole_, uses_, v), whole_[v].constant});
    return {};
  }

  void add_graph(std::size_t p, spirv::GraphModule module) {
    Segment segment{Kind::graph, fmt::format("graph_segment_{}", p), 0, {DescriptorSet{0, {}}}, {}, {}, {}, {}, {}};
    for (ValueId v : parts_.list[p].graph.inputs) segment.inputs.push_back(taken(v));
    for (ValueId v : module.outputs) segment.outputs.push_back(given(v));
    std::vector<Slot>& bound = segment.sets[0].slots;
    bound = segment.inputs;
    bound.insert(bound.end(), segment.outputs.begin(), segment.outputs.end());
    for (std::uint32_t id = 0; id < module.constants.size(); ++id)
      segment.constants.push_back({id, constants_.at(module.constants[id])});
    const std::string name = fmt::format("graph_partition_{}", p);
    add_segment(std::move(segment), {Kind::graph, name, name, Language::spirv, Bytes::of(std::move(module.words))});
  }

  Status add_shader(std::size_t p) {
    const Node& node = parts_.list[p].graph.nodes[0];
    auto parsed =
        parse_shader(node.attrs.get<std::string>("implementation_attrs"), node.inputs.size(), node.outputs.size());
    if (!parsed.ok()) return located(std::move(parsed.error()), node.loc);
    const Shader& shader = *parsed;
    Segment segment{Kind::compute, fmt::format("compute_segment_{}", p), 0, {}, {}, {}, {}, shader.dispatch, {}};
    auto bind = [&](const ShaderOperand& operand, Slot slot) {
      slot = {operand.binding, as_seen(slot.resource, operand)};
      auto set = std::find_if(segment.sets.begin(), segment.sets.end(),
                              [&](const DescriptorSet& s) { return s.index == operand.set; });
      if (set == segment.sets.end()) set = segment.sets.insert(set, {operand.set, {}});
      set->slots.push_back(slot);
      return slot;
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      segment.inputs.push_back(bind(shader.inputs[i], taken(node.inputs[i])));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      segment.outputs.push_back(bind(shader.outputs[i], given(node.outputs[i])));
    add_segment(std::move(segment), {Kind::compute, node.attrs.get<std::string>("operator_name"), shader.entry_point,
                                     shader.language, shader.code});
    return {};
  }
  // The resource as a shader wants it: another kind of descriptor or another format is another resource on the same
  // memory.
  std::uint32_t as_seen(std::uint32_t resource, const ShaderOperand& operand) {
    const std::uint32_t format = operand.format ? operand.format : file_.resources[resource].format;
    auto fits = [&](const Resource& r) {
      return r.descriptor_type == operand.descriptor_type && r.format == format &&
             r.sampler.size() == operand.sampler.size() &&
             (r.sampler.empty() || r.sampler[0].values == operand.sampler[0].values);
    };
    if (fits(file_.resources[resource])) return resource;
    const std::uint32_t group = file_.resources[resource].alias_group;
    for (std::uint32_t r = 0; group != none && r < file_.resources.size(); ++r)
      if (file_.resources[r].alias_group == group && fits(file_.resources[r])) return r;
    if (group == none) file_.resources[resource].alias_group = next_group_++;
    Resource other = file_.resources[resource];
    other.descriptor_type = operand.descriptor_type;
    other.format = format;
    other.sampler = operand.sampler;
    return add(std::move(other));
  }
  void add_segment(Segment segment, Module module) {
    segment.module = static_cast<std::uint32_t>(file_.modules.size());
    file_.segments.push_back(std::move(segment));
    file_.modules.push_back(std::move(module));
  }

  const Parts parts_;
  const Graph& whole_;
  const Uses uses_;
  const spirv::WriteOptions& options_;
  File file_;
  std::vector<std::pair<Place, ValueId>> places_;
  std::map<ValueId, Place> taken_, given_;  // as an operand, as a result
  std::map<Place, Slot> slots_;
  std::map<ValueId, std::uint32_t> constants_;  // index in the file
  std::uint32_t next_group_ = 0;
};

}  // namespace

Result<File> from_graph(const Graph& graph, const spirv::WriteOptions& options) { return Maker(graph, options).make(); }

Result<TensorType> type_of(const File& file, std::uint32_t resource) {
  const Resource& r = file.resources[resource];
  auto dtype = dtype_of_format(r.format);
  // A texture of a shader's: what TOSA operators see of it is another resource on the same memory, if any.
  for (const Resource& other : file.resources)
    if (!dtype && r.alias_group != none && other.alias_group == r.alias_group) dtype = dtype_of_format(other.format);
  if (!dtype) dtype = channel_type(r.format);
  if (!dtype)
    return error("vgf.format", fmt::format("resource {} has Vulkan's {}, which no TOSA tensor has", resource,
                                           name_of_format(r.format)));
  for (std::int64_t d : r.shape)
    if (d < 0) return error("vgf.dynamic", fmt::format("resource {} has a dim that the file leaves open", resource));
  return TensorType{*dtype, Shape(r.shape), std::nullopt};
}

Result<Graph> graph_of(const File& file, const Segment& segment, std::vector<spirv::Word>* bindings) {
  const Module& module = file.modules[segment.module];
  if (module.language != Language::spirv)
    return error("vgf.no-code", fmt::format("module '{}' of segment '{}' holds no SPIR-V", module.name, segment.name));
  std::vector<std::pair<spirv::Word, spirv::OutsideConstant>> constants;
  for (const GraphConstant& c : segment.constants) {
    TOSAIC_TRY(TensorType type, type_of(file, file.constants[c.constant].resource));
    constants.push_back({c.id, {std::move(type), file.constants[c.constant].data}});
  }
  TOSAIC_TRY(Graph part, spirv::read_graph(module.code.as<spirv::Word>(), module.entry_point, constants, bindings));
  if (part.inputs.size() != segment.inputs.size() || part.outputs.size() != segment.outputs.size())
    return error("vgf.corrupt",
                 fmt::format("segment '{}' has {} inputs and {} outputs, its graph {} and {}", segment.name,
                             segment.inputs.size(), segment.outputs.size(), part.inputs.size(), part.outputs.size()));
  return part;
}

namespace {

class Joiner {
 public:
  explicit Joiner(const File& file) : file_(file), roots_(first_of_memory(file)) {}

  Result<Graph> join() {
    graph_.name = "main";
    // A table whose fields have gone looks like one that has none.
    if (file_.outputs.empty()) return error("vgf.empty", "the model has no outputs");
    for (std::size_t i = 0; i < file_.inputs.size(); ++i) {
      TOSAIC_TRY(TensorType type, type_of(file_, file_.inputs[i].resource));
      const bool named = i < file_.input_names.size() && !file_.input_names[i].empty();
      const ValueId v = graph_.add_value(named ? file_.input_names[i] : fmt::format("input_{}", i), std::move(type));
      graph_.inputs.push_back(v);
      value_of_[roots_[file_.inputs[i].resource]] = v;
    }
    for (const Segment& segment : file_.segments) TOSAIC_CHECK(append(segment));
    for (std::size_t i = 0; i < file_.outputs.size(); ++i) {
      const auto found = value_of_.find(roots_[file_.outputs[i].resource]);
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
  Status append(const Segment& segment) {
    if (segment.kind != Kind::graph) return append_shader(segment);
    std::vector<spirv::Word> bindings;
    TOSAIC_TRY(const Graph part, graph_of(file_, segment, &bindings));
    std::vector<ValueId> moved(part.values.size(), no_value);
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      const std::uint32_t resource = roots_[bound(segment, bindings[i], segment.inputs[i])];
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
      const std::uint32_t resource = bound(segment, bindings[part.inputs.size() + i], segment.outputs[i]);
      TOSAIC_TRY(const TensorType type, type_of(file_, resource));
      TOSAIC_CHECK(agree(segment, type, part[part.outputs[i]].type));
      value_of_[roots_[resource]] = as_read(moved[part.outputs[i]], type);
    }
    return {};
  }

  // The resource at a binding of the segment's descriptor set. The lists of inputs and outputs are in another order
  // than the graph's own where Arm's converter splits a graph.
  static std::uint32_t bound(const Segment& segment, spirv::Word binding, const Slot& at_place) {
    for (const DescriptorSet& set : segment.sets)
      for (const Slot& slot : set.slots)
        if (slot.binding == binding) return slot.resource;
    return at_place.resource;
  }

  // A compute segment is a CUSTOM operator: what it takes and gives is known, what it does is between it and Vulkan.
  Status append_shader(const Segment& segment) {
    const Module& module = file_.modules[segment.module];
    if (segment.dispatch.size() != 3)
      return error("vgf.compute-segment", fmt::format("segment '{}' is a shader without work groups", segment.name));
    Shader shader{module.entry_point, module.language, module.code, segment.dispatch, {}, {}};
    Node node;
    node.op = tosa::op::custom;
    for (const auto& [seen, resource] : operands(segment, segment.inputs)) {
      const auto found = value_of_.find(roots_[resource]);
      if (found == value_of_.end())
        return error("vgf.unconnected",
                     fmt::format("segment '{}' reads resource {}, which nothing has computed", segment.name, resource));
      shader.inputs.push_back(seen);
      node.inputs.push_back(found->second);
    }
    for (const auto& [seen, resource] : operands(segment, segment.outputs)) {
      TOSAIC_TRY(const TensorType type, type_of(file_, resource));
      shader.outputs.push_back(seen);
      node.outputs.push_back(graph_.add_value(fmt::format("{}_{}", segment.name, node.outputs.size()), type));
      value_of_[roots_[resource]] = node.outputs.back();
    }
    node.attrs.set("operator_name", Attr(module.name));
    node.attrs.set("domain_name", Attr(std::string(shader_domain)));
    node.attrs.set("implementation_attrs", Attr(shader_json(shader)));
    graph_.nodes.push_back(std::move(node));
    return {};
  }
  // How a shader sees its tensors, in the order of the bindings that its descriptor sets give them: that of the lists
  // is another one in files of Arm's converter.
  std::vector<std::pair<ShaderOperand, std::uint32_t>> operands(const Segment& segment,
                                                                const std::vector<Slot>& slots) const {
    std::vector<std::pair<ShaderOperand, std::uint32_t>> list;
    for (const Slot& slot : slots) {
      const Resource& r = file_.resources[slot.resource];
      ShaderOperand seen{slot.binding, 0, r.format, r.descriptor_type, r.sampler};
      for (std::size_t i = 0; i < segment.sets.size(); ++i)
        for (const Slot& bound : segment.sets[i].slots)
          if (bound.resource == slot.resource) {
            seen.binding = bound.binding;
            seen.set = segment.sets[i].index == none ? static_cast<std::uint32_t>(i) : segment.sets[i].index;
          }
      list.emplace_back(std::move(seen), slot.resource);
    }
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.set, a.first.binding) < std::pair(b.first.set, b.first.binding);
    });
    return list;
  }

  // Tensors of rank 0 are [1] in a module. RESHAPE takes no int48: such tensors stay what the module says.
  ValueId as_read(ValueId v, const TensorType& type) {
    if (graph_[v].type.shape == type.shape) return v;
    if (graph_[v].is_constant())
      return graph_.add_value(graph_[v].name, graph_[v].type.with(type.shape), graph_[v].constant);
    if (graph_[v].type.dtype == DType::i48) {
      if (std::find(graph_.inputs.begin(), graph_.inputs.end(), v) != graph_.inputs.end())
        graph_[v].type.shape = type.shape;
      return v;
    }
    const ValueId shape =
        graph_.add_value("shape", {DType::shape, {type.rank()}, std::nullopt}, Bytes::of(type.shape.sizes()));
    const ValueId reshaped = graph_.add_value(graph_[v].name, {graph_[v].type.dtype, type.shape, std::nullopt});
    graph_.nodes.push_back({tosa::op::reshape, {v, shape}, {}, {reshaped}, nullptr, {}});
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
  const std::vector<std::uint32_t> roots_;  // of resources: alias groups are one memory
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
