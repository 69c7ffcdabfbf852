// SPDX-License-Identifier: Apache-2.0
#include <libproc.h>
#include <sys/proc.h>
#include <sys/resource.h>

#include "base/system/hosted/child_process.h"

namespace tosaic {

std::optional<std::uint64_t> processor_time(int id) {
  proc_bsdinfo state{};
  if (::proc_pidinfo(id, PROC_PIDTBSDINFO, 0, &state, sizeof(state)) == sizeof(state) && state.pbi_status == SSTOP)
    return std::nullopt;
  rusage_info_v0 used{};
  if (::proc_pid_rusage(id, RUSAGE_INFO_V0, reinterpret_cast<rusage_info_t*>(&used)) != 0) return std::nullopt;
  return used.ri_user_time + used.ri_system_time;
}

}  // namespace tosaic
