// SPDX-License-Identifier: Apache-2.0
#include "vulkan/check_segment.h"

#include <fmt/format.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <map>
#include <set>

#include "formats/vgf/vgf_graph.h"
#include "ops/definitions/tosa_op.h"
#include "vulkan/module_interface.h"

namespace tosaic::vulkan {
namespace {

constexpr std::uint32_t most_sets = 32;

class Checker {
 public:
  explicit Checker(const vgf::File& file) : file_(file), memory_(vgf::first_of_memory(file)) {}

  Result<std::vector<CheckedSegment>> check() {
    for (const vgf::Slot& slot : file_.inputs) computed(slot.resource);
    for (std::uint32_t r = 0; r < file_.resources.size(); ++r)
      if (file_.resources[r].category == vgf::Category::constant) computed(r);
    std::vector<CheckedSegment> all;
    for (const vgf::Segment& segment : file_.segments) {
      auto checked = this->segment(segment);
      if (!checked.ok()) return std::move(checked.error()).note(fmt::format("in segment '{}'", segment.name));
      all.push_back(*std::move(checked));
      for (const vgf::Slot& slot : segment.outputs) computed(slot.resource);
    }
    for (std::size_t i = 0; i < file_.outputs.size(); ++i)
      if (!is_computed(file_.outputs[i].resource))
        return error("vgf.unconnected", fmt::format("nothing computes model output {}", i));
    return all;
  }

 private:
  void computed(std::uint32_t resource) { computed_.insert(memory_[resource]); }
  bool is_computed(std::uint32_t resource) const { return computed_.contains(memory_[resource]); }

  Result<CheckedSegment> segment(const vgf::Segment& s) {
    CheckedSegment checked;
    checked.segment = &s;
    const vgf::Module& module = file_.modules[s.module];
    if (module.language != vgf::Language::spirv)
      return error("vgf.no-code", fmt::format("module '{}' holds no SPIR-V", module.name))
          .hint("compile its source to SPIR-V when the file is made");
    for (const vgf::Slot& slot : s.inputs)
      if (!is_computed(slot.resource))
        return error("vgf.unconnected", fmt::format("it reads resource {}, which nothing has computed", slot.resource));
    TOSAIC_TRY(const auto bound, bindings(s));
    TOSAIC_TRY(const ModuleInterface interface,
               interface_of(module.code.as<spirv::Word>(), module.entry_point, s.kind));
    if (s.kind == vgf::Kind::graph) {
      TOSAIC_CHECK(graph(s, bound, interface, checked));
    } else {
      TOSAIC_CHECK(shader(s, bound, interface));
      for (const auto& [place, resource] : bound) checked.bound.push_back({place.first, place.second, resource});
    }
    return checked;
  }

  using Bound = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;  // (set, binding) to resource

  static Result<Bound> bindings(const vgf::Segment& s) {
    Bound bound;
    std::set<std::uint32_t> sets;
    for (std::size_t i = 0; i < s.sets.size(); ++i) {
      const std::uint32_t set = number_of_set(s, i);
      if (set >= most_sets || !sets.insert(set).second)
        return error("vgf.corrupt", fmt::format("descriptor set {} is one of too many, or there twice", set));
      for (const vgf::Slot& slot : s.sets[i].slots)
        if (!bound.try_emplace({set, slot.binding}, slot.resource).second)
          return error("vgf.corrupt", fmt::format("binding {} of descriptor set {} is there twice", slot.binding, set));
    }
    return bound;
  }

  static Result<std::uint32_t> resource_at(const Bound& bound, const ModuleBinding& wanted) {
    const auto found = bound.find({wanted.set, wanted.binding});
    if (found != bound.end()) return found->second;
    return error("vgf.corrupt", fmt::format("its module uses binding {} of descriptor set {}, the file gives it none",
                                            wanted.binding, wanted.set));
  }

  Status graph(const vgf::Segment& s, const Bound& bound, const ModuleInterface& interface,
               CheckedSegment& checked) const {
    TOSAIC_TRY(const Graph read, vgf::graph_of(file_, s));
    TOSAIC_CHECK(tosa::verify_graph(read, tosa::Spec::everything()));
    std::vector<ValueId> values = read.inputs;
    values.insert(values.end(), read.outputs.begin(), read.outputs.end());
    std::vector<std::uint32_t> resources;  // of the values
    if (interface.bindings.size() != values.size())
      return error("spirv.corrupt", fmt::format("the graph has {} inputs and outputs, its entry point {}",
                                                values.size(), interface.bindings.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      TOSAIC_TRY(const std::uint32_t resource, resource_at(bound, interface.bindings[i]));
      // In any order: Arm's converter lists them in another one where it splits a graph.
      const std::vector<vgf::Slot>& named = i < s.inputs.size() ? s.inputs : s.outputs;
      if (std::none_of(named.begin(), named.end(), [&](const vgf::Slot& slot) { return slot.resource == resource; }))
        return error("vgf.corrupt",
                     fmt::format("tensor {} of the graph is bound to resource {}, which the segment does "
                                 "not name",
                                 i, resource));
      resources.push_back(resource);
      TOSAIC_TRY(const TensorType type, vgf::type_of(file_, resource));
      const TensorType& wanted = read[values[i]].type;
      const Shape shape = type.rank() == 0 ? Shape({1}) : type.shape;
      if (storage_size(type.dtype) != storage_size(wanted.dtype) || shape.sizes() != wanted.shape.sizes())
        return error("vgf.corrupt", fmt::format("resource {} is {}, the graph takes {}", resource, to_string(type),
                                                to_string(wanted)));
    }
    TOSAIC_TRY(checked.graph, vgf::from_graph(read));
    std::map<std::uint32_t, std::uint32_t> resource_of;  // by binding
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t inputs = s.inputs.size();
      const std::uint32_t binding = (i < inputs ? checked.graph.inputs[i] : checked.graph.outputs[i - inputs]).binding;
      if (const auto [known, fresh] = resource_of.try_emplace(binding, resources[i]); !fresh)
        checked.same.push_back({known->second, resources[i]});
    }
    for (const auto& [binding, resource] : resource_of) checked.bound.push_back({0, binding, resource});
    return {};
  }

  Status shader(const vgf::Segment& s, const Bound& bound, const ModuleInterface& interface) const {
    if (s.dispatch.size() != 3 || std::ranges::count(s.dispatch, 0u) != 0)
      return error("vulkan.segment", "the shader has no number of work groups");
    if (!s.push_ranges.empty() || interface.has_push_constants)
      return error("vulkan.segment", "the shader takes push constants, whose values a VGF file does not hold");
    for (const ModuleBinding& b : interface.bindings) {
      TOSAIC_TRY(const std::uint32_t resource, resource_at(bound, b));
      const std::uint32_t type = file_.resources[resource].descriptor_type;
      const bool is_buffer = type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
      if (is_buffer == (b.storage == spirv::storage_uniform_constant) ||
          (b.storage == spirv::storage_buffer && type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER))
        return error("vgf.corrupt", fmt::format("resource {} has Vulkan's descriptor type {}, which is not what the "
                                                "shader has at binding {}",
                                                resource, type, b.binding));
    }
    return {};
  }

  const vgf::File& file_;
  const std::vector<std::uint32_t> memory_;  // of each resource
  std::set<std::uint32_t> computed_;
};

}  // namespace

Result<std::vector<CheckedSegment>> check_segments(const vgf::File& file) { return Checker(file).check(); }

}  // namespace tosaic::vulkan
