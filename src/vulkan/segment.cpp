// SPDX-License-Identifier: Apache-2.0
#include "vulkan/segment.h"

#include <fmt/format.h>
#include <cstring>

#include <algorithm>
#include <map>

#include "formats/vgf/vgf_graph.h"
#include "vulkan/call.h"

namespace tosaic::vulkan {
namespace {

VkDescriptorType descriptor_type(const vgf::Resource& r) {
  return r.descriptor_type == vgf::none ? VK_DESCRIPTOR_TYPE_TENSOR_ARM
                                        : static_cast<VkDescriptorType>(r.descriptor_type);
}

// The constants of a graph as its pipeline takes them: each with a description of its tensor, sparse ones with a
// description of that.
class Constants {
 public:
  explicit Constants(std::size_t count) {
    list_.reserve(count);
    sparsity_.reserve(count);
  }
  void add(std::uint32_t id, const vgf::Resource& resource, const Bytes& data, std::int32_t sparse_dim) {
    auto description = describe_tensor(resource, VK_TENSOR_USAGE_DATA_GRAPH_BIT_ARM);
    if (sparse_dim >= 0) {
      sparsity_.push_back({stype::sparsity, nullptr, static_cast<std::uint32_t>(sparse_dim), 2, 4});  // 2 of 4
      description->description.pNext = &sparsity_.back();
    }
    list_.push_back({stype::graph_constant, &description->description, id, aligned(data)});
    descriptions_.push_back(std::move(description));
    data_.push_back(data);
  }
  const std::vector<VkDataGraphPipelineConstantARM>& list() const { return list_; }

 private:
  // Drivers may read the data by whole elements.
  const void* aligned(const Bytes& data) {
    if (reinterpret_cast<std::uintptr_t>(data.data()) % sizeof(std::uint64_t) == 0) return data.data();
    auto& copy = copies_.emplace_back((data.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    std::memcpy(copy.data(), data.data(), data.size());
    return copy.data();
  }
  std::vector<VkDataGraphPipelineConstantARM> list_;
  std::vector<VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM> sparsity_;
  std::vector<std::unique_ptr<TensorDescription>> descriptions_;
  std::vector<Bytes> data_;
  std::vector<std::vector<std::uint64_t>> copies_;
};

}  // namespace

Result<std::unique_ptr<SegmentOnDevice>> SegmentOnDevice::make(const vgf::File& file, const CheckedSegment& checked,
                                                               const Resources& resources,
                                                               std::shared_ptr<Device> device) {
  auto made = std::make_unique<SegmentOnDevice>(checked, std::move(device));
  TOSAIC_CHECK(made->make_layout(file));
  if (checked.segment->kind == vgf::Kind::graph) {
    TOSAIC_CHECK(made->make_graph_pipeline(resources));
    TOSAIC_CHECK(made->make_session());
  } else {
    TOSAIC_CHECK(made->make_compute_pipeline(file.modules[checked.segment->module]));
  }
  TOSAIC_CHECK(made->make_descriptors(file, resources));
  return made;
}

Status SegmentOnDevice::make_layout(const vgf::File& file) {
  const auto& vk = device_->vk;
  std::vector<std::vector<VkDescriptorSetLayoutBinding>> bindings;  // by set number; numbers left out are empty sets
  for (const BoundResource& b : checked_.bound) {
    if (bindings.size() <= b.set) bindings.resize(b.set + 1);
    bindings[b.set].push_back(
        {b.binding, descriptor_type(file.resources[b.resource]), 1, VK_SHADER_STAGE_ALL, nullptr});
  }
  for (const auto& list : bindings) {
    VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    info.bindingCount = static_cast<std::uint32_t>(list.size());
    info.pBindings = list.data();
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    TOSAIC_CHECK(called("vkCreateDescriptorSetLayout",
                        [&] { return vk.vkCreateDescriptorSetLayout(device_->handle, &info, nullptr, &layout); }));
    undo_.later([this, layout] { device_->vk.vkDestroyDescriptorSetLayout(device_->handle, layout, nullptr); });
    set_layouts_.push_back(layout);
  }
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = static_cast<std::uint32_t>(set_layouts_.size());
  info.pSetLayouts = set_layouts_.data();
  TOSAIC_CHECK(called("vkCreatePipelineLayout",
                      [&] { return vk.vkCreatePipelineLayout(device_->handle, &info, nullptr, &layout_); }));
  undo_.later([this] { device_->vk.vkDestroyPipelineLayout(device_->handle, layout_, nullptr); });
  return {};
}

Result<VkShaderModule> SegmentOnDevice::make_module(const Bytes& code) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size();
  info.pCode = code.as<std::uint32_t>().data();
  VkShaderModule module = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkCreateShaderModule",
                      [&] { return device_->vk.vkCreateShaderModule(device_->handle, &info, nullptr, &module); }));
  undo_.later([this, module] { device_->vk.vkDestroyShaderModule(device_->handle, module, nullptr); });
  return module;
}

