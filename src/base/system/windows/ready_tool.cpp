// SPDX-License-Identifier: Apache-2.0
// A tool is kept ready by forks, which Windows does not have: each call starts it anew.
#include "base/system/ready_tool.h"

namespace tosaic {

void make_ready(const std::string&) {}

Result<ReadyEnded> run_ready(const std::vector<std::string>& command, const std::filesystem::path& log,
                             const Patience& patience) {
  TOSAIC_TRY(Ended ended, run_process(command, log, patience));
  return ReadyEnded{std::move(ended), ""};
}

}  // namespace tosaic
