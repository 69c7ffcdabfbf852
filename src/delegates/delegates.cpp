// SPDX-License-Identifier: Apache-2.0
#include "delegates/delegates.h"

namespace tosaic {

runtime::Delegates all_delegates(const DelegateDevices& devices) {
  runtime::Delegates all;
  for (const runtime::DelegateChoice& choice :
       {runtime::DelegateChoice{tosaic_tosa_delegate()},
        devices.vulkan ? runtime::DelegateChoice{tosaic_vgf_vulkan_delegate(), devices.vulkan_device}
                       : runtime::DelegateChoice{tosaic_vgf_delegate()},
        runtime::DelegateChoice{tosaic_ethos_u_delegate(), devices.npu}})
    all.emplace(choice.api->id, choice);
  return all;
}

}  // namespace tosaic