Status SegmentOnDevice::make_graph_pipeline(const Resources& resources) {
  std::vector<VkDataGraphPipelineResourceInfoARM> bound;
  for (const BoundResource& b : checked_.bound)
    bound.push_back({stype::graph_resource, &resources.description(b.resource).description, b.set, b.binding, 0});
  const vgf::File& graph = checked_.graph;
  const vgf::Segment& segment = graph.segments[0];
  Constants constants(segment.constants.size());
  for (const vgf::GraphConstant& c : segment.constants) {
    const vgf::Constant& constant = graph.constants[c.constant];
    constants.add(c.id, graph.resources[constant.resource], constant.data, constant.sparsity_dimension);
  }
  const vgf::Module& code = graph.modules[segment.module];
  TOSAIC_TRY(const VkShaderModule module, make_module(code.code));
  VkDataGraphPipelineShaderModuleCreateInfoARM shader{stype::graph_module};
  shader.module = module;
  shader.pName = code.entry_point.c_str();
  shader.constantCount = static_cast<std::uint32_t>(constants.list().size());
  shader.pConstants = constants.list().data();
  VkDataGraphPipelineCreateInfoARM info{stype::graph_pipeline};
  info.pNext = &shader;
  info.layout = layout_;
  info.resourceInfoCount = static_cast<std::uint32_t>(bound.size());
  info.pResourceInfos = bound.data();
  TOSAIC_CHECK(called("vkCreateDataGraphPipelinesARM", [&] {
    return device_->ml.CreateDataGraphPipelinesARM(device_->handle, VK_NULL_HANDLE, device_->pipeline_cache, 1, &info,
                                                   nullptr, &pipeline_);
  }));
  undo_.later([this] { device_->vk.vkDestroyPipeline(device_->handle, pipeline_, nullptr); });
  return {};
}

Status SegmentOnDevice::make_compute_pipeline(const vgf::Module& module) {
  TOSAIC_TRY(const VkShaderModule shader, make_module(module.code));
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = module.entry_point.c_str();
  info.layout = layout_;
  TOSAIC_CHECK(called("vkCreateComputePipelines", [&] {
    return device_->vk.vkCreateComputePipelines(device_->handle, device_->pipeline_cache, 1, &info, nullptr,
                                                &pipeline_);
  }));
  undo_.later([this] { device_->vk.vkDestroyPipeline(device_->handle, pipeline_, nullptr); });
  return {};
}

