// SPDX-License-Identifier: Apache-2.0
#include "delegates/delegates.h"

namespace tosaic {

runtime::Delegates all_delegates(const DelegateDevices& devices) {
  runtime::Delegates all;
  using Graphs = DelegateDevices::Graphs;
  const bool shaders = devices.graphs == Graphs::vulkan, ml = devices.graphs == Graphs::vulkan_ml;
  const auto on_vulkan = [&](const tosaic_delegate_api* api) {
    return runtime::DelegateChoice{api, devices.vulkan_device};
  };
  runtime::DelegateChoice chain{tosaic_vulkan_backend_delegate()};
  if (shaders) chain = on_vulkan(tosaic_vulkan_backend_compute_delegate());
  // What ExecuTorch leaves out of the call are buffers' new contents, which a delegate is to keep.
  chain.fewer_tensors_hint =
      "a program that changes its buffers needs VulkanPartitioner({\"alias_buffer_mutations\": True}): export it again";
  for (const runtime::DelegateChoice& choice :
       {shaders ? on_vulkan(tosaic_tosa_compute_delegate()) : runtime::DelegateChoice{tosaic_tosa_delegate()},
        shaders ? on_vulkan(tosaic_vgf_compute_delegate())
        : ml    ? on_vulkan(tosaic_vgf_vulkan_delegate())
                : runtime::DelegateChoice{tosaic_vgf_delegate()},
        chain, on_vulkan(tosaic_vulkan_delegate()), runtime::DelegateChoice{tosaic_ethos_u_delegate(), devices.npu}})
    all.emplace(choice.api->id, choice);
  return all;
}

}  // namespace tosaic
