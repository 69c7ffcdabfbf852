// SPDX-License-Identifier: Apache-2.0
// What programs call the delegates. Whose payloads look how: api/payload_forms.cpp; which run where:
// delegates/delegates.cpp.
#pragma once

namespace tosaic::delegate_ids {

inline constexpr const char *tosa = "TOSABackend", *vgf = "VgfBackend", *ethos_u = "EthosUBackend",
                            *vulkan = "TosaicVulkan",
                            *vulkan_backend = "VulkanBackend";  // of ExecuTorch's own flow, which no target writes

}  // namespace tosaic::delegate_ids