Status SegmentOnDevice::make_session() {
  const auto& ml = device_->ml;
  VkDataGraphPipelineSessionCreateInfoARM info{stype::session};
  info.dataGraphPipeline = pipeline_;
  TOSAIC_CHECK(called("vkCreateDataGraphPipelineSessionARM", [&] {
    return ml.CreateDataGraphPipelineSessionARM(device_->handle, &info, nullptr, &session_);
  }));
  undo_.later([this] { device_->ml.DestroyDataGraphPipelineSessionARM(device_->handle, session_, nullptr); });

  VkDataGraphPipelineSessionBindPointRequirementsInfoARM which{stype::bind_points};
  which.session = session_;
  std::uint32_t count = 0;
  const auto get = [&](VkDataGraphPipelineSessionBindPointRequirementARM* list) {
    return called("vkGetDataGraphPipelineSessionBindPointRequirementsARM", [&] {
      return ml.GetDataGraphPipelineSessionBindPointRequirementsARM(device_->handle, &which, &count, list);
    });
  };
  TOSAIC_CHECK(get(nullptr));
  std::vector<VkDataGraphPipelineSessionBindPointRequirementARM> points(count, {stype::bind_point});
  TOSAIC_CHECK(get(points.data()));
  for (const auto& point : points)
    for (std::uint32_t i = 0; i < point.numObjects; ++i) {
      VkDataGraphPipelineSessionMemoryRequirementsInfoARM object{stype::session_requirements};
      object.session = session_;
      object.bindPoint = point.bindPoint;
      object.objectIndex = i;
      VkMemoryRequirements2 needs{VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
      TOSAIC_CHECK(called_void("vkGetDataGraphPipelineSessionMemoryRequirementsARM", [&] {
        ml.GetDataGraphPipelineSessionMemoryRequirementsARM(device_->handle, &object, &needs);
      }));
      const VkMemoryRequirements& r = needs.memoryRequirements;
      if (r.size == 0) continue;
      const VkDeviceSize unit = std::max<VkDeviceSize>(r.alignment, 1);
      VkBindDataGraphPipelineSessionMemoryInfoARM bind{stype::bind_session};
      bind.session = session_;
      bind.bindPoint = point.bindPoint;
      bind.objectIndex = i;
      bind.memoryOffset = (session_bytes_ + unit - 1) / unit * unit;
      session_bytes_ = bind.memoryOffset + r.size;
      session_types_ &= r.memoryTypeBits;
      session_objects_.push_back(bind);
    }
  return {};
}

Status SegmentOnDevice::bind_session(const Memory& memory) const {
  auto objects = session_objects_;
  if (objects.empty()) return {};
  for (auto& object : objects) object.memory = memory.handle();
  return called("vkBindDataGraphPipelineSessionMemoryARM", [&] {
    return device_->ml.BindDataGraphPipelineSessionMemoryARM(
        device_->handle, static_cast<std::uint32_t>(objects.size()), objects.data());
  });
}

Status SegmentOnDevice::make_descriptors(const vgf::File& file, const Resources& resources) {
  const auto& vk = device_->vk;
  std::map<VkDescriptorType, std::uint32_t> counts;
  for (const BoundResource& b : checked_.bound) ++counts[descriptor_type(file.resources[b.resource])];
  if (counts.empty()) return {};
  std::vector<VkDescriptorPoolSize> sizes;
  for (const auto& [type, count] : counts) sizes.push_back({type, count});
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = static_cast<std::uint32_t>(set_layouts_.size());
  pool_info.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  pool_info.pPoolSizes = sizes.data();
  VkDescriptorPool pool = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkCreateDescriptorPool",
                      [&] { return vk.vkCreateDescriptorPool(device_->handle, &pool_info, nullptr, &pool); }));
  undo_.later([this, pool] { device_->vk.vkDestroyDescriptorPool(device_->handle, pool, nullptr); });
  for (std::uint32_t number = 0; number < set_layouts_.size(); ++number) {
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &set_layouts_[number];
    VkDescriptorSet set = VK_NULL_HANDLE;
    TOSAIC_CHECK(
        called("vkAllocateDescriptorSets", [&] { return vk.vkAllocateDescriptorSets(device_->handle, &info, &set); }));
    sets_.push_back(set);
    for (const BoundResource& slot : checked_.bound) {
      if (slot.set != number) continue;
      VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = set;
      write.dstBinding = slot.binding;
      write.descriptorCount = 1;
      write.descriptorType = descriptor_type(file.resources[slot.resource]);
      VkWriteDescriptorSetTensorARM tensor{stype::write_tensor};
      VkTensorViewARM view = VK_NULL_HANDLE;
      VkDescriptorBufferInfo buffer{VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
      if (write.descriptorType == VK_DESCRIPTOR_TYPE_TENSOR_ARM) {
        view = resources.view(slot.resource);
        tensor.tensorViewCount = 1;
        tensor.pTensorViews = &view;
        write.pNext = &tensor;
      } else {
        buffer.buffer = resources.buffer(slot.resource);
        write.pBufferInfo = &buffer;
      }
      TOSAIC_CHECK(called_void("vkUpdateDescriptorSets",
                               [&] { vk.vkUpdateDescriptorSets(device_->handle, 1, &write, 0, nullptr); }));
    }
  }
  return {};
}

void SegmentOnDevice::record(VkCommandBuffer commands) const {
  const auto& vk = device_->vk;
  const bool graph = checked_.segment->kind == vgf::Kind::graph;
  const VkPipelineBindPoint point = graph ? VK_PIPELINE_BIND_POINT_DATA_GRAPH_ARM : VK_PIPELINE_BIND_POINT_COMPUTE;
  vk.vkCmdBindPipeline(commands, point, pipeline_);
  if (!sets_.empty())
    vk.vkCmdBindDescriptorSets(commands, point, layout_, 0, static_cast<std::uint32_t>(sets_.size()), sets_.data(), 0,
                               nullptr);
  if (graph)
    device_->ml.CmdDispatchDataGraphARM(commands, session_, nullptr);
  else
    vk.vkCmdDispatch(commands, checked_.segment->dispatch[0], checked_.segment->dispatch[1],
                     checked_.segment->dispatch[2]);
}

}  // namespace tosaic::vulkan
