// SPDX-License-Identifier: Apache-2.0
#include "base/system/tile_registers.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tosaic {

// Documentation/arch/x86/xstate.rst of Linux, which knows it since 5.16.
bool allow_tile_registers() {
#ifdef SYS_arch_prctl
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace tosaic
