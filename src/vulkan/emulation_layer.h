// SPDX-License-Identifier: Apache-2.0
// Arm's ML emulation layer for Vulkan: two layers that give a driver without tensors and data graphs both. It comes as
// the Python wheel ai_ml_emulation_layer_for_vulkan; this finds it where the loader would not.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace tosaic::vulkan {

// In the order in which they must be enabled: graphs are made of tensors.
inline constexpr const char* emulation_layers[] = {"VK_LAYER_ML_Graph_Emulation", "VK_LAYER_ML_Tensor_Emulation"};

struct EmulationFiles {
  std::string manifests, libraries;  // folders
};

// Looks in the folders of VK_LAYER_PATH, then in the Python environments whose bin/ is on PATH or is VIRTUAL_ENV's.
std::optional<EmulationFiles> find_emulation_files();

// Loads the layers' libraries by their full path: the manifests name them without one, and the loader's own dlopen
// then finds those that are here already, whatever LD_LIBRARY_PATH said when the process began.
bool load_emulation_libraries(const EmulationFiles& files);

// While it lives, the Vulkan loader also looks for layers in `folder`. The loader takes this from the environment only.
class LayerFolder {
 public:
  explicit LayerFolder(const std::string& folder);
  LayerFolder(const LayerFolder&) = delete;
  LayerFolder& operator=(const LayerFolder&) = delete;
  ~LayerFolder();

 private:
  const char* variable_;
  std::optional<std::string> before_;
};

}  // namespace tosaic::vulkan
