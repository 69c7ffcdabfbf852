// SPDX-License-Identifier: Apache-2.0
#include "vulkan/emulation_layer.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/system/environment.h"
#include "base/system/libraries.h"

namespace tosaic::vulkan {
namespace {

namespace fs = std::filesystem;
constexpr const char* libraries[] = {"libVkLayer_Tensor.so", "libVkLayer_Graph.so"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Both kinds of folder as the wheel lays them out: deploy/share/vulkan/explicit_layer.d and deploy/lib.
std::optional<EmulationFiles> in_manifests(const fs::path& manifests) {
  if (!is_file(manifests / "VkLayer_Graph.json") || !is_file(manifests / "VkLayer_Tensor.json")) return std::nullopt;
  for (const fs::path& lib : {manifests / "../../../lib", manifests / "../../../lib64", manifests})
    if (std::all_of(std::begin(libraries), std::end(libraries), [&](const char* l) { return is_file(lib / l); }))
      return EmulationFiles{manifests.string(), lib.lexically_normal().string()};
  return std::nullopt;
}

std::optional<EmulationFiles> in_environment(const fs::path& bin) {
  std::error_code ignored;
  const fs::path lib = bin.parent_path() / "lib";
  for (const auto& entry : fs::directory_iterator(lib, ignored)) {
    if (!entry.path().filename().string().starts_with("python")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      if (auto found = in_manifests(entry.path() / packages / "emulation_layer/deploy/share/vulkan/explicit_layer.d"))
        return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EmulationFiles> find_emulation_files() {
  for (const std::string& folder : parts_of_path(environment_variable("VK_LAYER_PATH")))
    if (auto found = in_manifests(folder)) return found;
  for (const std::string& bin : program_folders())
    if (auto found = in_environment(bin)) return found;
  return std::nullopt;
}

bool load_emulation_libraries(const EmulationFiles& files) {
  // Never closed: the loader uses them as long as an instance lives, and instances live as long as the process.
  return std::all_of(std::begin(libraries), std::end(libraries),
                     [&](const char* name) { return load_library((fs::path(files.libraries) / name).string()); });
}

Environment::Environment(const char* name, const std::string& value) : name_(name) {
  before_ = find_environment_variable(name);
  if (before_ || !value.empty()) set_environment_variable(name, value);
}

Environment::~Environment() { set_environment_variable(name_, before_); }

// VK_LAYER_PATH replaces the folders of the system, VK_ADD_LAYER_PATH comes before them; the first, where it is set,
// makes the loader ignore the second.
Environment with_layer_folder(const std::string& folder) {
  const char* name = find_environment_variable("VK_LAYER_PATH") ? "VK_LAYER_PATH" : "VK_ADD_LAYER_PATH";
  const std::string before = environment_variable(name);
  return {name, before.empty() ? folder : folder + ":" + before};
}

Environment without_emulation_layers() {
  std::string others;
  for (const std::string& layer : parts_of_path(environment_variable("VK_INSTANCE_LAYERS")))
    if (std::none_of(std::begin(emulation_layers), std::end(emulation_layers),
                     [&](const char* l) { return layer == l; }))
      others += (others.empty() ? "" : ":") + layer;
  return {"VK_INSTANCE_LAYERS", others};
}

}  // namespace tosaic::vulkan
