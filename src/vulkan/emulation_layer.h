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

// An environment variable that has another value while this lives: the Vulkan loader is told some things in no other
// way.
class Environment {
 public:
  Environment(const char* name, const std::string& value);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

// The loader also looks for layers in `folder`.
Environment with_layer_folder(const std::string& folder);
// VK_INSTANCE_LAYERS without the emulation layers: those that it names stack in the order in which their manifests
// happen to be found, and in the wrong one no device can be made.
Environment without_emulation_layers();

}  // namespace tosaic::vulkan
