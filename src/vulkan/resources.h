// SPDX-License-Identifier: Apache-2.0
// The tensors and buffers of a VGF file on a device: those of an alias group in the same memory, inputs and outputs
// mapped as long as the model lives, constants of shaders uploaded once.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "formats/vgf/vgf.h"
#include "ir/type.h"
#include "vulkan/device.h"
#include "vulkan/undo.h"

namespace tosaic::vulkan {

// How a resource is described to the driver, which is given pointers into it.
struct TensorDescription {
  VkTensorDescriptionARM description{stype::tensor_description};
  std::vector<std::int64_t> dims;
};
std::unique_ptr<TensorDescription> describe_tensor(const vgf::Resource& resource, VkFlags64 usage);

class Resources {
 public:
  struct Options {
    bool stage = false;  // inputs and outputs through staging memory, also where the host sees the device's
    // Pairs of resources that must be one, in addition to the file's alias groups.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> same;
  };
  Resources(const vgf::File& file, std::shared_ptr<Device> device) : file_(file), device_(std::move(device)) {}
  // Makes all that segments bind and that the model takes and gives. Errors: vgf.format, vgf.dynamic, vulkan.resource,
  // vulkan.memory, vulkan.failed.
  Status make(const Options& options);

  VkTensorViewARM view(std::uint32_t resource) const { return made_.at(resource).view; }
  VkBuffer buffer(std::uint32_t resource) const { return made_.at(resource).buffer; }
  const TensorDescription& description(std::uint32_t resource) const { return *made_.at(resource).description; }

  // The resource that stands for all that lie in the same memory.
  std::uint32_t root(std::uint32_t resource) const { return root_[resource]; }
  // Where the host writes or reads the elements of a model's input or output.
  std::byte* mapped(std::uint32_t resource) const;
  // Commands that bring staged inputs in, and staged outputs out; those for constants, once, say whether there are any.
  bool record_constants(VkCommandBuffer commands) const;
  void record_inputs(VkCommandBuffer commands) const;
  void record_outputs(VkCommandBuffer commands) const;

 private:
  struct Made {
    std::unique_ptr<TensorDescription> description;  // tensors
    VkTensorARM tensor = VK_NULL_HANDLE;
    VkTensorViewARM view = VK_NULL_HANDLE;
    VkBuffer buffer = VK_NULL_HANDLE;  // the others
    VkMemoryRequirements needs{};
  };
  struct Allocation {  // of the resources that are one
    VkDeviceSize bytes = 0, copied_bytes = 0;
    std::uint32_t type_bits = ~0u;
    bool input = false, output = false, constant = false;
    std::shared_ptr<Memory> memory, staging;
    VkBuffer whole = VK_NULL_HANDLE, staging_buffer = VK_NULL_HANDLE;  // of memory and staging; staged places only
    bool host() const { return input || output || constant; }
  };
  Status check(std::uint32_t resource) const;
  void join(const Options& options);
  Status create(std::uint32_t resource, VkFlags64 usage);
  Status bind(std::uint32_t resource, const Allocation& allocation);
  Status allocate(Allocation& allocation, bool stage);
  Result<VkBuffer> make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage);
  Status write_constants() const;
  void copy(VkCommandBuffer commands, const Allocation& allocation, bool in) const;

  const vgf::File& file_;
  std::shared_ptr<Device> device_;
  std::vector<std::uint32_t> root_;                  // by resource
  std::map<std::uint32_t, Allocation> allocations_;  // by root
  std::map<std::uint32_t, Made> made_;               // by resource
  Undo undo_;
};

}  // namespace tosaic::vulkan
